/**
 * The tasks of this worker: which thread hosts each, and their counters, which outlive a restart of the thread and a change
 * of it. What tasks that have left have counted stays in the sums, so that no total of this worker goes backwards.
 */
import { toSketchPairs, type SketchPairs } from '../base/index.js';
import type { ComponentReport, TaskCounts, TaskReport } from '../coordination/index.js';
import type { ComponentTasks, ExecutorRange } from '../scheduling/index.js';
import {
  CounterStore,
  C_ACKED,
  C_BLOCKED_MS,
  C_BUSY_MS,
  C_DEAD_LETTERS,
  C_EMITTED,
  C_ENDED,
  C_EXECUTED,
  C_FAILED,
  C_FAILURES_BY_REASON,
  C_GENERATION,
  C_LAG,
  C_MOVABLE,
  C_PENDING,
  C_QUEUED,
  C_REPLAYED,
  C_REPLAYS_BY_REASON,
  C_STOPPED,
  C_TRANSFERRED,
  C_TREES,
  C_UNREPLAYABLE,
  FAILURE_REASONS,
  openCounters,
  type CounterBlock,
  type CounterPlace,
} from './counters.js';

export interface HostedTask {
  readonly task: number;
  readonly component: string;
  readonly isSpout: boolean;
  thread: number;
  readonly counters: CounterPlace;
  readonly block: CounterBlock;
  /** Crashes of its thread since a row of it last got through (spouts). */
  crashes: number;
  /** `placed`: its thread has not been told yet. */
  state: 'placed' | 'starting' | 'running';
}

/** From so many tasks of a component on, what is costly to sum is kept. */
const MANY_TASKS = 64;

export class TaskBook {
  readonly #tasks = new Map<number, HostedTask>();
  readonly #store = new CounterStore();
  /** Sums over tasks that have gone, by component. */
  readonly #former = new Map<string, { readonly isSpout: boolean; readonly block: CounterBlock }>();
  /** By component, with what had been counted then. */
  readonly #latencies = new Map<
    string,
    {
      readonly counted: number;
      readonly blocks: number;
      readonly isSettled: boolean;
      readonly pairs: SketchPairs;
    }
  >();

  add(task: number, component: string, isSpout: boolean, thread: number): HostedTask {
    const counters = this.#store.allocate();
    const block = openCounters(counters);
    const hosted: HostedTask = {
      task,
      component,
      isSpout,
      thread,
      counters,
      block,
      crashes: 0,
      state: 'placed',
    };
    this.#tasks.set(task, hosted);
    return hosted;
  }

  /** A task is not here any more; what it has counted stays. */
  remove(task: number): void {
    const hosted = this.#tasks.get(task);
    if (hosted === undefined) return;
    this.#tasks.delete(task);
    const { component, isSpout, block } = hosted;
    const former = this.#former.get(component);
    if (former === undefined) this.#former.set(component, { isSpout, block: copyOf(block) });
    else addTo(former.block, block);
  }

  get(task: number): HostedTask | undefined {
    return this.#tasks.get(task);
  }

  all(): readonly HostedTask[] {
    return [...this.#tasks.values()];
  }

  ofThread(thread: number): readonly HostedTask[] {
    return this.all().filter((hosted) => hosted.thread === thread);
  }

  /**
   * Counts a crash of a thread for each spout task that had rows out: one of them may be behind it. A thread that ends
   * while its tasks are prepared, or that has read nothing, says nothing about any row. Call it before `resetDepths`.
   */
  noteCrash(thread: number): void {
    for (const hosted of this.ofThread(thread)) if (hosted.block.counters[C_TREES]! > 0) hosted.crashes++;
  }

  /** Depths and flags of a thread that is gone mean nothing any more; totals stay. */
  resetDepths(thread: number): void {
    for (const { block } of this.ofThread(thread)) {
      // A root task that is gone still owes an answer: nobody may take it for complete.
      for (const field of [C_QUEUED, C_PENDING, C_ENDED, C_STOPPED, C_TREES, C_LAG])
        block.counters[field] = 0;
    }
  }

  /** Sums over all tasks, for the watch over a worker that does nothing. */
  activity(): { readonly progress: number; readonly queued: number; readonly pendingTrees: number } {
    let [progress, queued, pendingTrees] = [0, 0, 0];
    for (const { block } of this.#former.values()) progress += block.counters[C_EXECUTED]!;
    for (const { counters } of this.#blocks()) {
      for (const field of [C_EMITTED, C_EXECUTED, C_ACKED, C_FAILED]) progress += counters[field]!;
      queued += counters[C_QUEUED]!;
      pendingTrees += counters[C_PENDING]!;
    }
    return { progress, queued, pendingTrees };
  }

  taskReports(): TaskReport[] {
    return this.all().map(({ task, component, state, block: { counters } }): TaskReport => {
      const at = (field: number): number => counters[field]!;
      return {
        task,
        component,
        emitted: at(C_EMITTED),
        transferred: at(C_TRANSFERRED),
        executed: at(C_EXECUTED),
        acked: at(C_ACKED),
        failed: at(C_FAILED),
        replayed: at(C_REPLAYED),
        deadLetters: at(C_DEAD_LETTERS),
        unreplayable: at(C_UNREPLAYABLE),
        busyMs: at(C_BUSY_MS),
        blockedMs: at(C_BLOCKED_MS),
        queued: at(C_QUEUED),
        pending: at(C_PENDING),
        ended: at(C_ENDED) === 1,
        stopped: at(C_STOPPED) === 1,
        generation: at(C_GENERATION),
        movable: at(C_MOVABLE) === 1,
        isRunning: state === 'running',
        ...(at(C_LAG) > 0 ? { lag: at(C_LAG) - 1 } : {}),
      };
    });
  }

  componentReports(userCounters: (component: string) => Record<string, number>): ComponentReport[] {
    const byComponent = new Map<string, { readonly isSpout: boolean; readonly blocks: CounterBlock[] }>();
    for (const [component, { isSpout, block }] of this.#former)
      byComponent.set(component, { isSpout, blocks: [block] });
    for (const { component, isSpout, block } of this.#tasks.values()) {
      const known = byComponent.get(component);
      if (known === undefined) byComponent.set(component, { isSpout, blocks: [block] });
      else known.blocks.push(block);
    }
    return [...byComponent].map(([component, { isSpout, blocks }]) => {
      const latency = this.#latencyOf(component, blocks);
      const former = this.#former.get(component);
      return {
        component,
        executeMicros: isSpout ? [] : latency,
        completeMicros: isSpout ? latency : [],
        failures: sumReasons(blocks, C_FAILED, C_FAILURES_BY_REASON),
        replays: sumReasons(blocks, C_REPLAYED, C_REPLAYS_BY_REASON),
        counters: userCounters(component),
        ...(former === undefined ? {} : { departed: countsOf(former.block) }),
      };
    });
  }

  /** Sketches are large: those of many tasks are summed again only when rows have been counted since the time before the last. */
  #latencyOf(component: string, blocks: readonly CounterBlock[]): SketchPairs {
    if (blocks.length < MANY_TASKS) return toSketchPairs(sumSketches(blocks));
    let counted = 0;
    for (const { counters } of blocks) counted += counters[C_EXECUTED]! + counters[C_ACKED]!;
    const known = this.#latencies.get(component);
    const isSame = known?.counted === counted && known.blocks === blocks.length;
    if (isSame && known.isSettled) return known.pairs;
    const pairs = toSketchPairs(sumSketches(blocks));
    // A row's latency is noted a moment before or after it is counted.
    this.#latencies.set(component, { counted, blocks: blocks.length, isSettled: isSame, pairs });
    return pairs;
  }

  #blocks(): CounterBlock[] {
    return this.all().map(({ block }) => block);
  }
}

/** Component of a task by the numbering, whose entries are in order of their tasks. */
export function componentOf(tasks: readonly ComponentTasks[], task: number): string | null {
  let [low, high] = [0, tasks.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (tasks[middle]!.last < task) low = middle + 1;
    else high = middle;
  }
  const found = tasks[low];
  return found !== undefined && found.first <= task ? found.component : null;
}

export function tasksOf(ranges: readonly ExecutorRange[]): number[] {
  const tasks: number[] = [];
  for (const [first, last] of ranges) for (let task = first; task <= last; task++) tasks.push(task);
  return tasks;
}

/** Ascending task numbers as ranges. */
export function rangesOf(tasks: Iterable<number>): ExecutorRange[] {
  const ranges: [number, number][] = [];
  for (const task of [...tasks].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last?.[1] === task - 1) last[1] = task;
    else ranges.push([task, task]);
  }
  return ranges;
}

/** Totals only: depths and flags of a task that is gone mean nothing. */
const TOTALS = [
  C_EMITTED,
  C_TRANSFERRED,
  C_EXECUTED,
  C_ACKED,
  C_FAILED,
  C_REPLAYED,
  C_DEAD_LETTERS,
  C_UNREPLAYABLE,
  C_BUSY_MS,
  C_BLOCKED_MS,
  ...FAILURE_REASONS.flatMap((_, place) => [C_FAILURES_BY_REASON + place, C_REPLAYS_BY_REASON + place]),
];

function copyOf(block: CounterBlock): CounterBlock {
  const copy = openCounters(new CounterStore().allocate());
  addTo(copy, block);
  return copy;
}

function addTo(sum: CounterBlock, { counters, sketch }: CounterBlock): void {
  for (const field of TOTALS) sum.counters[field]! += counters[field]!;
  for (let i = 0; i < sketch.length; i++) sum.sketch[i]! += sketch[i]!;
}

function countsOf({ counters }: CounterBlock): TaskCounts {
  return {
    emitted: counters[C_EMITTED]!,
    transferred: counters[C_TRANSFERRED]!,
    executed: counters[C_EXECUTED]!,
    acked: counters[C_ACKED]!,
    failed: counters[C_FAILED]!,
    replayed: counters[C_REPLAYED]!,
    deadLetters: counters[C_DEAD_LETTERS]!,
    unreplayable: counters[C_UNREPLAYABLE]!,
    busyMs: counters[C_BUSY_MS]!,
    blockedMs: counters[C_BLOCKED_MS]!,
  };
}

function sumSketches(blocks: readonly CounterBlock[]): Int32Array {
  const [only] = blocks;
  if (blocks.length === 1) return only!.sketch;
  const sum = new Int32Array(only!.sketch.length);
  for (const { counters, sketch } of blocks) {
    if (counters[C_EXECUTED] === 0 && counters[C_ACKED] === 0) continue;
    for (let i = 0; i < sum.length; i++) sum[i]! += sketch[i]!;
  }
  return sum;
}

/** `totalField` counts them all: most tasks have none. */
function sumReasons(
  blocks: readonly CounterBlock[],
  totalField: number,
  firstField: number,
): Record<string, number> {
  const sums = new Array<number>(FAILURE_REASONS.length).fill(0);
  for (const { counters } of blocks) {
    if (counters[totalField] === 0) continue;
    for (let place = 0; place < sums.length; place++) sums[place]! += counters[firstField + place]!;
  }
  return Object.fromEntries(
    FAILURE_REASONS.flatMap((reason, i) => (sums[i]! > 0 ? [[reason, sums[i]!]] : [])),
  );
}
