/** What very many tasks cost: counted, not timed. Nothing may grow with the square of their number. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { compileSettings, silentLogger, systemClock } from '../base/index.js';
import { allocateRing, Doorbell } from '../messaging/index.js';
import { planTopology } from '../scheduling/index.js';
import { bolt, buildTopology, spout, t, topology } from '../topology/index.js';
import { C_ACKED, C_EXECUTED, CounterStore, openCounters } from './counters.js';
import { EdgeIds } from './acking/edge-ids.js';
import { createFactory, createTask } from './executor-factory.js';
import { SharedGate } from './link.js';
import { componentOf, TaskBook } from './task-book.js';
import { ThreadContext, type LocalTarget } from './thread-context.js';
import { ThreadRoutes } from './thread-routes.js';
import { ThreadHarness } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

const ROW = { n: t.int32 };
const numbers = spout({
  emits: ROW,
  *read({ index, count }, from?: number) {
    for (let n = from ?? index; n < 2000; n += count) yield { row: { n }, position: n + count };
  },
});
const sink = bolt({ takes: ROW, process() {} });
const pass = bolt({ takes: ROW, emits: ROW, process: (row, out) => out.emit(row) });

describe('a thread with very many tasks', () => {
  it('tells of those that run in few messages, and runs them all', async () => {
    const tasks = 2000;
    const run = (harness = new ThreadHarness(
      topology('wide', (b) => {
        b.bolt('sink', sink, { parallelism: tasks }).shuffle(b.spout('numbers', numbers));
      }),
      { threads: 1 },
    ));
    await run.runToEnd();
    expect(run.totals('sink').executed).toBe(2000);
    // Twice as many each time.
    expect(run.startedMessages).toBeLessThanOrEqual(12);
  });

  it('starts those behind one whose prepare never settles', async () => {
    const stuck = bolt({ takes: ROW, prepare: () => new Promise<never>(() => undefined) });
    const run = (harness = new ThreadHarness(
      topology('stuck', (b) => {
        const source = b.spout('numbers', numbers);
        b.bolt('a-stuck', stuck, { parallelism: 100 }).shuffle(b.spout('other', numbers));
        b.bolt('sink', sink, { parallelism: 500 }).shuffle(source);
      }),
      { threads: 1, settings: { 'supervisor.worker-stop-timeout': 0 } },
    ));
    await run.until('all rows', () => run.totals('numbers').acked === 2000);
  });

  it('looks at the receivers of an edge once, however many senders it has', async () => {
    const many = 300;
    const built = buildTopology(
      topology('square', (b) => {
        const senders = b.bolt('senders', pass, { parallelism: many }).shuffle(b.spout('numbers', numbers));
        b.bolt('receivers', sink, { parallelism: many }).shuffle(senders);
      }),
    );
    const settings = compileSettings(built.description.settings);
    const { tasks } = planTopology(built.description, settings);
    const context = new ThreadContext({
      topology: built,
      topologyId: 'square-1-0',
      settings,
      generation: 1,
      clock: systemClock,
      logger: silentLogger,
      edgeIds: new EdgeIds(1, 2),
      random: () => 0.5,
      deadLetterDirectory: '/nonexistent',
      acking: true,
      post: () => undefined,
      wake: () => undefined,
      aloneMarks: { set: () => undefined, clear: () => undefined },
      progress: new Int32Array(16),
    });
    const factory = createFactory(context, tasks, silentLogger);
    let looks = 0;
    const gate = new SharedGate();
    // Routes look at gates only.
    const target = {
      get gate() {
        looks++;
        return gate;
      },
      cycleGate: gate,
    } as unknown as LocalTarget;
    const rangeOf = (id: string) => tasks.find(({ component }) => component === id)!;
    for (const id of ['senders', 'receivers'])
      for (let task = rangeOf(id).first; task <= rangeOf(id).last; task++) context.setTarget(task, target);
    const store = new CounterStore();
    const gatesOf: (readonly object[])[] = [];
    const executors = [];
    for (let task = rangeOf('senders').first; task <= rangeOf('senders').last; task++) {
      const start = { task, component: 'senders', counters: store.allocate(), crashes: 0, generation: 1 };
      const created = await createTask(factory, {
        ...start,
        position: undefined,
        saved: null,
        isArrival: false,
      });
      executors.push({
        tasks: [created.task],
        setGates: (gates: readonly object[]) => void gatesOf.push(gates),
      });
    }
    const ring = (): SharedArrayBuffer => allocateRing(4096);
    const start = {
      index: 0,
      generation: 1,
      toMain: ring(),
      fromMain: ring(),
      mainDoorbell: Doorbell.allocate(),
    };
    // The parts of a thread's start that routes read.
    const routes = new ThreadRoutes(start as never, factory, () => undefined);
    const endpointOfTask = new Int32Array(factory.lastTask + 1).fill(0);
    const endpoint = {
      id: 0,
      thread: 0,
      generation: 1,
      peer: -1,
      outgoing: null,
      incoming: null,
      doorbell: null,
    };
    const message = {
      kind: 'routes',
      version: 1,
      tasks,
      endpointOfTask,
      endpoints: [endpoint],
      held: [],
      lost: false,
      hasEnded: false,
    } as const;
    routes.apply(message, executors);
    expect(gatesOf).toHaveLength(many);
    // The receivers share a gate, and so one look does for each row.
    for (const gates of gatesOf) expect(gates.filter((one) => one === gate)).toHaveLength(1);
    expect(looks).toBe(many);
  });
});

describe('a shared gate', () => {
  it('is blocked while any of those who closed it has not opened it again', () => {
    const gate = new SharedGate();
    gate.close();
    gate.close();
    gate.open();
    expect(gate.blocked).toBe(true);
    gate.open();
    expect(gate.blocked).toBe(false);
  });
});

describe('the counters of very many tasks', () => {
  it('are in few buffers, and in places of their own', () => {
    const store = new CounterStore();
    const blocks = Array.from({ length: 10_000 }, () => openCounters(store.allocate()));
    expect(store.buffers).toBeLessThan(60);
    for (const [i, { counters, sketch }] of blocks.entries()) {
      counters.fill(i);
      sketch.fill(-i - 1);
    }
    for (const [i, { counters, sketch }] of blocks.entries()) {
      expect([counters[0], counters.at(-1), sketch[0], sketch.at(-1)]).toEqual([i, i, -i - 1, -i - 1]);
    }
  });

  it('of one component are summed into its latency, also what is noted a moment after it was counted', () => {
    const book = new TaskBook();
    for (let task = 1; task <= 100; task++) book.add(task, 'many', false, 0);
    const samples = (): number =>
      book.componentReports(() => ({}))[0]!.executeMicros.reduce((sum, [, count]) => sum + count, 0);
    const { counters, sketch } = book.get(77)!.block;
    expect(samples()).toBe(0);
    counters[C_EXECUTED]!++;
    expect(samples()).toBe(0);
    sketch[10]!++;
    expect(samples()).toBe(1);
    counters[C_ACKED]!++;
    sketch[10]!++;
    expect([samples(), samples(), samples()]).toEqual([2, 2, 2]);
  });
});

describe('the component of a task', () => {
  it('is the one whose numbers it is among', () => {
    const sizes = fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 0, max: 2 })), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(sizes, (list) => {
        let next = 1;
        const tasks = list.map(([size, gap], i) => {
          const first = next + gap;
          next = first + size;
          return { component: `c${i}`, first, last: next - 1 };
        });
        for (let task = 0; task <= next + 1; task++) {
          const found = tasks.find(({ first, last }) => first <= task && task <= last)?.component ?? null;
          expect(componentOf(tasks, task)).toBe(found);
        }
      }),
      { seed: 20_270, numRuns: 200 },
    );
  });
});
