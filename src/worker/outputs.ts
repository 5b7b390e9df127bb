/**
 * The outgoing edges of one task: for each stream its codec and, for each subscription, a router and the gates that
 * tell whether the receiving component takes rows.
 */
import type { CustomGrouping, GroupingDescription, Row } from '../topology/index.js';
import type { RowCodec } from '../messaging/index.js';
import type { EdgeIds } from './acking/edge-ids.js';
import { createRouter } from './routing/groupings.js';

/** One subscription of the topology with everything that its sender needs, the same for all tasks of the sender. */
export interface Edge {
  readonly subscription: number;
  /** Name of the receiving bolt's input. */
  readonly input: string;
  readonly source: string;
  readonly stream: string;
  readonly target: string;
  /** Index of the receiving component in the description. */
  readonly targetComponent: number;
  /** Both ends are in the same cycle of the graph. */
  readonly inCycle: boolean;
  /** Number of that cycle; -1: none. */
  readonly cycle: number;
  /**
   * What credit is counted by: the receiving component, and apart from that the rows of its own cycle; else rows from
   * outside could use up the credit that the cycle needs to run dry.
   */
  readonly creditClass: number;
  readonly grouping: GroupingDescription;
  /** Of the fields that the receiver is given. */
  readonly codec: RowCodec;
  /** Makes what a receiver in the same thread is given; null: the stream's row itself. */
  readonly narrow: ((row: Row) => Row) | null;
  readonly customGrouping: (() => CustomGrouping) | undefined;
  /** Numbers of the receiving tasks are firstTask … firstTask + taskCount − 1. */
  readonly firstTask: number;
  readonly taskCount: number;
}

export type TaskRouter = ReturnType<typeof createRouter>;

export interface Output {
  readonly edge: Edge;
  readonly router: TaskRouter;
}

export interface StreamOutputs {
  readonly name: string;
  readonly codec: RowCodec;
  readonly outputs: readonly Output[];
}

/** Builds the outputs of one task, by stream name. `inGrouping` runs code of custom groupings. */
export function createOutputs(
  streams: readonly { readonly name: string; readonly codec: RowCodec }[],
  edges: readonly Edge[],
  sourceIndex: number,
  random: () => number,
  inGrouping: <T>(run: () => T) => T,
): ReadonlyMap<string, StreamOutputs> {
  return new Map(
    streams.map(({ name, codec }) => [
      name,
      {
        name,
        codec,
        outputs: edges
          .filter((edge) => edge.stream === name)
          .map((edge) => {
            const { customGrouping } = edge;
            const custom = customGrouping === undefined ? undefined : inGrouping(customGrouping);
            const router = createRouter({
              grouping: edge.grouping,
              fields: codec.fields,
              targetCount: edge.taskCount,
              sourceIndex,
              random,
              inGrouping,
              ...(custom === undefined ? {} : { custom }),
              source: edge.source,
              stream: edge.stream,
            });
            return { edge, router };
          }),
      },
    ]),
  );
}

/** What an emit must know of the row that caused it. */
export interface EmitCause {
  rootTask: number;
  rootGeneration: number;
  rootSequence: number;
  /** Roots of a row with several anchors (5 words each); null otherwise. */
  several: Int32Array | null;
  /** XOR of the edge ids of all rows emitted for this cause. */
  edgesHigh: number;
  edgesLow: number;
  /** The next row sent into the cycle of the sender takes the place of the one that caused it, and is not extra. */
  hasCycleToken: boolean;
  /** Set where several held rows are the cause: draws their edges and gives the new row's roots. */
  weave?(ids: EdgeIds): Int32Array;
  /** The row was sent: its causes have the edges that `weave` drew. */
  onWovenSent?(): void;
}
