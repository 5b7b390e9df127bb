import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger, systemClock } from '../base/index.js';
import type { Row } from '../topology/index.js';
import { ByteReader } from './bytes.js';
import type { RowCodec } from './codec.js';
import { Doorbell } from './doorbell.js';
import {
  blobOffset,
  checkFrame,
  H_COUNT,
  HEADER_WORDS,
  KIND_DATA,
  R_BLOB_BYTES,
  ROW_WORDS,
} from './frame.js';
import { linkConformance, type TestLink } from './link.conformance.js';
import { OutBatch } from './out-batch.js';
import { peerSocketPath } from './peers/address.js';
import { PeerConnections } from './peers/peer-connections.js';
import { allocateRing, RingReader, RingWriter } from './ring.js';

/** Reads the rows of a DATA frame, checking that each takes the bytes that its words say. */
function readRows(
  codec: RowCodec,
  reader: ByteReader,
  words: Int32Array,
  start: number,
  bytes: Buffer,
  byteStart: number,
): Row[] {
  const rows: Row[] = [];
  reader.reset(bytes, byteStart + blobOffset(words, start));
  for (let i = 0; i < words[start + H_COUNT]!; i++) {
    const before = reader.position;
    rows.push(codec.decode(reader));
    if (reader.position - before !== words[start + HEADER_WORDS + i * ROW_WORDS + R_BLOB_BYTES])
      throw new Error('row length');
  }
  return rows;
}

/** Puts rows into frames and gives each to `send`. */
async function inFrames(
  codec: RowCodec,
  rows: readonly Row[],
  send: (batch: OutBatch) => Promise<void>,
): Promise<void> {
  const batch = new OutBatch(512);
  for (const [i, row] of rows.entries()) {
    batch.addRow(0, 1, 2, 0, 0, 0, 0, 0, null, codec, row);
    if (!batch.isFull && i < rows.length - 1) continue;
    batch.seal(KIND_DATA, 1, 1, 2, 1, 0);
    await send(batch);
    batch.clear();
  }
}

linkConformance('same thread, by reference', async () => ({
  pass: async ({ narrow }, rows) => rows.map((row) => (narrow === null ? row : narrow(row))),
  close: async () => {},
}));

linkConformance('ring', async () => {
  const ring = allocateRing(16_384);
  const writer = new RingWriter(ring, new Doorbell(Doorbell.allocate()));
  const ringReader = new RingReader(ring);
  const reader = new ByteReader();
  const link: TestLink = {
    async pass({ codec }, rows) {
      const received: Row[] = [];
      const drain = (): void => {
        ringReader.drain((words, start, bytes, byteStart, byteLength) => {
          checkFrame(words, start, byteLength);
          received.push(...readRows(codec, reader, words, start, bytes, byteStart));
        }, 4);
      };
      await inFrames(codec, rows, async (batch) => {
        while (!writer.tryWrite(batch.words, batch.wordCount, batch.blob, batch.blobBytes)) drain();
      });
      while (!ringReader.isEmpty) drain();
      return received;
    },
    close: async () => {},
  };
  return link;
});

linkConformance('socket', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'isobar-link-'));
  const reader = new ByteReader();
  let onFrame: (frame: Buffer) => void = () => {};
  const up: Promise<void>[] = [];
  const paths = new Map(
    [1, 2].map((port) => [`s:${port}`, peerSocketPath(directory, 'topology', { supervisor: 's', port })]),
  );
  const [sender, receiver] = [...paths].map(([self, path]) => {
    let onUp = (): void => {};
    up.push(
      new Promise((resolve) => {
        onUp = resolve;
      }),
    );
    return new PeerConnections({
      topologyId: 'topology',
      self,
      generation: 1,
      secret: 'aa'.repeat(32),
      listen: { kind: 'unix', path },
      maxFrameBytes: 64 * 1024 * 1024,
      reconnectTimeoutMs: 10_000,
      clock: systemClock,
      logger: silentLogger,
      onFrame: (_, frame) => onFrame(frame),
      onUp,
      onLost: () => {},
    });
  });
  await Promise.all([sender!.listen(), receiver!.listen()]);
  const peers = new Map([...paths].map(([key, path]) => [key, { kind: 'unix', path } as const]));
  sender!.setPeers(peers);
  receiver!.setPeers(peers);
  await Promise.all(up);
  const link: TestLink = {
    async pass({ codec }, rows) {
      const received: Row[] = [];
      const all = new Promise<void>((resolve) => {
        onFrame = (frame) => {
          const words = new Int32Array(frame.buffer, frame.byteOffset, frame.length >> 2);
          received.push(...readRows(codec, reader, words, 0, frame, 0));
          if (received.length === rows.length) resolve();
        };
      });
      await inFrames(codec, rows, async (batch) => {
        const words = Buffer.from(batch.words.buffer, 0, 4 * batch.wordCount);
        sender!.send('s:2', Buffer.concat([words, batch.blob.subarray(0, batch.blobBytes)]));
      });
      if (rows.length > 0) await all;
      return received;
    },
    async close() {
      await Promise.all([sender!.close(), receiver!.close()]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return link;
});
