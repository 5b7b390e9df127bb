/**
 * The description of a topology: plain data, the same for everybody who builds the same file.
 *
 * It is what the command line submits, Nimbus validates and stores, the scheduler plans from, and each worker compares
 * with the graph that it has rebuilt. It holds no functions and no values of user code.
 */
import type { RawSettings } from '../base/index.js';

/** The kinds of a field. `int64` is a safe integer; `timestamp` is milliseconds since the epoch as a number. */
export type FieldKind =
  | 'string'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'float64'
  | 'bytes'
  | 'timestamp'
  | 'bigint'
  | 'json';

export interface FieldDescription {
  readonly name: string;
  readonly kind: FieldKind;
  readonly nullable: boolean;
}

/** Name of a component's main stream, and of a bolt's only input. */
export const DEFAULT_STREAM = 'default';

export interface StreamDescription {
  readonly name: string;
  /** In declared order. */
  readonly fields: readonly FieldDescription[];
}

export type GroupingDescription =
  | { readonly kind: 'shuffle' | 'local-or-shuffle' | 'all' | 'global' | 'none' | 'direct' | 'custom' }
  | { readonly kind: 'fields' | 'partial-key'; readonly fields: readonly string[] };

/** One edge of the graph. */
export interface SubscriptionDescription {
  /** Name of the bolt's input; `default` where the bolt has just one. */
  readonly input: string;
  readonly source: string;
  readonly stream: string;
  readonly grouping: GroupingDescription;
}

export interface ComponentDescription {
  readonly id: string;
  readonly kind: 'spout' | 'bolt';
  /** Parallelism hint: executors asked for. */
  readonly parallelism: number;
  /** Tasks asked for; null: `topology.tasks` or the hint. */
  readonly tasks: number | null;
  /** Declared streams, `default` first where there is one, then in declared order. */
  readonly streams: readonly StreamDescription[];
  /** Bolts: fields that each input takes. Spouts: empty. */
  readonly inputs: readonly { readonly name: string; readonly fields: readonly FieldDescription[] }[];
  /** Bolts: in the order in which they were added. Spouts: empty. */
  readonly subscriptions: readonly SubscriptionDescription[];
  /** Bolts: `prepare` was given, so tasks have state. */
  readonly stateful: boolean;
  /** Declared movable: the scheduler may move tasks although their state stays behind. */
  readonly movable: boolean;
  /** Period of `tick` in ms; null: none. */
  readonly tickMs: number | null;
  /** Bolts: rows are acked by user code. */
  readonly manual: boolean;
  /** Async bolts: no order is kept. */
  readonly unordered: boolean;
  /** Executors of components with the same name may share a slot; not given: `default`. */
  readonly slotSharingGroup?: string;
  /** The i-th executors of components with the same name share a slot. */
  readonly coLocationGroup?: string;
  /** What one executor weighs when load is balanced; not given: 1. */
  readonly load?: number;
}

export interface TopologyDescription {
  readonly format: 1;
  readonly name: string;
  /** As the file gives them; the command line's `--set` is laid over them at submission. */
  readonly settings: RawSettings;
  /** In the order in which they were added. */
  readonly components: readonly ComponentDescription[];
  /** Sentences worth showing at submission (unreachable components, cycles, …). */
  readonly warnings: readonly string[];
}
