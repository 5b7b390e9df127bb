/** Ring and doorbell between two real threads; the second runs a bundle, since no loader reaches worker threads. */
import { fileURLToPath } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { Doorbell } from './doorbell.js';
import { H_BLOB_BYTES, H_KIND, HEADER_WORDS, KIND_CONTROL } from './frame.js';
import { allocateRing, RingReader, RingWriter } from './ring.js';

/** Sends every frame back as it came, sleeping whenever there is nothing to do. */
const ECHO = `
import { workerData } from 'node:worker_threads';
import { Doorbell } from './doorbell.js';
import { RingReader, RingWriter } from './ring.js';
const own = new Doorbell(workerData.echoBell);
const other = new Doorbell(workerData.mainBell);
const reader = new RingReader(workerData.there, other);
const writer = new RingWriter(workerData.back, other);
let held = null;
async function run() {
  for (;;) {
    let worked = false;
    if (held !== null && writer.tryWriteBytes(held)) { held = null; worked = true; }
    if (held === null) {
      worked = reader.drain((words, start, bytes, from, length) => {
        if (length === 32 && words[start + 6] === 0 && words[start + 1] === -1) process.exit(0);
        const frame = Buffer.from(bytes.subarray(from, from + length));
        if (!writer.tryWriteBytes(frame)) held = frame;
      }, 1) > 0 || worked;
    }
    if (!worked) await own.sleep(30000, () => held === null && !reader.isEmpty);
  }
}
void run();
`;

function controlFrame(id: number, blobBytes: number): Buffer {
  const frame = Buffer.alloc(4 * HEADER_WORDS + blobBytes, id & 255);
  frame.writeInt32LE(KIND_CONTROL, 4 * H_KIND);
  frame.writeInt32LE(blobBytes, 4 * H_BLOB_BYTES);
  frame.writeInt32LE(id, 4);
  return frame;
}

describe('a pair of rings between two threads', () => {
  it('returns 20,000 frames of all sizes, larger than the ring too, with both ends sleeping and filling up', async () => {
    const bundle = await build({
      stdin: { contents: ECHO, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
      bundle: true,
      platform: 'node',
      format: 'cjs',
      packages: 'external',
      write: false,
    });
    const there = allocateRing(4096);
    const back = allocateRing(8192);
    const echoBell = Doorbell.allocate();
    const mainBell = Doorbell.allocate();
    const thread = new Thread(bundle.outputFiles[0]!.text, {
      eval: true,
      workerData: { there, back, echoBell, mainBell },
    });
    let failure: unknown = null;
    thread.on('error', (error) => {
      failure = error;
    });
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    const own = new Doorbell(mainBell);
    const writer = new RingWriter(there, new Doorbell(echoBell));
    const reader = new RingReader(back, new Doorbell(echoBell));

    const total = 20_000;
    const sizeOf = (id: number): number => (id % 1000 === 0 ? 30_000 : (id * 37) % 400);
    let sent = 0;
    let received = 0;
    let next = controlFrame(0, sizeOf(0));
    let longestSleepMs = 0;
    while (received < total && failure === null) {
      let worked = false;
      // In waves, so that each end runs dry now and then.
      while (sent < total && sent - received < 100 + (received % 200) && writer.tryWriteBytes(next)) {
        sent++;
        next = controlFrame(sent, sizeOf(sent));
        worked = true;
      }
      worked =
        reader.drain((words, start, bytes, from, length) => {
          const expected = controlFrame(received, sizeOf(received));
          if (!expected.equals(bytes.subarray(from, from + length)))
            throw new Error(`frame ${received} came back as ${words[start + 1]}`);
          received++;
        }, 50) > 0 || worked;
      if (!worked) {
        const began = performance.now();
        await own.sleep(30_000, () => !reader.isEmpty);
        longestSleepMs = Math.max(longestSleepMs, performance.now() - began);
      }
    }
    while (!writer.tryWriteBytes(controlFrame(-1, 0))) await own.sleep(10, () => false);
    await ended;
    expect(failure).toBe(null);
    expect(received).toBe(total);
    // A lost wake-up would have slept its full time.
    expect(longestSleepMs).toBeLessThan(20_000);
  });
});
