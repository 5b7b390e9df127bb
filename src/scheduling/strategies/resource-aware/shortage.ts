/**
 * Why an executor has no place: what it needs, what there is, the supervisor that comes closest, and the first rule that
 * keeps it off there.
 */
import { CPU, MEMORY, toValue } from './amounts.js';
import { genericResource } from './topology-request.js';
import type { Rule, Trial } from './trial.js';

/** Resources as people write them. */
export interface ResourceList {
  readonly cpuPercent: number;
  readonly memoryMb: number;
  /** Only those that the executor asks for. */
  readonly generic: Readonly<Record<string, number>>;
}

export interface Shortage {
  readonly component: string;
  readonly need: ResourceList & { readonly onHeapMb: number };
  /** Free on all usable supervisors together. */
  readonly have: ResourceList;
  /** The supervisor that comes closest, with what is free there; null: there is none that may be used. */
  readonly best: (ResourceList & { readonly supervisor: string }) | null;
  /** The first rule that keeps the executor off the best supervisor. */
  readonly rule: Rule | 'cluster-total' | 'no-supervisor';
}

/** In this order rules are asked; who fails later comes closer. */
const RULES: readonly string[] = [
  'not-usable',
  'cpu',
  'memory',
  'generic',
  'no-free-slot',
  'worker-heap',
  'one-executor-per-worker',
  'one-component-per-worker',
  'incompatible-component',
  'executors-per-supervisor',
];

/** Looks at every supervisor, as the trial stands. Cost: O(supervisors + slots). */
export function explainShortage(trial: Trial, component: number): Shortage {
  const { machines } = trial;
  let best = -1;
  let bestRule: Rule | undefined;
  let bestFit = -1;
  for (let machine = 0; machine < machines.count; machine++) {
    if (machines.usable[machine] === 0) continue;
    const rule = trial.firstRule(component, machine);
    const fit = rule === undefined ? 0 : rankOf(rule) + fitOf(trial, component, machine);
    if (fit <= bestFit) continue;
    best = machine;
    bestRule = rule;
    bestFit = fit;
  }
  return {
    ...demandOf(trial, component),
    best:
      best < 0
        ? null
        : { supervisor: machines.ids[best]!, ...listOf(trial, component, (one) => machines.free(best, one)) },
    rule: best < 0 ? 'no-supervisor' : (bestRule ?? 'no-free-slot'),
  };
}

/** What is needed and what there is, without looking at supervisors. */
export function demandOf(
  { machines, request }: Trial,
  component: number,
): Pick<Shortage, 'component' | 'need' | 'have'> {
  const need = (resource: number): number => {
    if (resource === CPU) return request.cpu[component]!;
    if (resource === MEMORY) return request.onHeap[component]! + request.offHeap[component]!;
    return request.generic[component * request.genericCount + resource - genericResource(0)]!;
  };
  return {
    component: request.components[component]!,
    need: {
      ...listOf({ machines, request }, component, need),
      onHeapMb: toValue(request.onHeap[component]!),
    },
    have: listOf({ machines, request }, component, (resource) => machines.totalLeft(resource)),
  };
}

/** A sentence without its subject: the topology's name goes before it. */
export function shortageText(executors: number, { component, need, have, best, rule }: Shortage): string {
  const waiting = `has ${executors} ${executors === 1 ? 'executor' : 'executors'} without a slot.`;
  if (rule === 'cluster-total') {
    const needs = lackText(need, have);
    return `${waiting} Together they need ${needs} in all. Add supervisors, or stop another topology.`;
  }
  const asks = `An executor of "${component}" needs ${text(need)}`;
  if (best === null) return `${waiting} ${asks}, and no supervisor can be used. Start one.`;
  return `${waiting} ${asks}; ${text(have)} are free in all. Supervisor ${best.supervisor} comes closest with ${text(best)}, but ${REASONS[ruleKind(rule)]}`;
}

const REASONS: Readonly<Record<string, string>> = {
  'not-usable': 'it may not be used.',
  cpu: 'its processor share is too small. Add a supervisor, or lower the request.',
  memory: 'its memory is too small. Add a supervisor, or lower the request.',
  generic: 'a resource by name is used up there. Add a supervisor that offers it.',
  'no-free-slot': 'it has no free slot. Raise supervisor.slots.',
  'worker-heap': 'the worker would exceed topology.worker-max-heap. Raise it.',
  'one-executor-per-worker':
    'each worker takes one executor only, and its slots are in use. Raise supervisor.slots.',
  'one-component-per-worker':
    'each worker takes one component only, and its slots are in use. Raise supervisor.slots.',
  'incompatible-component': 'its free slots hold components that may not share a worker with it.',
  'executors-per-supervisor': 'it has as many executors of the component as one supervisor may have.',
};

function ruleKind(rule: string): string {
  return rule.startsWith('generic:') ? 'generic' : rule;
}

function rankOf(rule: Rule): number {
  return RULES.indexOf(ruleKind(rule)) + 1;
}

/** Below 1: the smallest part of a need that the supervisor can meet. */
function fitOf({ machines, request }: Trial, component: number, machine: number): number {
  const part = (need: number, resource: number): number =>
    need > 0 ? Math.min(1, machines.free(machine, resource) / need) : 1;
  const parts = Math.min(
    part(request.cpu[component]!, CPU),
    part(request.onHeap[component]! + request.offHeap[component]!, MEMORY),
  );
  return parts * 0.999;
}

function listOf(
  { machines, request }: Pick<Trial, 'machines' | 'request'>,
  component: number,
  amount: (resource: number) => number,
): ResourceList {
  const names = machines.genericNames
    .map((name, index) => [name, index] as const)
    .filter(([, index]) => request.generic[component * request.genericCount + index]! > 0);
  return {
    cpuPercent: toValue(amount(CPU)),
    memoryMb: toValue(amount(MEMORY)),
    generic: Object.fromEntries(
      names.map(([name, index]) => [name, toValue(amount(genericResource(index)))]),
    ),
  };
}

/** Of sums over the cluster, which tell the one resource that does not suffice. */
function lackText(need: ResourceList, have: ResourceList): string {
  if (need.cpuPercent > 0) return `${need.cpuPercent} % of a core; ${have.cpuPercent} % are free`;
  if (need.memoryMb > 0) return `${need.memoryMb} MB; ${have.memoryMb} MB are free`;
  return 'more of a resource by name than there is';
}

function text({ cpuPercent, memoryMb, generic }: ResourceList): string {
  const named = Object.entries(generic).map(([name, amount]) => `${amount} ${name}`);
  return [`${cpuPercent} % of a core`, `${memoryMb} MB`, ...named].join(', ');
}
