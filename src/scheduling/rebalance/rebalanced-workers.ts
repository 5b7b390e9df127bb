/**
 * The placement of a topology after a rebalance that stops nothing that need not move: executors whose tasks can stay where
 * they are do stay, and only as much moves as makes machines and slots equally full, give or take one.
 *
 * Workers in slots that may not be used in this round (their supervisor is away, or an executor beside them hangs) are left
 * alone: they keep what they have, and take no part in the balance.
 */
import type { ExecutorRange } from '../assignment.js';
import type { WorkingCluster } from '../cluster.js';
import { type PlacedWorker, type Slot, slotKey } from '../cluster-snapshot.js';
import type { PlannedExecutor } from '../executors.js';
import { compareRanges, compareText, rangeKey } from '../order.js';
import { chooseSlots, type HeldSlot, type MachineSlots } from './choose-slots.js';
import { dealWithFewestMoves, type ExecutorAtHome } from './fewest-moves.js';

export interface Rebalanced {
  readonly id: string;
  /** Live executors where they are, as they were cut before the rebalance. */
  readonly workers: readonly PlacedWorker[];
  /** As they are to be, in order of first task. */
  readonly executors: readonly PlannedExecutor[];
  readonly wantedWorkers: number;
}

/**
 * Places a topology anew in the working cluster, which holds its workers as they are. Nothing changes if nothing of it lives
 * or no slot can be used.
 */
export function rebalanceInPlace(cluster: WorkingCluster, topology: Rebalanced): void {
  const { id, workers, executors, wantedWorkers } = topology;
  if (workers.length === 0) return;
  const usable = workers.filter((worker) => cluster.isAssignable(worker));
  const fixed = keepFixed(
    workers.filter((worker) => !cluster.isAssignable(worker)),
    executors,
  );
  const fixedRanges = new Set(fixed.flatMap((worker) => worker.executors.map(rangeKey)));
  const todo = executors.filter(({ range }) => !fixedRanges.has(rangeKey(range)));
  for (const worker of workers) cluster.freeSlot(worker);
  for (const worker of fixed) cluster.assign(worker, id, worker.executors);
  const wanted = Math.min(todo.length, Math.max(1, wantedWorkers - fixed.length));
  const homes = tasksBySlot(usable, todo);
  const slots = chooseSlots(machinesOf(cluster, usable, todo, homes), wanted);
  if (slots.length === 0) return;
  for (const { slot, ranges } of deal(slots, todo, homes)) cluster.assign(slot, id, ranges);
}

/** Workers that are left alone, with those of their executors that are still cut as they were. */
function keepFixed(
  workers: readonly PlacedWorker[],
  executors: readonly PlannedExecutor[],
): readonly PlacedWorker[] {
  const planned = new Set(executors.map(({ range }) => rangeKey(range)));
  return workers
    .map((worker) => ({
      ...worker,
      executors: worker.executors.filter((range) => planned.has(rangeKey(range))),
    }))
    .filter((worker) => worker.executors.length > 0);
}

/** For each executor how many of its tasks are in which slot now, by slot key. */
type Homes = readonly ReadonlyMap<string, number>[];

function tasksBySlot(workers: readonly PlacedWorker[], executors: readonly PlannedExecutor[]): Homes {
  const held = workers
    .flatMap((worker) => worker.executors.map((range) => ({ range, key: slotKey(worker) })))
    .sort((a, b) => compareRanges(a.range, b.range));
  let from = 0;
  return executors.map(({ range: [first, last] }) => {
    const tasks = new Map<string, number>();
    while (from < held.length && held[from]!.range[1] < first) from++;
    for (let at = from; at < held.length && held[at]!.range[0] <= last; at++) {
      const { range, key } = held[at]!;
      const common = Math.min(last, range[1]) - Math.max(first, range[0]) + 1;
      if (common > 0) tasks.set(key, (tasks.get(key) ?? 0) + common);
    }
    return tasks;
  });
}

function machinesOf(
  cluster: WorkingCluster,
  workers: readonly PlacedWorker[],
  executors: readonly PlannedExecutor[],
  homes: Homes,
): MachineSlots[] {
  const executorsIn = new Map<string, number>();
  const tasksIn = new Map<string, number>();
  executors.forEach((_, index) => {
    let best = '';
    for (const [key, tasks] of homes[index]!) {
      tasksIn.set(key, (tasksIn.get(key) ?? 0) + tasks);
      if (best === '' || tasks > homes[index]!.get(best)!) best = key;
    }
    if (best !== '') executorsIn.set(best, (executorsIn.get(best) ?? 0) + 1);
  });
  const held = new Map<string, HeldSlot[]>();
  for (const { supervisor, port } of workers) {
    const slot = { supervisor, port, executors: executorsIn.get(slotKey({ supervisor, port })) ?? 0 };
    const list = held.get(supervisor);
    if (list === undefined) held.set(supervisor, [slot]);
    else list.push(slot);
  }
  const fullestFirst = (a: HeldSlot, b: HeldSlot): number =>
    b.executors - a.executors ||
    (tasksIn.get(slotKey(b)) ?? 0) - (tasksIn.get(slotKey(a)) ?? 0) ||
    a.port - b.port;
  return cluster.supervisorIds().map((supervisor) => {
    const own = (held.get(supervisor) ?? []).sort(fullestFirst);
    const ports = new Set(own.map(({ port }) => port));
    const freePorts = cluster.availablePorts(supervisor).filter((port) => !ports.has(port));
    return { supervisor, held: own, freePorts };
  });
}

function deal(
  slots: readonly Slot[],
  executors: readonly PlannedExecutor[],
  homes: Homes,
): { readonly slot: Slot; readonly ranges: ExecutorRange[] }[] {
  const placeOf = new Map(slots.map((slot, place) => [slotKey(slot), place]));
  const atHome = executors.map(({ component }, index): ExecutorAtHome => {
    const places = [...homes[index]!].flatMap(([key, tasks]): [number, number][] => {
      const place = placeOf.get(key);
      return place === undefined ? [] : [[place, tasks]];
    });
    return { component, homes: places.sort(([a], [b]) => a - b) };
  });
  const dealt = slots.map((slot) => ({ slot, ranges: [] as ExecutorRange[] }));
  dealWithFewestMoves(atHome, slots.length).forEach((place, index) => {
    dealt[place]!.ranges.push(executors[index]!.range);
  });
  return dealt.sort((a, b) => compareText(slotKey(a.slot), slotKey(b.slot)));
}
