/**
 * Deals the executors of one worker to its executor threads, balanced by load.
 * Source: the rule of FLIP-370's task-balanced slot sharing, with threads in the place of slots.
 */
import { ACKER, IsobarError } from '../base/index.js';
import type { ExecutorRange } from '../scheduling/index.js';

export interface ExecutorToDeal {
  readonly range: ExecutorRange;
  readonly component: string;
  /** What the executor weighs; default 1, and 0 for ackers. */
  readonly load?: number;
}

/**
 * The thread (from 0) of each executor, in the order given.
 *
 * With equal loads, component by component: one that fills all threads equally goes by index, so that executors of the
 * same index meet; any other continues where the last one stopped. So threads differ by one executor at most. With
 * unequal loads, heaviest first to the least loaded thread. Executors without load have a round of their own.
 */
export function dealToThreads(executors: readonly ExecutorToDeal[], threads: number): number[] {
  if (!Number.isInteger(threads) || threads < 1) {
    throw new IsobarError('INTERNAL', `Executors cannot be dealt to ${threads} threads.`, {
      expected: 'a whole number of at least 1',
      found: String(threads),
      where: 'dealToThreads',
    });
  }
  const loads = executors.map(({ load, component }) => Math.max(0, load ?? (component === ACKER ? 0 : 1)));
  const weighing = loads.filter((load) => load > 0);
  const threadOf = new Array<number>(executors.length).fill(0);
  const places = (wanted: (load: number) => boolean): Map<string, number[]> => {
    const byComponent = new Map<string, number[]>();
    executors.forEach(({ component }, place) => {
      if (!wanted(loads[place]!)) return;
      const list = byComponent.get(component);
      if (list === undefined) byComponent.set(component, [place]);
      else list.push(place);
    });
    return byComponent;
  };
  const deal = (byComponent: Map<string, number[]>): void => {
    let next = 0;
    for (const list of byComponent.values()) {
      const start = list.length % threads === 0 ? 0 : next;
      list.forEach((place, index) => (threadOf[place] = (start + index) % threads));
      next = (next + list.length) % threads;
    }
  };
  deal(places((load) => load === 0));
  if (weighing.every((load) => load === weighing[0])) deal(places((load) => load > 0));
  else dealByLoad(loads, threads, threadOf);
  return threadOf;
}

/** Heaviest first to the least loaded thread, ties to the lowest; cost O(E log E + E T) for T threads of one worker. */
function dealByLoad(loads: readonly number[], threads: number, threadOf: number[]): void {
  const sums = new Array<number>(threads).fill(0);
  const heaviestFirst = [...loads.keys()].filter((place) => loads[place]! > 0);
  heaviestFirst.sort((a, b) => loads[b]! - loads[a]! || a - b);
  for (const place of heaviestFirst) {
    let least = 0;
    for (let thread = 1; thread < threads; thread++) if (sums[thread]! < sums[least]!) least = thread;
    threadOf[place] = least;
    sums[least]! += loads[place]!;
  }
}

export interface DealtExecutor extends ExecutorToDeal {
  /** Where it is now; null: nowhere yet. */
  readonly thread: number | null;
  /** It may change its thread. */
  readonly movable: boolean;
}

/**
 * The thread (from 0) of each executor when some are dealt already: what is on a thread that there is stays there, the others go
 * to the least loaded threads, and only as many move as it takes until no two threads differ by two executors or more (by the
 * load of one that may move, where loads differ). With none dealt it is {@link dealToThreads}.
 *
 * Cost O(E T) for T threads of one worker.
 */
export function redealToThreads(executors: readonly DealtExecutor[], threads: number): number[] {
  const stays = executors.map(({ thread }) => thread !== null && thread < threads);
  if (!stays.includes(true)) return dealToThreads(executors, threads);
  const loads = executors.map(({ load, component }) => Math.max(0, load ?? (component === ACKER ? 0 : 1)));
  const sums = new Array<number>(threads).fill(0);
  const threadOf = executors.map(({ thread }, place) => {
    if (!stays[place]) return -1;
    sums[thread!]! += loads[place]!;
    return thread!;
  });
  const put = (place: number, thread: number): void => {
    if (threadOf[place]! >= 0) sums[threadOf[place]!]! -= loads[place]!;
    threadOf[place] = thread;
    sums[thread]! += loads[place]!;
  };
  /** Least load, then fewest executors of the component, then the lowest number. */
  const leastLoaded = (component: string): number => {
    const same = (thread: number): number =>
      executors.filter((one, place) => one.component === component && threadOf[place] === thread).length;
    let best = 0;
    for (let thread = 1; thread < threads; thread++) {
      const difference = sums[thread]! - sums[best]!;
      if (difference < 0 || (difference === 0 && same(thread) < same(best))) best = thread;
    }
    return best;
  };
  const fresh = [...executors.keys()].filter((place) => !stays[place]);
  fresh.sort((a, b) => loads[b]! - loads[a]! || a - b);
  for (const place of fresh) put(place, leastLoaded(executors[place]!.component));
  for (;;) {
    const move = bestMove(executors, loads, threadOf, sums);
    if (move === undefined) return threadOf;
    put(move.place, move.thread);
  }
}

/** The move from the most to the least loaded thread that evens them out most; undefined: none makes them more even. */
function bestMove(
  executors: readonly DealtExecutor[],
  loads: readonly number[],
  threadOf: readonly number[],
  sums: readonly number[],
): { readonly place: number; readonly thread: number } | undefined {
  const most = sums.indexOf(Math.max(...sums));
  const least = sums.indexOf(Math.min(...sums));
  const gap = sums[most]! - sums[least]!;
  let best: number | undefined;
  executors.forEach(({ movable }, place) => {
    const load = loads[place]!;
    // Less than the gap, or it would only turn the difference round; nearest to half of it is best.
    if (!movable || threadOf[place] !== most || load === 0 || load >= gap) return;
    if (best === undefined || Math.abs(load - gap / 2) < Math.abs(loads[best]! - gap / 2)) best = place;
  });
  return best === undefined ? undefined : { place: best, thread: least };
}
