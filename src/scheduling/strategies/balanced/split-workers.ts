/**
 * Takes executors out of the workers of a topology that runs in fewer slots than it wants, so that slots that came later are
 * used. Only executors that may move and that no co-location binds are taken, from the heaviest worker each time.
 */
import type { ExecutorRange } from '../../assignment.js';
import { compareSlots, type PlacedWorker } from '../../cluster-snapshot.js';
import { compareRanges } from '../../order.js';
import type { GroupableTopology, SlotGroup } from './slot-groups.js';

export interface SplitWorkers {
  /** Workers that keep less than they had. */
  readonly kept: readonly PlacedWorker[];
  /** What each new slot gets. */
  readonly groups: readonly SlotGroup[];
}

interface Part {
  readonly worker: PlacedWorker;
  executors: readonly ExecutorRange[];
  load: number;
  isChanged: boolean;
}

/** At most `count` new groups; none that would leave a worker lighter than the group that was taken from it. */
export function splitWorkers(
  { graph, loadOf: weightOf, weigh }: GroupableTopology,
  workers: readonly PlacedWorker[],
  count: number,
): SplitWorkers {
  const vertexOf = new Map<number, number>();
  for (const [vertex, list] of graph.executors.entries())
    for (const { range } of list) vertexOf.set(range[0], vertex);
  const parts = [...workers].sort(compareSlots).map(
    (worker): Part => ({
      worker,
      executors: worker.executors,
      load: weigh(worker.executors).load,
      isChanged: false,
    }),
  );
  const total = parts.reduce((sum, { load }) => sum + load, 0);
  const goal = total / (workers.length + count);
  const isFree = ([first]: ExecutorRange): boolean => {
    const vertex = vertexOf.get(first);
    if (vertex === undefined) return false;
    return graph.isMovable[vertex]! && graph.graph.vertices[vertex]!.coLocationGroup === null;
  };
  const loadOf = ([first]: ExecutorRange): number => weightOf(first);
  const groups: SlotGroup[] = [];
  while (groups.length < count) {
    const taken = takeFrom(parts, goal, isFree, loadOf, (range) => vertexOf.get(range[0])!);
    if (taken.length === 0) break;
    groups.push(weigh([...taken].sort(compareRanges)));
  }
  const kept = parts
    .filter(({ isChanged }) => isChanged)
    .map(({ worker, executors }) => ({ ...worker, executors }));
  return { kept, groups };
}

/** Executors of about the weight `goal` out of the heaviest worker that has some to give. */
function takeFrom(
  parts: readonly Part[],
  goal: number,
  isFree: (range: ExecutorRange) => boolean,
  loadOf: (range: ExecutorRange) => number,
  vertexOf: (range: ExecutorRange) => number,
): readonly ExecutorRange[] {
  const byLoad = [...parts].sort((a, b) => b.load - a.load);
  for (const part of byLoad) {
    const taken: ExecutorRange[] = [];
    let weight = 0;
    for (;;) {
      const left = part.executors.filter((range) => !taken.includes(range));
      const next = nextToTake(
        left.filter((range) => isFree(range) && loadOf(range) > 0),
        left,
        vertexOf,
      );
      if (next === undefined || left.length <= 1) break;
      const after = weight + loadOf(next);
      if (part.load - after < after || after - goal > goal - weight) break;
      taken.push(next);
      weight = after;
    }
    if (taken.length === 0) continue;
    part.executors = part.executors.filter((range) => !taken.includes(range));
    part.load -= weight;
    part.isChanged = true;
    return taken;
  }
  return [];
}

/** One of the component that has most executors there, so that every component stays spread. */
function nextToTake(
  candidates: readonly ExecutorRange[],
  there: readonly ExecutorRange[],
  vertexOf: (range: ExecutorRange) => number,
): ExecutorRange | undefined {
  const counts = new Map<number, number>();
  for (const range of there) counts.set(vertexOf(range), (counts.get(vertexOf(range)) ?? 0) + 1);
  let best: ExecutorRange | undefined;
  for (const range of candidates) {
    if (best === undefined || counts.get(vertexOf(range))! > counts.get(vertexOf(best))!) best = range;
  }
  return best;
}
