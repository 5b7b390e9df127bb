/**
 * What a worker runs: the definitions of one built topology with their types erased. The typed API
 * (`spout`, `bolt`, `topology`) produces these; only a worker calls them.
 */
import type { Clock, Logger, Settings } from '../base/index.js';
import type { TopologyDescription } from './description.js';

/** A row as user code sees it: one canonical shape per stream, read-only. */
export type Row = Readonly<Record<string, unknown>>;

export interface TaskMetrics {
  /** Adds to a counter of this component. */
  count(name: string, by?: number): void;
}

/** What a task is told about itself; never a global. */
export interface TaskContext {
  readonly topology: string;
  readonly component: string;
  /** Number of this task in the topology, from 1. */
  readonly task: number;
  /** Place of this task among those of its component, from 0. */
  readonly index: number;
  /** Number of tasks of the component. */
  readonly count: number;
  /** Raised at each start of this task; fences writes to the outside. */
  readonly generation: number;
  readonly settings: Settings;
  readonly logger: Logger;
  readonly metrics: TaskMetrics;
  readonly clock: Clock;
  /** Aborted when the task must stop now. */
  readonly signal: AbortSignal;
}

/** Options of one emit. */
export interface EmitOptions {
  /** Manual bolts: the rows that caused this one. Default: the row being processed. */
  readonly anchors?: readonly Anchor[];
  /** Spouts: where reading goes on after this row. Rows with a position are replayed until acked. */
  readonly position?: unknown;
  /** Low-level spouts: handed back to `ack` and `fail`. */
  readonly id?: unknown;
}

/**
 * The untyped collector behind `out`. The typed `out` is built once for each RuntimeOut and found again by identity, so
 * give a task the same one as long as its calls do not overlap, and one of its own to each call that lasts.
 */
export interface RuntimeOut {
  /** Emits to a stream of this component; `direct` names the index (from 0) of the receiving task of direct subscribers. */
  emit(stream: string, row: Row, options?: EmitOptions, direct?: number): void;
}

/** A row that a manual bolt holds. */
export interface Anchor {
  ack(): void;
  fail(error?: unknown): void;
}

/** One item of `read`. `stream` is `default` if absent. */
export interface SourceRow {
  readonly row: Row;
  readonly position?: unknown;
  readonly stream?: string;
  /** Rows that the source has yet to give behind this one, if it knows. */
  readonly lag?: number;
}

export interface RuntimeSource {
  /**
   * Asks for rows. Returns (or resolves to) `'ended'` when there will never be more, `'idle'` when there is nothing
   * now; anything else means: call again.
   */
  next(out: RuntimeOut): unknown;
  /** Rows that it has yet to give, if it knows: a number, or undefined. */
  lag?(): unknown;
  /** May return a promise; its rejection is reported. */
  ack?(id: unknown): unknown;
  fail?(id: unknown, reason: string): unknown;
  activate?(): unknown;
  deactivate?(): unknown;
  close?(): unknown;
}

export interface RuntimeSpout {
  readonly kind: 'spout';
  /** Generator style. Exactly one of `read` and `open` is set. */
  readonly read?: (
    context: TaskContext,
    from: unknown,
  ) => Iterable<SourceRow | readonly SourceRow[]> | AsyncIterable<SourceRow | readonly SourceRow[]>;
  /** Low-level style. */
  readonly open?: (context: TaskContext, from: unknown) => RuntimeSource | Promise<RuntimeSource>;
}

export interface BoltTask {
  /** By input name. A returned promise makes the call asynchronous. `anchor` is given to manual bolts only. */
  readonly process: Readonly<Record<string, (row: Row, out: RuntimeOut, anchor?: Anchor) => unknown>>;
  readonly tick?: (out: RuntimeOut) => unknown;
  readonly end?: (out: RuntimeOut) => unknown;
  readonly save?: () => unknown;
  readonly close?: () => unknown;
}

export interface RuntimeBolt {
  readonly kind: 'bolt';
  /** Once per task; `saved` is what `save` returned before a planned move. May return a promise. */
  create(context: TaskContext, saved: unknown): BoltTask | Promise<BoltTask>;
}

/** A user's grouping: chosen indexes (from 0) among the receiving component's tasks. */
export interface CustomGrouping<R = Row> {
  prepare?(source: string, stream: string, taskCount: number): void;
  choose(row: R, taskCount: number): number | readonly number[];
}

/** A topology as a worker has it after evaluating the bundle. */
export interface BuiltTopology {
  readonly description: TopologyDescription;
  readonly components: ReadonlyMap<string, RuntimeSpout | RuntimeBolt>;
  /** Factories of custom groupings, by `${bolt id}#${place in its subscriptions}`. */
  readonly customGroupings: ReadonlyMap<string, () => CustomGrouping>;
}
