import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteReader } from './bytes.js';
import { createRowCodec } from './codec.js';
import { AckBatch, CreditBatch } from './control-batch.js';
import { decodeControlFrame, encodeControlFrame } from './control-frame.js';
import {
  ACK_WORDS,
  CREDIT_WORDS,
  checkFrame,
  END_MARK,
  H_BLOB_BYTES,
  H_COUNT,
  H_ENDPOINT,
  H_KIND,
  HEADER_WORDS,
  KIND_ACK,
  KIND_CREDIT,
  KIND_DATA,
  KIND_FAIL,
  R_BLOB_BYTES,
  R_EDGE_LOW,
  R_ROOT_TASK,
  R_SUBSCRIPTION,
  ROW_WORDS,
} from './frame.js';
import { OutBatch, readSeveral } from './out-batch.js';

const codec = createRowCodec([
  { name: 'word', kind: 'string', nullable: false },
  { name: 'n', kind: 'int32', nullable: false },
]);

function entries(batch: AckBatch | CreditBatch, rowWords: number): number[][] {
  return Array.from({ length: batch.count }, (_, i) => [
    ...batch.words.subarray(HEADER_WORDS + i * rowWords, HEADER_WORDS + (i + 1) * rowWords),
  ]);
}

describe('an out-batch', () => {
  it('is a checked frame with its rows, anchors and end marks', () => {
    const batch = new OutBatch(100);
    const several = Int32Array.from([1, 2, 3, -4, 5, 6, 7, 8, 9, -10]);
    for (let i = 0; i < 70; i++) {
      const used = batch.addRow(3, 11, 12, 13, 14, i, -1, -2, null, codec, { word: 'a', n: i });
      expect(used).toBe(6);
    }
    batch.addRow(3, 11, 12, -1, 0, 0, 0, 0, several, codec, { word: 'b', n: 70 });
    expect(batch.addRow(4, 11, 12, 0, 0, 0, 0, 0, null, null, null)).toBe(0);
    batch.seal(KIND_DATA, 1, 2, 3, 4, 5);
    const { words, wordCount } = batch;
    checkFrame(words, 0, 4 * wordCount + batch.blobBytes);
    expect(words[H_COUNT]).toBe(72);
    expect(words[H_ENDPOINT]).toBe(5);
    const row = HEADER_WORDS + 70 * ROW_WORDS;
    expect(words[row + R_ROOT_TASK]).toBe(-1);
    expect(words[row - ROW_WORDS + R_EDGE_LOW]).toBe(-2);
    expect(words[row + ROW_WORDS + R_SUBSCRIPTION]).toBe(4 | END_MARK);
    const reader = new ByteReader();
    reader.reset(batch.blob, 70 * 6);
    deepStrictEqual(readSeveral(reader, batch.blobBytes), several);
    deepStrictEqual(codec.decode(reader), { word: 'b', n: 70 });
    expect(reader.position).toBe(batch.blobBytes);
  });

  it('is full at its rows, or when its blob is large', () => {
    const batch = new OutBatch(2);
    const add = (word: string): number => batch.addRow(0, 1, 1, 0, 0, 0, 0, 0, null, codec, { word, n: 1 });
    add('a');
    expect(batch.isFull).toBe(false);
    add('a');
    expect(batch.isFull).toBe(true);
    batch.clear();
    expect(batch.isFull).toBe(false);
    add('x'.repeat(300_000));
    expect(batch.isFull).toBe(true);
  });

  it('gives large memory back', () => {
    const batch = new OutBatch(2);
    batch.addRow(0, 1, 1, 0, 0, 0, 0, 0, null, codec, { word: 'x'.repeat(3_000_000), n: 1 });
    batch.clear();
    expect(batch.blob.length).toBeLessThan(100_000);
  });

  it('refuses a row above its limit and is as before', () => {
    const batch = new OutBatch(10, 1000);
    batch.addRow(0, 1, 1, 0, 0, 0, 0, 0, null, codec, { word: 'a', n: 1 });
    expect(() => batch.addRow(0, 1, 1, 0, 0, 0, 0, 0, null, codec, { word: 'x'.repeat(2000), n: 1 })).toThrow(
      expect.objectContaining({ code: 'ROW_TOO_LARGE' }),
    );
    expect([batch.rows, batch.blobBytes]).toEqual([1, 6]);
  });
});

describe('an ack batch', () => {
  it('keeps the XOR of each root, whatever it merges, loses and seals on the way', () => {
    const root = fc.tuple(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: -3, max: 700 }),
    );
    const step = fc.oneof(
      { weight: 20, arbitrary: fc.tuple(root, fc.integer(), fc.integer()) },
      { weight: 1, arbitrary: fc.constant('seal' as const) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const batch = new AckBatch(16);
        const expected = new Map<string, [number, number]>();
        const found = new Map<string, [number, number]>();
        const xor = (into: Map<string, [number, number]>, key: string, high: number, low: number): void => {
          const [h, l] = into.get(key) ?? [0, 0];
          into.set(key, [h ^ high, l ^ low]);
        };
        let sealed = false;
        const flush = (): void => {
          batch.seal(KIND_ACK, 1, 1, 2, 2, 0);
          expect(batch.words[H_COUNT]).toBe(batch.count);
          checkFrame(batch.words, 0, 4 * batch.wordCount);
          for (const [task, generation, sequence, high, low] of entries(batch, ACK_WORDS)) {
            xor(found, `${task} ${generation} ${sequence}`, high!, low!);
          }
          batch.clear();
          sealed = false;
        };
        for (const each of steps) {
          if (each === 'seal') {
            batch.seal(KIND_ACK, 1, 1, 2, 2, 0);
            sealed = true;
          } else if (each === 'clear') {
            if (sealed) flush();
          } else {
            const [[task, generation, sequence], high, low] = each;
            batch.add(task, generation, sequence, high, low);
            xor(expected, `${task} ${generation} ${sequence}`, high, low);
          }
        }
        flush();
        if (batch.count > 0) flush();
        expect(found).toEqual(expected);
      }),
      { seed: 20_263, numRuns: 400 },
    );
  });

  it('has one entry for acks of one root that come one after another, mixed with others', () => {
    const batch = new AckBatch(1024);
    for (let i = 0; i < 600; i++) batch.add(1, 1, i % 100, i, i);
    expect(batch.count).toBe(100);
  });

  it('does not change a sealed frame; later entries are in the next one', () => {
    const batch = new AckBatch(4);
    batch.add(1, 1, 1, 5, 6);
    batch.seal(KIND_ACK, 0, 0, 0, 0, 0);
    batch.add(1, 1, 1, 1, 1);
    batch.add(2, 2, 2, 2, 2);
    expect(entries(batch, ACK_WORDS)).toEqual([[1, 1, 1, 5, 6]]);
    batch.clear();
    expect(entries(batch, ACK_WORDS)).toEqual([
      [1, 1, 1, 1, 1],
      [2, 2, 2, 2, 2],
    ]);
  });

  it('takes more than its capacity', () => {
    const batch = new AckBatch(2, KIND_FAIL);
    for (let i = 0; i < 500; i++) batch.add(1, 1, 7, 3, i);
    expect(batch.isFull).toBe(true);
    expect(batch.count).toBe(500);
    expect(entries(batch, ACK_WORDS)[499]).toEqual([1, 1, 7, 3, 499]);
  });
});

describe('a credit batch', () => {
  it('adds up the credit of each component, before and after it is sealed', () => {
    const batch = new CreditBatch(5);
    batch.add(3, 10);
    batch.add(0, 1);
    batch.add(3, 5);
    batch.seal(KIND_CREDIT, 0, 0, 0, 0, 0);
    batch.add(3, 7);
    expect(entries(batch, CREDIT_WORDS)).toEqual([
      [3, 15],
      [0, 1],
    ]);
    batch.clear();
    expect(entries(batch, CREDIT_WORDS)).toEqual([[3, 7]]);
    batch.clear();
    expect(batch.count).toBe(0);
    batch.add(3, 1);
    expect(entries(batch, CREDIT_WORDS)).toEqual([[3, 1]]);
  });
});

describe('a frame check', () => {
  function valid(): { words: Int32Array; bytes: number } {
    const batch = new OutBatch(10);
    for (let n = 0; n < 3; n++) batch.addRow(0, 1, 1, 0, 0, 0, 0, 0, null, codec, { word: 'a', n });
    batch.seal(KIND_DATA, 0, 0, 0, 0, 0);
    return { words: batch.words, bytes: 4 * batch.wordCount + batch.blobBytes };
  }

  it.each([
    ['a kind that does not exist', (words: Int32Array) => (words[H_KIND] = 77)],
    ['a negative count', (words: Int32Array) => (words[H_COUNT] = -1)],
    ['a count that is too high', (words: Int32Array) => (words[H_COUNT] = 4)],
    ['a negative blob', (words: Int32Array) => (words[H_BLOB_BYTES] = -5)],
    ['a blob of another length', (words: Int32Array) => (words[H_BLOB_BYTES]! += 1)],
    ['a row that claims too much', (words: Int32Array) => (words[HEADER_WORDS + R_BLOB_BYTES]! += 1)],
    ['a row of negative length', (words: Int32Array) => (words[HEADER_WORDS + R_BLOB_BYTES] = -1)],
  ])('refuses %s', (_, spoil) => {
    const { words, bytes } = valid();
    checkFrame(words, 0, bytes);
    spoil(words);
    expect(() => checkFrame(words, 0, bytes)).toThrow(
      expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }),
    );
  });

  it('refuses less than a header', () => {
    expect(() => checkFrame(new Int32Array(2), 0, 8)).toThrow(/at least a header/);
  });
});

describe('a control frame', () => {
  it('carries any structured value and is a valid frame', () => {
    const body = { tasks: new Map([[1, 2n]]), list: [undefined, -0, new Uint8Array([1])] };
    const frame = encodeControlFrame(body);
    checkFrame(new Int32Array(frame.buffer, frame.byteOffset, frame.length >> 2), 0, frame.length);
    deepStrictEqual(decodeControlFrame(frame), body);
  });

  it.each([Buffer.alloc(0), Buffer.alloc(40), encodeControlFrame(1).subarray(0, 34)])(
    'refuses what is none',
    (frame) => {
      expect(() => decodeControlFrame(frame)).toThrow(
        expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }),
      );
    },
  );
});
