/**
 * The one check of whatever a strategy returned, before anyone acts on it.
 *
 * V1: no slot is shared; V2: no executor is twice or unknown; V3: none is lost: each has a slot or is reported; V4: a
 * new slot exists, is offered, and its host may be used. What was placed before may stay where it is. V5 and V6, on capacities, are
 * in `validate-capacity.ts`. V7: all of this holds of what comes out when faulty topologies keep what they had.
 */
import { IsobarError } from '../base/index.js';
import type { ExecutorRange } from './assignment.js';
import {
  type ClusterSnapshot,
  type ClusterTopology,
  type PlacedWorker,
  type Placement,
  slotKey,
} from './cluster-snapshot.js';
import { isComplete } from './complete-placement.js';
import { indexExecutors, NO_EXECUTOR } from './executor-index.js';
import { compareText, rangeKey } from './order.js';
import type { SchedulingResult } from './strategies/strategy.js';
import { type CapacityRules, validateCapacity } from './validate-capacity.js';

/**
 * Sentences on what is wrong, by topology id; sound topologies are absent. `capacity`: what has to be kept of resources; not given:
 * nobody promised any. Cost: O(E + S), and O(topologies) where nothing has changed.
 */
export function validateAssignment(
  snapshot: ClusterSnapshot,
  result: Pick<SchedulingResult, 'placement' | 'unplaced'>,
  capacity?: CapacityRules,
): ReadonlyMap<string, readonly string[]> {
  const faults = new Map<string, string[]>();
  const report = (topologyId: string, fault: string): void => {
    const known = faults.get(topologyId);
    if (known === undefined) faults.set(topologyId, [fault]);
    else known.push(fault);
  };
  const topologies = new Set(snapshot.topologies.map(({ id }) => id));
  for (const id of result.placement.keys()) {
    if (!topologies.has(id)) report(id, 'it is not in the snapshot');
  }
  // What was there before and is the same list now was checked when it was new.
  const isChanged = ([id, workers]: readonly [string, readonly PlacedWorker[]]): boolean =>
    snapshot.placement.get(id) !== workers;
  if ([...result.placement].some(isChanged)) checkSlots(snapshot, result, report);
  for (const topology of snapshot.topologies) checkExecutors(topology, snapshot, result, report);
  for (let open: readonly string[] = [...faults.keys()]; ; ) {
    keepOldSlots(open, snapshot, result, faults, report);
    open = capacity === undefined ? [] : checkCapacity(snapshot, result.placement, capacity, faults, report);
    if (open.length === 0) return faults;
  }
}

/** What is to be kept of resources: all that a strategy answers for, and of supervisors where the others count on it. */
export function capacityRulesOf(
  { keepsCapacity = false }: Pick<SchedulingResult, 'keepsCapacity'>,
  othersCountOnIt = false,
): CapacityRules | undefined {
  return keepsCapacity || othersCountOnIt ? { limitsHeap: keepsCapacity } : undefined;
}

/** What is wrong with a topology's new placement, as an error. */
export function assignmentInvalid(topologyId: string, sentences: readonly string[]): IsobarError {
  const shown = sentences.slice(0, MOST_FAULTS_SHOWN).join('; ');
  const more =
    sentences.length > MOST_FAULTS_SHOWN ? ` and ${sentences.length - MOST_FAULTS_SHOWN} more` : '';
  return new IsobarError(
    'ASSIGNMENT_INVALID',
    `The new placement of ${topologyId} was refused: ${shown}${more}.`,
    { where: topologyId },
  );
}

const MOST_FAULTS_SHOWN = 5;

type Report = (topologyId: string, fault: string) => void;

function checkExecutors(
  { id, executors }: ClusterTopology,
  snapshot: ClusterSnapshot,
  result: Pick<SchedulingResult, 'placement' | 'unplaced'>,
  report: Report,
): void {
  const index = indexExecutors(executors);
  const workers = result.placement.get(id) ?? [];
  if (!result.unplaced.has(id) && isComplete(workers, index)) return;
  const placed = new Uint8Array(executors.length);
  const unknown: ExecutorRange[] = [];
  for (const worker of workers) {
    for (const range of worker.executors) {
      const place = index.indexOf(range);
      if (place === NO_EXECUTOR) unknown.push(range);
      else if (placed[place]!++ > 0) report(id, `executor ${rangeKey(range)} has two slots`);
    }
  }
  if (unknown.length > 0) {
    const before = new Set(
      (snapshot.placement.get(id) ?? []).flatMap((worker) => worker.executors.map(rangeKey)),
    );
    for (const range of unknown) {
      if (!before.has(rangeKey(range))) report(id, `executor ${rangeKey(range)} does not exist`);
    }
  }
  const reported = new Uint8Array(executors.length);
  for (const { range } of result.unplaced.get(id)?.executors ?? []) {
    const place = index.indexOf(range);
    if (place === NO_EXECUTOR)
      report(id, `executor ${rangeKey(range)}, reported without a slot, does not exist`);
    else reported[place] = 1;
  }
  for (let place = 0; place < placed.length; place++) {
    if (placed[place]! > 0 && reported[place] === 0) continue;
    const { range } = index.executors[place]!;
    if (placed[place] === 0 && reported[place] === 0) report(id, `executor ${rangeKey(range)} is lost`);
    if (placed[place]! > 0) report(id, `executor ${rangeKey(range)} has a slot and is reported without`);
  }
}

function checkSlots(
  snapshot: ClusterSnapshot,
  result: Pick<SchedulingResult, 'placement'>,
  report: Report,
): void {
  const offered = new Map(
    snapshot.supervisors
      .filter(({ host }) => !(snapshot.blacklistedHosts?.has(host) ?? false))
      .map(({ id, ports }) => [id, ports]),
  );
  const holder = holders(snapshot.placement);
  const taken = new Map<string, string>();
  for (const [id, workers] of sortedEntries(result.placement)) {
    for (const worker of workers) {
      const key = slotKey(worker);
      const other = taken.get(key);
      // Of two that claim a slot, the one that had it before is in the right.
      if (other !== undefined)
        report(
          holder.get(key) === id ? other : id,
          `slot ${key} is shared with ${holder.get(key) === id ? id : other}`,
        );
      taken.set(key, id);
      if (holder.get(key) !== id && offered.get(worker.supervisor)?.includes(worker.port) !== true)
        report(id, `slot ${key} is not offered`);
      if (worker.executors.length === 0) report(id, `the worker in slot ${key} has no executor`);
    }
  }
}

/** Topologies that are over capacity beside what the faulty ones keep; they have been reported. */
function checkCapacity(
  snapshot: ClusterSnapshot,
  placement: Placement,
  capacity: CapacityRules,
  faults: ReadonlyMap<string, readonly string[]>,
  report: Report,
): readonly string[] {
  const kept = [...faults.keys()].map((id) => [id, snapshot.placement.get(id) ?? []] as const);
  const left = kept.length === 0 ? placement : new Map([...placement, ...kept]);
  const over = validateCapacity(snapshot, left, capacity);
  for (const [id, sentences] of over) for (const sentence of sentences) report(id, sentence);
  return [...over.keys()];
}

/** A faulty topology keeps what it had; whoever was given one of those slots is faulty with it. */
function keepOldSlots(
  faulty: readonly string[],
  snapshot: ClusterSnapshot,
  result: Pick<SchedulingResult, 'placement'>,
  faults: ReadonlyMap<string, readonly string[]>,
  report: Report,
): void {
  if (faulty.length === 0) return;
  const holderAfter = holders(result.placement);
  const open = [...faulty];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const worker of snapshot.placement.get(id) ?? []) {
      const next = holderAfter.get(slotKey(worker));
      if (next === undefined || next === id) continue;
      if (!faults.has(next)) open.push(next);
      report(next, `slot ${slotKey(worker)} stays with ${id}, whose new placement is faulty`);
    }
  }
}

/** Who holds each slot; of several, the first by id. */
function holders(placement: Placement): ReadonlyMap<string, string> {
  const holder = new Map<string, string>();
  for (const [id, workers] of sortedEntries(placement)) {
    for (const worker of workers) if (!holder.has(slotKey(worker))) holder.set(slotKey(worker), id);
  }
  return holder;
}

function sortedEntries<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => compareText(a, b));
}
