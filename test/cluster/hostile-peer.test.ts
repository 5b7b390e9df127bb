/**
 * A worker of a running topology is attacked by one that has a right to talk to it: same secret, right handshake, the place
 * of its real peer. Everything that a frame can say wrong is said. The run has to end with every row acked, by the same
 * processes that it began with.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger, systemClock } from '../../src/base/index.js';
import {
  encodeControlFrame,
  KIND_ACK,
  KIND_CREDIT,
  KIND_DATA,
  KIND_FAIL,
  KIND_MOVE,
  KIND_PRESSURE,
  PeerConnections,
  peerSocketPath,
  rowWordsOf,
} from '../../src/messaging/index.js';
import { until, Workshop } from './command.js';

interface Launch {
  readonly generation: number;
  readonly topologyId: string;
  readonly supervisorId: string;
  readonly port: number;
  readonly secret: string;
  readonly socketDirectory: string;
  readonly directory: string;
}

let workshop: Workshop;
beforeEach(() => {
  workshop = new Workshop();
});
afterEach(() => workshop.close());

const APP = (rows: number): string => `
import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from 'isobar';
const numbers = spout({
  emits: { value: t.int32 },
  async *read({ index, count }, from?: number) {
    for (let value = from ?? index; value < ${rows}; value += count) {
      if (value % 50 < 2) await pause(10);
      yield { row: { value }, position: value + count };
    }
  },
});
const pass = bolt({ takes: { value: t.int32 }, emits: { value: t.int32 }, process(row, out) { out.emit(row); } });
const print = bolt({ takes: { value: t.int32 }, process({ value }) { console.log('row ' + value); } });
export default topology('attacked', { 'topology.workers': 2, 'messaging.credit': 64, 'messaging.max-frame-bytes': 65536 }, (b) => {
  const source = b.spout('numbers', numbers, { parallelism: 2 });
  const passed = b.bolt('pass', pass, { parallelism: 2 }).fields(source, ['value']);
  b.bolt('print', print, { parallelism: 2 }).fields(passed, ['value']);
});
`;

function launches(): readonly Launch[] {
  const found: Launch[] = [];
  for (const name of readdirSync(workshop.home, { recursive: true, encoding: 'utf8' })) {
    if (/launch-[^/]*\.json$/u.test(name))
      found.push(JSON.parse(readFileSync(join(workshop.home, name), 'utf8')) as Launch);
  }
  return found.sort((a, b) => a.port - b.port);
}

function workerLogs(): string {
  return readdirSync(workshop.home, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('worker.log'))
    .map((name) => readFileSync(join(workshop.home, name), 'utf8'))
    .join('');
}

/** A frame whose header and rows say just that; `thread`, `generation`: of the receiving thread. */
function frame(
  kind: number,
  thread: number,
  generation: number,
  rows: readonly (readonly number[])[],
  blobBytes = 0,
  source: readonly [thread: number, generation: number] = [0, generation],
): Buffer {
  const rowWords = rowWordsOf(kind);
  const bytes = Buffer.alloc(4 * (8 + rows.length * rowWords) + blobBytes);
  const header = [kind, ...source, thread, generation, rows.length, blobBytes, 0];
  for (const [at, word] of [...header, ...rows.flat()].entries()) bytes.writeInt32LE(word | 0, 4 * at);
  return bytes;
}

/** What the log says of attacks that end a session. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['credit below zero', 'expected credit for a component, found -5 for 0'],
  ['credit for nothing', 'expected credit for a component, found 1 for 2147483647'],
  ['pressure of cycles that are not there', 'expected the state of a cycle, found 1 for 7'],
  ['a mark that is none', 'expected a mark of a move, found 9'],
  ['rows of a subscription that is none', 'subscription 77'],
  ['rows for tasks that are not there', 'task 2147483647'],
  ['rows with roots that are none', 'expected a root task, found 999'],
  ['rows that are other bytes', 'expected a row that ends at its length'],
  ['rows without credit', 'a peer sends rows without credit'],
  ['very many threads', 'a control message says nothing that is known'],
]);

describe('a worker whose peer is another than it thinks', () => {
  it('goes on with all rows and without a crash, whatever it is sent', async () => {
    const rows = 30_000;
    workshop.write('app.ts', APP(rows));
    const run = workshop.start(['run', 'app.ts', '--no-check', '--quiet']);
    const [first, second] = await until('two workers', () => {
      const found = launches();
      return run.stdout.includes('row ') && found.length === 2 ? (found as [Launch, Launch]) : undefined;
    });
    const workers = workshop.processes().filter(({ kind }) => kind === 'worker');
    expect(workers).toHaveLength(2);
    const key = ({ supervisorId, port }: Launch): string => `${supervisorId}:${port}`;
    const own = { index: 0, generation: first.generation, started: [] as number[][] };
    const most = 0x7fff_ffff;
    const [thread, generation] = [0, second.generation];
    const row = (over: Partial<Record<number, number>> = {}): number[] =>
      [0, 6, 4, 0, 0, 0, 0, 0, 4].map((word, at) => over[at] ?? word);
    const data = (...words: number[][]): Buffer =>
      frame(
        KIND_DATA,
        thread,
        generation,
        words,
        words.reduce((sum, each) => sum + each[8]!, 0),
        [own.index, own.generation],
      );
    const announce = (threads: unknown, cuts: unknown = []): Buffer =>
      encodeControlFrame({ kind: 'threads', number: 1, threads, cuts });
    const words = [0, 1, -1, 5, 1000, most, -most - 1];
    const attacks: readonly (readonly [string, readonly Buffer[]])[] = [
      [
        'acks and failures of what does not exist',
        [KIND_ACK, KIND_FAIL].map((kind) =>
          frame(
            kind,
            thread,
            generation,
            words.flatMap((a) => words.map((b) => [a, generation, b, a, b])),
          ),
        ),
      ],
      [
        'acks of what may exist, as nobody would send them',
        [
          frame(
            KIND_ACK,
            thread,
            generation,
            Array.from({ length: 500 }, (_, i) => [4, generation, i, i, 7]),
          ),
        ],
      ],
      [
        'credit beyond all bounds',
        [
          frame(KIND_CREDIT, thread, generation, [
            [0, most],
            [1, most],
            [2, most],
          ]),
        ],
      ],
      ['credit below zero', [frame(KIND_CREDIT, thread, generation, [[0, -5]])]],
      ['credit for nothing', [frame(KIND_CREDIT, thread, generation, [[most, 1]])]],
      ['pressure of cycles that are not there', [frame(KIND_PRESSURE, thread, generation, [[7, 1]])]],
      [
        'marks of moves',
        [
          frame(
            KIND_MOVE,
            thread,
            generation,
            words.flatMap((a) => [
              [1, a, 1],
              [2, a, 1],
              [3, a, 1],
            ]),
          ),
        ],
      ],
      ['a mark that is none', [frame(KIND_MOVE, thread, generation, [[9, 1, 1]])]],
      ['rows of a thread that was never announced', [data(...Array.from({ length: 500 }, () => row()))]],
      ['rows of a subscription that is none', [announce([own]), data(row({ 0: 77 }))]],
      ['rows for tasks that are not there', [announce([own]), data(row({ 1: most }), row({ 1: -1 }))]],
      ['rows with roots that are none', [announce([own]), data(row({ 3: 999 }))]],
      ['rows that are other bytes', [announce([own]), data(row({ 8: 3 }))]],
      [
        'rows without credit',
        [
          announce([own]),
          ...Array.from({ length: 3000 }, () => data(...Array.from({ length: 100 }, () => row({ 1: 6 })))),
        ],
      ],
      [
        'a thread that has all tasks there can be, some of them leaving',
        [
          announce(
            [{ ...own, started: [[0, Number.MAX_SAFE_INTEGER]] }],
            [
              { task: 1, id: 1 },
              { task: Number.MAX_SAFE_INTEGER, id: 2 },
            ],
          ),
        ],
      ],
      ['very many threads', [announce(Array.from({ length: 50_000 }, (_, index) => ({ ...own, index })))]],
      ['what is no message', [encodeControlFrame({ kind: 'threads' }), encodeControlFrame(7)]],
      [
        'threads that come and go',
        Array.from({ length: 200 }, (_, i) =>
          encodeControlFrame({
            kind: 'threads',
            number: i,
            cuts: [],
            threads: i % 2 === 0 ? [{ ...own, generation: i }] : [],
          }),
        ),
      ],
      [
        'frames for threads that are not there',
        [frame(KIND_ACK, -1, 0, []), frame(KIND_ACK, most, most, [])],
      ],
    ];
    // It would take its place back before an attack is over.
    const real = workers.find(({ pid }) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(first.directory),
    )!;
    process.kill(real.pid, 'SIGSTOP');
    for (const [what, frames] of attacks) {
      let isUp = false;
      let isLost = false;
      const impostor = new PeerConnections({
        topologyId: first.topologyId,
        self: key(first),
        generation: first.generation,
        secret: first.secret,
        listen: { kind: 'unix', path: join(workshop.directory, 'impostor.sock') },
        maxFrameBytes: 1 << 24,
        reconnectTimeoutMs: 5000,
        clock: systemClock,
        logger: silentLogger,
        onFrame: () => undefined,
        onUp: () => {
          isUp = true;
        },
        onLost: () => {
          isLost = true;
        },
      });
      await impostor.listen();
      const path = peerSocketPath(second.socketDirectory, second.topologyId, {
        supervisor: second.supervisorId,
        port: second.port,
      });
      impostor.setPeers(new Map([[key(second), { kind: 'unix', path }]]));
      await until(`a handshake before: ${what}`, () => isUp);
      for (const each of frames) impostor.send(key(second), each);
      // Refused, or taken.
      await until(
        `the end of: ${what}`,
        () => isLost || impostor.stats().every(({ bufferedBytes }) => bufferedBytes === 0),
      );
      // What a thread finds wrong it says a little later.
      const isRefused = REFUSED.get(what);
      if (isRefused !== undefined)
        await until(`that it is refused: ${what}`, () => workerLogs().includes(isRefused));
      // Silently: saying goodbye would be a claim that the process has ended, and a row could be behind that.
      impostor.setPeers(new Map());
      await impostor.close();
    }
    process.kill(real.pid, 'SIGCONT');
    expect(workshop.processes().filter(({ kind }) => kind === 'worker')).toEqual(workers);
    const ended = await run.ended;
    expect(ended.stderr).not.toContain('worker.crashed');
    const printed = new Set(ended.stdout.match(/^row \d+$/gmu));
    expect(printed.size).toBe(rows);
    expect(ended.stderr).toBe('');
    expect(ended.code).toBe(0);
  }, 120_000);
});
