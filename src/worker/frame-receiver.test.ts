import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings, silentLogger, systemClock } from '../base/index.js';
import {
  AckBatch,
  blobOffset,
  checkFrame,
  CreditBatch,
  END_MARK,
  EXTRA_MARK,
  frameBytes,
  H_COUNT,
  HEADER_WORDS,
  KIND_ACK,
  KIND_CREDIT,
  KIND_DATA,
  KIND_FAIL,
  KIND_PRESSURE,
  OutBatch,
  R_BLOB_BYTES,
  R_ROOT_TASK,
  R_SOURCE_TASK,
  R_SUBSCRIPTION,
  R_TARGET_TASK,
  ROW_WORDS,
} from '../messaging/index.js';
import { planTopology } from '../scheduling/index.js';
import { bolt, buildTopology, spout, t, topology, type Row } from '../topology/index.js';
import { EdgeIds } from './acking/edge-ids.js';
import type { BoltExecutor } from './bolt-executor.js';
import { createFactory, type ExecutorFactory } from './executor-factory.js';
import { FrameReceiver } from './frame-receiver.js';
import type { Link } from './link.js';
import { ThreadContext } from './thread-context.js';
import type { FromThread } from './thread-messages.js';

const FIELDS = {
  text: t.string,
  n: t.int32,
  bytes: t.bytes,
  big: t.bigint,
  any: t.json<unknown>(),
  maybe: t.nullable(t.string),
};
const ROW = {
  text: 'a string that is longer than short ones are',
  n: 7,
  bytes: new Uint8Array([1, 2, 3]),
  big: 2n ** 80n,
  any: { list: [1, 'two', new Map([['three', 3]])] },
  maybe: null,
};

const definition = topology('received', (b) => {
  const source = b.spout(
    'source',
    spout({
      emits: FIELDS,
      streams: { other: { n: t.int32 } },
      *read() {
        yield { row: ROW };
      },
    }),
  );
  b.bolt('sink', bolt({ takes: FIELDS, process() {} }), { parallelism: 2 }).shuffle(source);
  const counting = bolt({ takes: { n: t.int32 }, emits: { n: t.int32 }, process() {} });
  const counter = b.bolt('counter', counting).shuffle(source.streams.other);
  counter.shuffle(counter);
});

interface Received {
  readonly receiver: FrameReceiver;
  readonly factory: ExecutorFactory;
  readonly posted: FromThread[];
  readonly rows: { readonly row: Row | null; readonly task: number; readonly several: Int32Array | null }[];
  readonly grants: number[][];
}

function receiver(): Received {
  const built = buildTopology(definition);
  const settings = compileSettings(built.description.settings);
  const plan = planTopology(built.description, settings);
  const posted: FromThread[] = [];
  const rows: Received['rows'] = [];
  const grants: number[][] = [];
  const post = (message: FromThread): void => void posted.push(message);
  const context = new ThreadContext({
    topology: built,
    topologyId: 'received-1-0',
    settings,
    generation: 1,
    clock: systemClock,
    logger: silentLogger,
    edgeIds: new EdgeIds(17, 23),
    random: () => 0.5,
    deadLetterDirectory: '/nonexistent',
    acking: true,
    post,
    wake: () => undefined,
    aloneMarks: { set: () => undefined, clear: () => undefined },
    progress: new Int32Array(16),
  });
  const factory = createFactory(context, plan.tasks, silentLogger);
  const executor = {
    acceptRemote: (row: Row | null, several: Int32Array | null, words: Int32Array, at: number) =>
      rows.push({ row, several, task: words[at + R_TARGET_TASK]! }),
  };
  for (const component of ['sink', 'counter']) {
    const tasks = factory.tasksOf(component)!;
    // Only what the receiver calls.
    for (let task = tasks.first; task <= tasks.last; task++)
      factory.boltOfTask[task] = executor as unknown as BoltExecutor;
  }
  const link = { onGrant: (creditClass: number, cost: number) => grants.push([creditClass, cost]) };
  context.links.set(5, link as unknown as Link);
  return {
    receiver: new FrameReceiver(context, factory, { post, onPassed: () => undefined }),
    factory,
    posted,
    rows,
    grants,
  };
}

/** A frame of three rows: one anchored to one root, one to two, and an end mark. */
function dataFrame(factory: ExecutorFactory): Buffer {
  const edge = factory.edges.find(({ target }) => target === 'sink')!;
  const root = factory.tasksOf('source')!.first;
  const batch = new OutBatch(16);
  const task = edge.firstTask;
  batch.addRow(edge.subscription, task, root, root, 1, 9, 11, 12, null, edge.codec, ROW);
  const several = Int32Array.from([root, 1, 9, 11, 12, root, 1, 10, 13, 14]);
  batch.addRow(edge.subscription, task, root, -1, 0, 0, 0, 0, several, edge.codec, ROW);
  batch.addRow(edge.subscription, task, root, 0, 0, 0, 0, 0, null, null, null);
  batch.seal(KIND_DATA, 0, 1, 3, 1, 5);
  return bytesOf(batch.words, batch.wordCount, batch.blob, batch.blobBytes);
}

function bytesOf(words: Int32Array, wordCount: number, blob: Buffer, blobBytes: number): Buffer {
  // Of its own, and more than a frame: a ring has other bytes behind it.
  const bytes = Buffer.alloc(4 * wordCount + blobBytes + 64, 0xa5);
  for (let i = 0; i < wordCount; i++) bytes.writeInt32LE(words[i]!, 4 * i);
  blob.copy(bytes, 4 * wordCount, 0, blobBytes);
  return bytes;
}

function wordsOf(bytes: Buffer): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
}

function take(received: Received, bytes: Buffer): void {
  received.receiver.receiveFromPeer(wordsOf(bytes), 0, bytes, 0);
}

const rowAt = (index: number): number => HEADER_WORDS + index * ROW_WORDS;

describe('frames of a peer', () => {
  it('give their rows, anchors and end marks to the tasks that they name', () => {
    const received = receiver();
    take(received, dataFrame(received.factory));
    expect(received.posted).toEqual([]);
    expect(received.rows.map(({ row }) => row)).toEqual([ROW, ROW, null]);
    expect([...received.rows[1]!.several!]).toHaveLength(10);
  });

  it.each<[string, (words: Int32Array, bytes: Buffer, factory: ExecutorFactory) => void, number]>([
    ['a subscription that is none', (words) => (words[rowAt(1) + R_SUBSCRIPTION] = 99), 1],
    ['a negative subscription', (words) => (words[rowAt(1) + R_SUBSCRIPTION] = -1), 1],
    ['a subscription with a mark that is none', (words) => (words[rowAt(1) + R_SUBSCRIPTION]! |= 1 << 31), 1],
    ['an extra row outside a cycle', (words) => (words[rowAt(1) + R_SUBSCRIPTION]! |= EXTRA_MARK), 1],
    ['a task that is none', (words) => (words[rowAt(1) + R_TARGET_TASK] = 1e9), 1],
    [
      'a task of another component',
      (words, _bytes, factory) => (words[rowAt(0) + R_TARGET_TASK] = factory.tasksOf('counter')!.first),
      0,
    ],
    ['an end mark of a subscription that is none', (words) => (words[rowAt(2)] = 99 | END_MARK), 2],
    [
      'an end of a task that does not send there',
      (words, _bytes, factory) => (words[rowAt(2) + R_SOURCE_TASK] = factory.tasksOf('counter')!.first),
      2,
    ],
    [
      'a root that is a task of the system',
      (words, _bytes, factory) => (words[rowAt(0) + R_ROOT_TASK] = factory.tasksOf('__acker')!.first),
      0,
    ],
    ['a root that is no task', (words) => (words[rowAt(0) + R_ROOT_TASK] = 4711), 0],
    ['a negative root', (words) => (words[rowAt(0) + R_ROOT_TASK] = -2), 0],
    [
      'a row that is shorter than its fields, and the next one longer',
      (words) => {
        words[rowAt(0) + R_BLOB_BYTES]!--;
        words[rowAt(1) + R_BLOB_BYTES]!++;
      },
      0,
    ],
    [
      'anchors that fill the memory',
      (words, bytes) =>
        bytes.writeUInt32LE(0xffff_fff0, blobOffset(words, 0) + words[rowAt(0) + R_BLOB_BYTES]!),
      1,
    ],
    [
      'half an anchor',
      (words, bytes) => bytes.writeUInt32LE(7, blobOffset(words, 0) + words[rowAt(0) + R_BLOB_BYTES]!),
      1,
    ],
    [
      'a string that ends behind its frame',
      (words, bytes) => bytes.writeUInt32LE(0x7fff_ffff, blobOffset(words, 0) + 1),
      0,
    ],
  ])('are refused when they have %s, and what came before stands', (_what, spoil, before) => {
    const received = receiver();
    const bytes = dataFrame(received.factory);
    spoil(wordsOf(bytes), bytes, received.factory);
    take(received, bytes);
    expect(received.posted).toMatchObject([
      { kind: 'broken-frame', session: 3, error: { code: 'PEER_PROTOCOL_ERROR' } },
    ]);
    expect(received.rows).toHaveLength(before);
  });

  it('are refused when they grant credit that is none', () => {
    const received = receiver();
    for (const [creditClass, cost] of [
      [-1, 1],
      [6, 1],
      [0x7fff_ffff, 1],
      [0, 0],
      [0, -5],
    ] as const) {
      const batch = new CreditBatch(6);
      batch.add(0, 1);
      batch.seal(KIND_CREDIT, 0, 1, 3, 1, 5);
      const bytes = bytesOf(batch.words, HEADER_WORDS + 2, Buffer.alloc(0), 0);
      wordsOf(bytes)[HEADER_WORDS] = creditClass;
      wordsOf(bytes)[HEADER_WORDS + 1] = cost;
      take(received, bytes);
    }
    expect(received.posted).toHaveLength(5);
    expect(received.grants).toEqual([]);
  });

  it('tell of the cycles of the graph, and are refused when they tell of others', () => {
    const received = receiver();
    const tell = (cycle: number, state: number): void => {
      const batch = new CreditBatch(1);
      batch.add(0, 0);
      batch.seal(KIND_PRESSURE, 0, 1, 3, 1, 5);
      const bytes = bytesOf(batch.words, HEADER_WORDS + 2, Buffer.alloc(0), 0);
      wordsOf(bytes)[HEADER_WORDS] = cycle;
      wordsOf(bytes)[HEADER_WORDS + 1] = state;
      take(received, bytes);
    };
    const [cycle] = received.factory.context.cycles;
    tell(0, 1);
    expect([cycle!.gate.blocked, received.posted.length]).toEqual([true, 0]);
    tell(0, 0);
    expect([cycle!.gate.blocked, received.posted.length]).toEqual([false, 0]);
    for (const [number, state] of [
      [1, 1],
      [-1, 1],
      [0, 2],
      [0, -1],
    ] as const)
      tell(number, state);
    expect([cycle!.gate.blocked, received.posted.length]).toEqual([false, 4]);
  });

  it('may ack and fail what is not known', () => {
    const received = receiver();
    for (const kind of [KIND_ACK, KIND_FAIL]) {
      const batch = new AckBatch(8, kind);
      batch.add(-5, 1, 2, 99, 4);
      batch.add(0x7fff_ffff, -1, -2, -3, -4);
      batch.seal(kind, 0, 1, 3, 1, 5);
      take(received, bytesOf(batch.words, HEADER_WORDS + 10, Buffer.alloc(0), 0));
    }
    expect(received.posted).toEqual([]);
  });

  it('never end the thread, nor reach a task that has not subscribed, wherever they are spoilt', () => {
    const received = receiver();
    const good = dataFrame(received.factory);
    const length = good.length - 64;
    const sink = received.factory.tasksOf('sink')!;
    const spoils = fc.array(fc.tuple(fc.nat(length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(spoils, (places) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of places) bytes[at] = value;
        const words = wordsOf(bytes);
        try {
          checkFrame(words, 0, length);
        } catch {
          // Its connection has ended before it could come here.
          return;
        }
        expect(frameBytes(words, 0)).toBe(length);
        expect(words[H_COUNT]).toBeLessThan(1000);
        received.posted.length = 0;
        received.rows.length = 0;
        take(received, bytes);
        for (const { task } of received.rows) {
          expect(task).toBeGreaterThanOrEqual(sink.first);
          expect(task).toBeLessThanOrEqual(sink.last);
        }
        for (const message of received.posted) expect(message.kind).toBe('broken-frame');
      }),
      { seed: 20_269, numRuns: 5000 },
    );
  });
});
