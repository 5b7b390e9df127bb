/**
 * Places all executors of one topology that have no slot, or none of them, by the strategy that the topology names. What
 * runs already stays where it is, and no worker that runs is extended.
 */
import type { ExecutorRange } from '../../assignment.js';
import type { PlacedWorker } from '../../cluster-snapshot.js';
import { type Constraints, constraintsOf } from './constraints.js';
import type { MachineOrder } from './machine-order.js';
import { NONE } from './machines.js';
import { placedList } from './placed-list.js';
import { type PlaceInput, PLACERS } from './placers.js';
import { prepareSearch } from './prepare-search.js';
import { placeRoundRobin } from './round-robin.js';
import { search, type SearchOutcome } from './search.js';
import { explainShortage, type Shortage } from './shortage.js';
import { addRequest } from './topology-request.js';
import type { HeldWorker } from './topology-state.js';
import type { Trial } from './trial.js';

export type PlaceOutcome =
  | { readonly kind: 'placed'; readonly workers: readonly HeldWorker[]; readonly steps: number }
  | {
      readonly kind: 'not-enough-resources';
      readonly shortage: Shortage | undefined;
      /** What the search had put when it ended: requests by resource, and memory with shared parts. */
      readonly put: Float64Array;
      readonly putMemory: number;
      /** The bound of the search was reached: there may be a placement that it has not seen. */
      readonly limited: boolean;
      readonly steps: number;
    }
  /** `invalid`: the topology can never be placed. `infeasible`: its rules cannot be met here. */
  | { readonly kind: 'invalid' | 'infeasible'; readonly reason: string; readonly steps: number };

const DEFAULT_MAX_SEARCH_STATES = 10_000;

/** Decides only: all books are afterwards what they were, and the caller takes the workers. */
export function placeTopology(input: PlaceInput): PlaceOutcome {
  const { machines, state, placer, options } = input;
  const { request } = state;
  if (machines.count === 0) return nothingPut(input);
  if (!request.hasSpout) {
    return { kind: 'invalid', reason: 'has no spout, so it would never do anything. Add one.', steps: 0 };
  }
  const allowed = Math.min(
    request.rules.maxSearchStates ?? DEFAULT_MAX_SEARCH_STATES,
    options.maxSearchStates,
  );
  if (options.asStorm && state.unassigned >= allowed) {
    const reason = `has ${state.unassigned} executors without a slot; a search may try ${allowed} placements only.`;
    return { kind: 'infeasible', reason, steps: 0 };
  }
  const constraints = PLACERS[placer].search === 'constraints' ? constraintsOf(request) : undefined;
  const reason = constraints === undefined ? undefined : tooManyForAll(input, constraints);
  if (reason !== undefined) return { kind: 'infeasible', reason, steps: 0 };

  // Each executor takes one state; beyond Storm, the bound is for what comes on top.
  const maxStates = options.asStorm ? allowed : allowed + state.unassigned;
  let shortage: Shortage | undefined;
  const prepared = prepareSearch(input, constraints, maxStates, (executor, trial) => {
    shortage = explainShortage(trial, request.componentOf[executor]!);
  });
  const { trial, order } = prepared;
  let outcome: SearchOutcome;
  let endedAt = 0;
  try {
    if (PLACERS[placer].search === 'round-robin') {
      const walk = roundRobinMachines(input, order);
      const { stuckAt } = placeRoundRobin({ ...prepared, machines: walk, asStorm: options.asStorm });
      outcome = stuckAt === null ? 'placed' : 'exhausted';
      endedAt = stuckAt ?? endedAt;
    } else outcome = search(prepared);
    // Storm takes a search that ends at the last executor for a success, whether or not that one has a place.
    if (options.asStorm && outcome === 'exhausted' && endedAt === prepared.executors.length - 1)
      outcome = 'placed';
    const steps = trial.steps + order.steps;
    if (outcome === 'placed') return { kind: 'placed', workers: workersOf(trial), steps };
    const put = new Float64Array(machines.resourceCount);
    for (const executor of trial.executors) addRequest(put, request, request.componentOf[executor]!);
    const limited = outcome === 'limited';
    return { kind: 'not-enough-resources', shortage, put, putMemory: trial.memoryPut, limited, steps };
  } finally {
    trial.takeAllBack();
  }
}

function nothingPut({ machines }: PlaceInput): PlaceOutcome {
  const put = new Float64Array(machines.resourceCount);
  return { kind: 'not-enough-resources', shortage: undefined, put, putMemory: 0, limited: false, steps: 0 };
}

/** Why a limit per supervisor cannot be kept even if all supervisors were empty. Storm counts those that are away, too. */
function tooManyForAll(
  { machines, state: { request }, options }: PlaceInput,
  { mostPerMachine }: Constraints,
): string | undefined {
  const usable = machines.usable.reduce((sum, one) => sum + one, 0);
  const supervisors = options.asStorm ? machines.count : usable;
  for (const [component, most] of mostPerMachine.entries()) {
    if (most === Infinity || request.size[component]! <= supervisors * most) continue;
    return `has ${request.size[component]} executors of "${request.components[component]}", of which each of ${supervisors} supervisors may have ${most}. Add supervisors, or raise the limit.`;
  }
  return undefined;
}

/** Supervisors of the walk. Storm takes only those that no other topology is on. */
function roundRobinMachines({ machines, state, all, options }: PlaceInput, order: MachineOrder): number[] {
  const { isolatedMachines } = state.request.rules;
  const shared = new Uint8Array(machines.count);
  if (options.asStorm || isolatedMachines !== undefined) {
    for (const other of all) {
      if (other !== state) for (const { machine } of other.workers) shared[machine] = 1;
    }
  }
  order.begin(NONE);
  return order
    .whole()
    .filter((machine) => shared[machine] === 0)
    .slice(0, Math.max(0, isolatedMachines ?? Infinity));
}

/** What was put as workers. */
function workersOf({ machines, request, slots, executors }: Trial): HeldWorker[] {
  // Slots are numbered in order of supervisor and port, executors in order of first task: numbers put both in order at once.
  const size = request.executors.length;
  const keys = new Float64Array(slots.length);
  for (let index = 0; index < keys.length; index++) keys[index] = slots[index]! * size + executors[index]!;
  keys.sort();
  const workers: PlacedWorker[] = [];
  const slotOf: number[] = [];
  for (let index = 0; index < keys.length; ) {
    const slot = Math.floor(keys[index]! / size);
    const inSlot: ExecutorRange[] = [];
    for (; index < keys.length && keys[index]! < (slot + 1) * size; index++)
      inSlot.push(request.executors[keys[index]! - slot * size]!.range);
    const { supervisor, port } = machines.slot(slot);
    workers.push({ supervisor, port, executors: inSlot });
    slotOf.push(slot);
  }
  const list = placedList(workers, request);
  return slotOf.map((slot, at) => ({
    machine: machines.machineOfSlot[slot]!,
    slot,
    placed: list.workers[at]!,
    list,
    at,
  }));
}
