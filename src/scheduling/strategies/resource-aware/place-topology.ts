/**
 * Places all executors of one topology that have no slot, or none of them, by the strategy that the topology names. What
 * runs already stays where it is, and no worker that runs is extended.
 */
import type { PlacedWorker } from '../../cluster-snapshot.js';
import { compareRanges } from '../../order.js';
import { AckerQueue } from './acker-queue.js';
import { toAmount } from './amounts.js';
import { Candidates } from './candidates.js';
import { constraintsOf, severityOf } from './constraints.js';
import { orderExecutors } from './executor-order.js';
import type { IdleGroups } from './idle-groups.js';
import { MachineOrder, type ListedMachines, type ShareOrder } from './machine-order.js';
import { type Machines, NONE } from './machines.js';
import { placeRoundRobin } from './round-robin.js';
import { search, type SearchOutcome } from './search.js';
import { explainShortage, type Shortage } from './shortage.js';
import { addRequest, type HeldWorker, type TopologyState } from './topology-state.js';
import { type SlotBooks, Trial, type TrialLimits } from './trial.js';

/** Ways to place a topology. Those of the same search differ in how they break ties. */
export const PLACERS = {
  default: { search: 'depth-first', shares: 'average-first' },
  generic: { search: 'depth-first', shares: 'average-first' },
  'default-old': { search: 'depth-first', shares: 'smallest-first' },
  'generic-old': { search: 'depth-first', shares: 'average-only' },
  'constraint-solver': { search: 'constraints', shares: 'average-first' },
  'round-robin': { search: 'round-robin', shares: 'average-first' },
} as const satisfies Record<string, { search: string; shares: ShareOrder }>;

export type PlacerName = keyof typeof PLACERS;

export interface PlaceOptions {
  readonly minimumWorkerCpu: number;
  /** Most states of any topology's search. */
  readonly maxSearchStates: number;
  /** Grey-listed supervisors by index: they are used last. */
  readonly greyListed: readonly number[];
  /** As Storm does it in every respect. */
  readonly asStorm: boolean;
}

export interface PlaceInput {
  readonly machines: Machines;
  readonly state: TopologyState;
  /** All topologies, for those that run beside this one. */
  readonly all: readonly TopologyState[];
  readonly placer: PlacerName;
  readonly books: SlotBooks;
  readonly idle: IdleGroups;
  readonly options: PlaceOptions;
}

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

const DEFAULT_WORKER_MAX_HEAP_MB = 768;
const DEFAULT_MAX_SEARCH_STATES = 10_000;

/** Decides only: all books are afterwards what they were, and the caller takes the workers. */
export function placeTopology(input: PlaceInput): PlaceOutcome {
  const { machines, state, placer, options } = input;
  const { request } = state;
  if (machines.count === 0) return nothingPut(input, undefined);
  if (!request.hasSpout) {
    return { kind: 'invalid', reason: 'has no spout, so it would never do anything. Add one.', steps: 0 };
  }
  const maxStates = Math.min(
    request.rules.maxSearchStates ?? DEFAULT_MAX_SEARCH_STATES,
    options.maxSearchStates,
  );
  if (options.asStorm && state.unassigned >= maxStates) {
    const reason = `has ${state.unassigned} executors without a slot; a search may try ${maxStates} placements only.`;
    return { kind: 'infeasible', reason, steps: 0 };
  }
  const rules = PLACERS[placer];
  const constraints = rules.search === 'constraints' ? constraintsOf(request) : undefined;
  if (constraints !== undefined) {
    for (const [component, most] of constraints.mostPerMachine.entries()) {
      if (request.size[component]! <= machines.count * most) continue;
      const reason = `has ${request.size[component]} executors of "${request.components[component]}", of which ${machines.count} supervisors may have ${most} each.`;
      return { kind: 'infeasible', reason, steps: 0 };
    }
  }

  const limits: TrialLimits & { readonly ackersPerWorker: number } = {
    minimumWorkerCpu: options.minimumWorkerCpu,
    workerMaxHeap: toAmount(request.rules.workerMaxHeapMb ?? DEFAULT_WORKER_MAX_HEAP_MB),
    oneExecutorPerWorker: request.rules.oneExecutorPerWorker ?? false,
    oneComponentPerWorker: request.rules.oneComponentPerWorker ?? false,
    constraints,
    ackersPerWorker: request.rules.ackersPerWorker ?? 1,
  };
  const trial = new Trial(machines, state, limits, input.books);
  const order = new MachineOrder(trial, rules.shares, listedMachines(input));
  const waiting = unassignedExecutors(state);
  const executorOrder =
    rules.search === 'constraints'
      ? 'constraints'
      : request.rules.orderByProximity === true
        ? 'proximity'
        : 'connections';
  const severity = (component: number): number =>
    constraints === undefined ? 0 : severityOf(constraints, component);
  const executors = orderExecutors(request, waiting, executorOrder, severity);
  const ackerCount = waiting.filter((executor) => request.componentOf[executor] === request.acker).length;
  const ackers = executors.slice(executors.length - ackerCount);
  let shortage: Shortage | undefined;
  const common = {
    trial,
    executors,
    ackerCount,
    newAckerQueue: () => new AckerQueue(trial, ackers, limits),
    // Each executor takes one state; the bound is for what comes on top.
    maxStates: options.asStorm ? maxStates : maxStates + executors.length,
    onStuck: (executor: number): void => {
      shortage = explainShortage(trial, request.componentOf[executor]!);
    },
  };
  let outcome: SearchOutcome;
  // Storm takes a search that ends at the last executor for a success, whether or not that one has a place.
  let endedAt = 0;
  if (rules.search === 'round-robin') {
    const walk = roundRobinMachines(input, order);
    const { stuckAt } = placeRoundRobin({ ...common, machines: walk, asStorm: options.asStorm });
    outcome = stuckAt === null ? 'placed' : 'exhausted';
    endedAt = stuckAt ?? endedAt;
  } else {
    outcome = search({ ...common, order, candidates: () => new Candidates(trial, order, input.idle) });
  }
  if (options.asStorm && outcome === 'exhausted' && endedAt === executors.length - 1) outcome = 'placed';
  const steps = trial.steps + order.steps;
  if (outcome === 'placed') {
    const workers = workersOf(trial);
    trial.takeAllBack();
    return { kind: 'placed', workers, steps };
  }
  const put = new Float64Array(machines.resourceCount);
  for (const executor of trial.executors) addRequest(put, request, request.componentOf[executor]!);
  const putMemory = trial.memoryPut;
  trial.takeAllBack();
  return { kind: 'not-enough-resources', shortage, put, putMemory, limited: outcome === 'limited', steps };
}

function nothingPut({ machines }: PlaceInput, shortage: Shortage | undefined): PlaceOutcome {
  const put = new Float64Array(machines.resourceCount);
  return { kind: 'not-enough-resources', shortage, put, putMemory: 0, limited: false, steps: 0 };
}

function unassignedExecutors({ assigned }: TopologyState): number[] {
  const executors: number[] = [];
  assigned.forEach((has, executor) => {
    if (has === 0) executors.push(executor);
  });
  return executors;
}

/** Favoured and last supervisors: grey-listed ones are in neither list but at the very end. */
function listedMachines({ machines, state, options }: PlaceInput): ListedMachines {
  const grey = new Set(options.greyListed);
  const onHosts = (hosts: readonly string[]): number[] => {
    const listed = new Set<number>();
    for (const host of hosts) {
      const index = machines.indexOfHost.get(host) ?? NONE;
      for (const machine of machines.machinesOfHost[index] ?? []) if (!grey.has(machine)) listed.add(machine);
    }
    return [...listed];
  };
  const { favouredHosts, unfavouredHosts } = state.request.rules;
  const favoured = onHosts(favouredHosts ?? []);
  const unfavoured = onHosts(unfavouredHosts ?? []).filter((machine) => !favoured.includes(machine));
  return { favoured, last: [...unfavoured, ...options.greyListed] };
}

/** Supervisors of the walk: as Storm has it, only those that no other topology is on. */
function roundRobinMachines({ machines, state, all, options }: PlaceInput, order: MachineOrder): number[] {
  const { isolatedMachines } = state.request.rules;
  const most = isolatedMachines ?? Infinity;
  const shared = new Uint8Array(machines.count);
  if (options.asStorm || isolatedMachines !== undefined) {
    for (const other of all) {
      if (other !== state) for (const { machine } of other.workers) shared[machine] = 1;
    }
  }
  order.begin(NONE);
  return [...order.all()].filter((machine) => shared[machine] === 0).slice(0, most);
}

/** What was put as workers. */
function workersOf(trial: Trial): HeldWorker[] {
  const { machines, request } = trial;
  const bySlot = new Map<number, number[]>();
  trial.slots.forEach((slot, index) => {
    const executor = trial.executors[index]!;
    const list = bySlot.get(slot);
    if (list === undefined) bySlot.set(slot, [executor]);
    else list.push(executor);
  });
  return [...bySlot].map(([slot, executors]) => {
    const placed: PlacedWorker = {
      ...machines.slot(slot),
      executors: executors.map((executor) => request.executors[executor]!.range).sort(compareRanges),
    };
    return { machine: machines.machineOfSlot[slot]!, slot, placed };
  });
}
