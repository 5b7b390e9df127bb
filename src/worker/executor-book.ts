/**
 * The executors of this worker: which thread hosts each, and their counters, which outlive a restart of the thread.
 */
import { toSketchPairs } from '../base/index.js';
import type { ComponentReport, TaskReport } from '../coordination/index.js';
import type { ComponentTasks, ExecutorRange } from '../scheduling/index.js';
import {
  allocateCounters,
  C_ACKED,
  C_DEAD_LETTERS,
  C_EMITTED,
  C_ENDED,
  C_EXECUTED,
  C_FAILED,
  C_FAILURES_BY_REASON,
  C_GENERATION,
  C_PENDING,
  C_QUEUED,
  C_REPLAYED,
  C_REPLAYS_BY_REASON,
  C_STOPPED,
  C_TRANSFERRED,
  C_TREES,
  COUNTER_FIELDS,
  FAILURE_REASONS,
  openCounters,
  type CounterBlock,
} from './counters.js';

export interface HostedExecutor {
  readonly range: ExecutorRange;
  readonly component: string;
  thread: number;
  readonly counters: SharedArrayBuffer;
  readonly block: CounterBlock;
  /** Crashes of its thread since a row of it last got through, by task (spouts). */
  readonly crashes: Map<number, number>;
}

export class ExecutorBook {
  readonly #executors = new Map<number, HostedExecutor>();

  add(range: ExecutorRange, component: string, thread: number): HostedExecutor {
    const taskCount = range[1] - range[0] + 1;
    const counters = allocateCounters(taskCount);
    const executor: HostedExecutor = {
      range,
      component,
      thread,
      counters,
      block: openCounters(counters, taskCount),
      crashes: new Map(),
    };
    this.#executors.set(range[0], executor);
    return executor;
  }

  remove(first: number): void {
    this.#executors.delete(first);
  }

  get(first: number): HostedExecutor | undefined {
    return this.#executors.get(first);
  }

  all(): readonly HostedExecutor[] {
    return [...this.#executors.values()];
  }

  ofThread(thread: number): readonly HostedExecutor[] {
    return this.all().filter((executor) => executor.thread === thread);
  }

  /**
   * Counts a crash of a thread for each spout task that had rows out: one of them may be behind it. A thread that ends
   * while its tasks are prepared, or that has read nothing, says nothing about any row. Call it before `resetDepths`.
   */
  noteCrash(thread: number): void {
    for (const { range, crashes, block } of this.ofThread(thread)) {
      for (let task = range[0]; task <= range[1]; task++) {
        if (block.counters[(task - range[0]) * COUNTER_FIELDS + C_TREES]! === 0) continue;
        crashes.set(task, (crashes.get(task) ?? 0) + 1);
      }
    }
  }

  /** Depths and flags of a thread that is gone mean nothing any more; totals stay. */
  resetDepths(thread: number): void {
    for (const { block } of this.ofThread(thread)) {
      for (let base = 0; base < block.counters.length; base += COUNTER_FIELDS) {
        for (const field of [C_QUEUED, C_ENDED, C_STOPPED, C_TREES]) block.counters[base + field] = 0;
        // A root task that is gone still owes an answer: nobody may take it for complete.
        block.counters[base + C_PENDING] = 0;
      }
    }
  }

  /** Sums over all tasks, for the watch over a worker that does nothing. */
  activity(): { readonly progress: number; readonly queued: number; readonly pendingTrees: number } {
    let [progress, queued, pendingTrees] = [0, 0, 0];
    for (const { block } of this.#executors.values()) {
      const { counters } = block;
      for (let base = 0; base < counters.length; base += COUNTER_FIELDS) {
        for (const field of [C_EMITTED, C_EXECUTED, C_ACKED, C_FAILED]) progress += counters[base + field]!;
        queued += counters[base + C_QUEUED]!;
        pendingTrees += counters[base + C_PENDING]!;
      }
    }
    return { progress, queued, pendingTrees };
  }

  taskReports(): TaskReport[] {
    return this.all().flatMap(({ range: [first], component, block: { counters } }) =>
      Array.from({ length: counters.length / COUNTER_FIELDS }, (_, index): TaskReport => {
        const at = (field: number): number => counters[index * COUNTER_FIELDS + field]!;
        return {
          task: first + index,
          component,
          emitted: at(C_EMITTED),
          transferred: at(C_TRANSFERRED),
          executed: at(C_EXECUTED),
          acked: at(C_ACKED),
          failed: at(C_FAILED),
          replayed: at(C_REPLAYED),
          deadLetters: at(C_DEAD_LETTERS),
          queued: at(C_QUEUED),
          pending: at(C_PENDING),
          ended: at(C_ENDED) === 1,
          stopped: at(C_STOPPED) === 1,
          generation: at(C_GENERATION),
        };
      }),
    );
  }

  componentReports(userCounters: (component: string) => Record<string, number>): ComponentReport[] {
    const byComponent = new Map<string, HostedExecutor[]>();
    for (const executor of this.#executors.values()) {
      const list = byComponent.get(executor.component);
      if (list === undefined) byComponent.set(executor.component, [executor]);
      else list.push(executor);
    }
    return [...byComponent].map(([component, executors]) => ({
      component,
      executeMicros: toSketchPairs(sumBuckets(executors.map(({ block }) => block.executeSketch))),
      completeMicros: toSketchPairs(sumBuckets(executors.map(({ block }) => block.completeSketch))),
      failures: sumReasons(executors, C_FAILURES_BY_REASON),
      replays: sumReasons(executors, C_REPLAYS_BY_REASON),
      counters: userCounters(component),
    }));
  }
}

/** Component of a task by the numbering. */
export function componentOf(tasks: readonly ComponentTasks[], task: number): string | null {
  return tasks.find(({ first, last }) => first <= task && task <= last)?.component ?? null;
}

function sumBuckets(sketches: readonly Int32Array[]): Int32Array {
  const [only] = sketches;
  if (sketches.length === 1) return only!;
  const sum = new Int32Array(only!.length);
  for (const sketch of sketches) for (let i = 0; i < sum.length; i++) sum[i]! += sketch[i]!;
  return sum;
}

function sumReasons(executors: readonly HostedExecutor[], firstField: number): Record<string, number> {
  const sums: Record<string, number> = {};
  FAILURE_REASONS.forEach((reason, place) => {
    let sum = 0;
    for (const { block } of executors) {
      for (let base = 0; base < block.counters.length; base += COUNTER_FIELDS)
        sum += block.counters[base + firstField + place]!;
    }
    if (sum > 0) sums[reason] = sum;
  });
  return sums;
}
