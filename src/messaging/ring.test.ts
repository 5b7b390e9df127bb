import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Doorbell } from './doorbell.js';
import { H_BLOB_BYTES, H_COUNT, H_KIND, HEADER_WORDS, KIND_ACK, KIND_CONTROL, ACK_WORDS } from './frame.js';
import { allocateRing, RingReader, RingWriter } from './ring.js';

const SEED = 20_262;

/** A frame whose words and bytes can be told from any other's. */
function frame(
  id: number,
  rows: number,
  blobBytes: number,
): { words: Int32Array; wordCount: number; blob: Buffer } {
  const wordCount = HEADER_WORDS + rows * ACK_WORDS;
  const words = new Int32Array(wordCount + 3).fill(id);
  words[H_KIND] = rows > 0 ? KIND_ACK : KIND_CONTROL;
  words[H_COUNT] = rows;
  words[H_BLOB_BYTES] = blobBytes;
  const blob = Buffer.alloc(blobBytes + 5, 0xee);
  for (let i = 0; i < blobBytes; i++) blob[i] = (id * 31 + i * 7) & 255;
  return { words, wordCount, blob };
}

type Frame = ReturnType<typeof frame>;

function contiguous({ words, wordCount, blob }: Frame): Buffer {
  return Buffer.concat([Buffer.from(words.buffer, 0, 4 * wordCount), blob.subarray(0, words[H_BLOB_BYTES])]);
}

function pair(capacity = 4096): { writer: RingWriter; reader: RingReader; producer: Doorbell } {
  const buffer = allocateRing(capacity);
  const producer = new Doorbell(Doorbell.allocate());
  return {
    writer: new RingWriter(buffer, new Doorbell(Doorbell.allocate())),
    reader: new RingReader(buffer, producer),
    producer,
  };
}

function write(writer: RingWriter, { words, wordCount, blob }: Frame): boolean {
  return writer.tryWrite(words, wordCount, blob, words[H_BLOB_BYTES]!);
}

function readAll(reader: RingReader, maxFrames = 1000): Buffer[] {
  const frames: Buffer[] = [];
  reader.drain((words, wordStart, bytes, byteStart, byteLength) => {
    expect(byteStart).toBe(4 * wordStart);
    expect(words[wordStart]).toBe(bytes.readInt32LE(byteStart));
    frames.push(Buffer.from(bytes.subarray(byteStart, byteStart + byteLength)));
  }, maxFrames);
  return frames;
}

describe('a ring', () => {
  it('passes every sequence of frames unchanged and in order, whatever their sizes and the turns of both ends', () => {
    const sizes = fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 300 }) },
      { weight: 2, arbitrary: fc.integer({ min: 1900, max: 2100 }) },
      { weight: 1, arbitrary: fc.integer({ min: 2000, max: 20_000 }) },
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), sizes, fc.boolean()), { maxLength: 60 }),
        fc.infiniteStream(fc.integer({ min: 0, max: 5 })),
        (shapes, turns) => {
          const { writer, reader } = pair();
          const sent = shapes.map(([rows, blobBytes], id) => frame(id + 1, rows, blobBytes));
          const received: Buffer[] = [];
          let next = 0;
          // An infinite stream has no last value of another type.
          const turn = (): number => turns.next().value as number;
          while (received.length < sent.length) {
            for (let n = turn(); n > 0 && next < sent.length; n--) {
              const done = shapes[next]![2]
                ? writer.tryWriteBytes(contiguous(sent[next]!))
                : write(writer, sent[next]!);
              if (!done) break;
              next++;
            }
            received.push(...readAll(reader, turn()));
          }
          expect(reader.isEmpty).toBe(true);
          expect(received.length).toBe(sent.length);
          for (const [i, each] of sent.entries()) expect(received[i]!.equals(contiguous(each))).toBe(true);
        },
      ),
      { seed: SEED, numRuns: 300 },
    );
  });

  it('wraps around at every alignment', () => {
    for (let size = 32; size < 32 + 260; size++) {
      const { writer, reader } = pair();
      // Enough to pass the end a few times, from a different place each time.
      for (let id = 1; id < 60; id++) {
        const each = frame(id, 0, size - 32);
        expect(write(writer, each)).toBe(true);
        expect(readAll(reader)[0]!.equals(contiguous(each))).toBe(true);
      }
    }
  });

  it('refuses a frame that does not fit now, and takes it after the reader has made space', () => {
    const { writer, reader } = pair();
    const each = frame(1, 0, 968);
    let written = 0;
    while (write(writer, each)) written++;
    expect(written).toBeGreaterThanOrEqual(3);
    expect(writer.isUnfinished).toBe(false);
    expect(readAll(reader, 1)).toHaveLength(1);
    expect(readAll(reader).length).toBe(written - 1);
    expect(write(writer, each)).toBe(true);
  });

  it('sends a frame a hundred times its size in pieces, as long as it is called again', () => {
    const { writer, reader } = pair();
    const each = frame(5, 3, 400_001);
    let calls = 0;
    let received: Buffer[] = [];
    while (received.length === 0) {
      if (write(writer, each)) calls += 1000;
      calls++;
      received = readAll(reader);
    }
    expect(calls).toBeGreaterThan(1000);
    expect(received[0]!.equals(contiguous(each))).toBe(true);
  });

  it('drops an abandoned frame when the next one comes', () => {
    const { writer, reader } = pair();
    expect(write(writer, frame(1, 0, 50_000))).toBe(false);
    expect(writer.isUnfinished).toBe(true);
    readAll(reader);
    expect(write(writer, frame(1, 0, 50_000))).toBe(false);
    writer.abandonFrame();
    readAll(reader);
    const small = frame(2, 0, 100);
    expect(write(writer, small)).toBe(true);
    expect(readAll(reader).map((each) => each.equals(contiguous(small)))).toEqual([true]);
    const large = frame(3, 0, 50_000);
    let received: Buffer[] = [];
    let done = false;
    while (received.length === 0) {
      done ||= write(writer, large);
      received = readAll(reader);
    }
    expect(received[0]!.equals(contiguous(large))).toBe(true);
  });

  it('rings a producer that was refused once there is space, and only then', async () => {
    const { writer, reader, producer } = pair();
    while (write(writer, frame(1, 0, 500)));
    readAll(reader);
    // Rung: the sleep ends at once, long before its time.
    await producer.sleep(60_000, () => false);
    write(writer, frame(1, 0, 500));
    readAll(reader);
    let slept = false;
    const sleeping = producer
      .sleep(60_000, () => false)
      .then(() => {
        slept = true;
      });
    await new Promise(setImmediate);
    expect(slept).toBe(false);
    producer.wakeSelf();
    await sleeping;
  });

  it('consumes a frame whose receiver throws, and loses no other', () => {
    const { writer, reader } = pair();
    for (const id of [1, 2, 3]) write(writer, frame(id, 0, 10));
    expect(() =>
      reader.drain(() => {
        throw new Error('mine');
      }, 10),
    ).toThrow('mine');
    expect(readAll(reader)).toHaveLength(2);
  });

  it('has a power of two of capacity within its bounds', () => {
    expect(allocateRing(1).byteLength).toBe(256 + 4096);
    expect(allocateRing(5000).byteLength).toBe(256 + 8192);
    expect(allocateRing(1_048_576).byteLength).toBe(256 + 1_048_576);
  });
});
