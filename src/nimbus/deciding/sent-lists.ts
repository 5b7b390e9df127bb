/**
 * Snapshots on their way to a thread. Nearly all of one are lists that are handed from round to round, of executors, components and
 * workers: each is sent once, and named by a number as long as every question has it. Cloning them each time would take longer on
 * the sending side than most strategies take to decide.
 */
import type { ClusterSnapshot, ClusterTopology } from '../../scheduling/index.js';

type List = readonly unknown[];

export interface PostedSnapshot {
  /** Without what is listed below. */
  readonly others: Omit<ClusterSnapshot, 'topologies' | 'placement'>;
  readonly topologies: readonly (Omit<ClusterTopology, 'executors' | 'components'> & {
    readonly executors: number;
    readonly components: number | undefined;
  })[];
  readonly placement: readonly (readonly [string, number])[];
  /** Lists that the receiver has not seen. What no question names any more is forgotten on both sides. */
  readonly lists: ReadonlyMap<number, List>;
}

export class SentLists {
  #known = new Map<List, number>();
  #next = 0;

  post({ topologies, placement, ...others }: ClusterSnapshot): PostedSnapshot {
    const used = new Map<List, number>();
    const lists = new Map<number, List>();
    const number = (list: List): number => {
      const known = used.get(list) ?? this.#known.get(list);
      const mine = known ?? this.#next++;
      if (known === undefined) lists.set(mine, list);
      used.set(list, mine);
      return mine;
    };
    const posted = {
      others,
      topologies: topologies.map(({ executors, components, ...topology }) => ({
        ...topology,
        executors: number(executors),
        components: components === undefined ? undefined : number(components),
      })),
      placement: [...placement].map(([id, workers]) => [id, number(workers)] as const),
      lists,
    };
    this.#known = used;
    return posted;
  }
}

export class ReceivedLists {
  #known: ReadonlyMap<number, List> = new Map();

  read({ others, topologies, placement, lists }: PostedSnapshot): ClusterSnapshot {
    const used = new Map<number, List>();
    const list = (number: number): List => {
      const found = lists.get(number) ?? this.#known.get(number) ?? [];
      used.set(number, found);
      return found;
    };
    // Each number names what the sender had in its place.
    const snapshot: ClusterSnapshot = {
      ...others,
      topologies: topologies.map(({ executors, components, ...topology }) => ({
        ...topology,
        executors: list(executors) as ClusterTopology['executors'],
        ...(components === undefined
          ? {}
          : { components: list(components) as NonNullable<ClusterTopology['components']> }),
      })),
      placement: new Map(
        placement.map(([id, number]) => [
          id,
          list(number) as NonNullable<ReturnType<ClusterSnapshot['placement']['get']>>,
        ]),
      ),
    };
    this.#known = used;
    return snapshot;
  }
}
