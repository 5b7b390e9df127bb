/**
 * What a search for one topology starts from: its rules as limits, the order of supervisors, and the order of executors.
 */
import { AckerQueue } from './acker-queue.js';
import { toAmount } from './amounts.js';
import { Candidates } from './candidates.js';
import type { Constraints } from './constraints.js';
import { severityOf } from './constraints.js';
import { orderExecutors } from './executor-order.js';
import { type ListedMachines, MachineOrder } from './machine-order.js';
import { NONE } from './machines.js';
import { type PlaceInput, PLACERS } from './placers.js';
import type { SearchInput } from './search.js';
import type { TopologyState } from './topology-state.js';
import { Trial, type TrialLimits } from './trial.js';

const DEFAULT_WORKER_MAX_HEAP_MB = 768;

/** All that is put lies in the trial of the result; `onStuck` is told of executors without a place. */
export function prepareSearch(
  input: PlaceInput,
  constraints: Constraints | undefined,
  maxStates: number,
  onStuck: (executor: number, trial: Trial) => void,
): SearchInput {
  const { machines, state, placer, options } = input;
  const { request } = state;
  const limits: TrialLimits & { readonly ackersPerWorker: number } = {
    minimumWorkerCpu: options.minimumWorkerCpu,
    workerMaxHeap: toAmount(request.rules.workerMaxHeapMb ?? DEFAULT_WORKER_MAX_HEAP_MB),
    oneExecutorPerWorker: request.rules.oneExecutorPerWorker ?? false,
    oneComponentPerWorker: request.rules.oneComponentPerWorker ?? false,
    constraints,
    ackersPerWorker: request.rules.ackersPerWorker ?? 1,
  };
  const trial = new Trial(machines, state, limits, input.books);
  const order = new MachineOrder(trial, PLACERS[placer].shares, listedMachines(input));
  const waiting = unassignedExecutors(state);
  const executorOrder = request.rules.orderByProximity === true ? 'proximity' : 'connections';
  const severity = (component: number): number =>
    constraints === undefined ? 0 : severityOf(constraints, component);
  const executors = orderExecutors(
    request,
    waiting,
    constraints === undefined ? executorOrder : 'constraints',
    severity,
  );
  const ackerCount = waiting.filter((executor) => request.componentOf[executor] === request.acker).length;
  const ackers = executors.slice(executors.length - ackerCount);
  return {
    trial,
    order,
    executors,
    ackerCount,
    newAckerQueue: () => new AckerQueue(trial, ackers, limits),
    candidates: () => new Candidates(trial, order, input.idle),
    maxStates,
    ordersOnce: PLACERS[placer].ordersOnce,
    onStuck: (executor) => onStuck(executor, trial),
  };
}

function unassignedExecutors({ assigned }: TopologyState): number[] {
  const executors: number[] = [];
  for (let executor = 0; executor < assigned.length; executor++)
    if (assigned[executor] === 0) executors.push(executor);
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
  const first = new Set(favoured);
  const unfavoured = onHosts(unfavouredHosts ?? []).filter((machine) => !first.has(machine));
  return { favoured, last: [...unfavoured, ...options.greyListed] };
}
