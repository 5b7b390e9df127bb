/**
 * In which order topologies are placed, and thereby who may evict whom: a topology only makes room at the expense of later ones.
 *
 * Each user's topologies go by priority; between users the next one is always that of the user who would exceed their
 * guarantee least, simulated as if everything before were placed.
 * Source: Storm's scheduling priority strategies; users whose order Storm leaves to hash order go by name.
 */
import { compareText } from '../../order.js';
import { CPU, MEMORY, toAmount } from './amounts.js';
import type { Machines } from './machines.js';
import { genericResource, type RequestTotals } from './topology-request.js';

/** What a user may always have. Resources by name: `cpu` (100 is one core), `memory` (MB), and others. */
export type UserGuarantees = ReadonlyMap<string, Readonly<Record<string, number>>>;

/** `default`: processor and memory. `generic`: all resources. `fifo`: beyond the guarantee, the youngest first. */
export type TopologyOrder = 'default' | 'generic' | 'fifo';

export interface OrderedTopology {
  readonly id: string;
  readonly owner: string;
  readonly priority: number;
  readonly uptimeMs: number;
  readonly totals: RequestTotals;
}

export interface TopologyOrderOptions {
  readonly order: TopologyOrder;
  readonly guarantees: UserGuarantees;
  /**
   * Once the simulation has used up the cluster, all scores are equal and Storm takes all topologies of one user before
   * those of the next. true: the user with the smallest use beyond the guarantee goes first, measured against the whole cluster.
   */
  readonly fairWhenExhausted: boolean;
}

const EXHAUSTED = Number.MAX_VALUE;

/** Ids in the order of placement. */
export function orderTopologies(
  topologies: readonly OrderedTopology[],
  machines: Machines,
  { order, guarantees, fairWhenExhausted }: TopologyOrderOptions,
): readonly string[] {
  const total = Float64Array.from({ length: machines.resourceCount }, (_, resource) =>
    machines.totalOffered(resource),
  );
  const left = total.slice();
  // Only resources that somebody offers are compared.
  const compared = [CPU, MEMORY];
  if (order === 'generic') {
    machines.genericNames.forEach((_, name) => {
      if (total[genericResource(name)]! > 0) compared.push(genericResource(name));
    });
  }
  const users = usersOf(topologies, machines, guarantees);
  const ordered: string[] = [];
  while (users.length > 0) {
    for (const user of users)
      user.score = order === 'fifo' ? fifoScore(user, left) : scoreOf(user, left, compared);
    users.sort((a, b) => compareScores(a, b, fairWhenExhausted ? total : undefined, compared));
    const first = users[0]!;
    const next = first.waiting.pop();
    if (next === undefined) {
      users.shift();
      continue;
    }
    ordered.push(next.id);
    addTotals(first.used, next.totals, 1);
    addTotals(left, next.totals, -1);
  }
  return ordered;
}

interface User {
  readonly name: string;
  /** By resource. */
  readonly guaranteed: Float64Array;
  readonly used: Float64Array;
  /** Most important last. */
  readonly waiting: OrderedTopology[];
  score: number;
}

function usersOf(
  topologies: readonly OrderedTopology[],
  machines: Machines,
  guarantees: UserGuarantees,
): User[] {
  const byOwner = new Map<string, OrderedTopology[]>();
  for (const topology of topologies) {
    const own = byOwner.get(topology.owner);
    if (own === undefined) byOwner.set(topology.owner, [topology]);
    else own.push(topology);
  }
  const users = [...byOwner].sort(([a], [b]) => compareText(a, b));
  return users.map(([name, waiting]) => {
    const guaranteed = new Float64Array(machines.resourceCount);
    const granted = guarantees.get(name) ?? {};
    guaranteed[CPU] = toAmount(granted['cpu']);
    guaranteed[MEMORY] = toAmount(granted['memory']);
    machines.genericNames.forEach((resource, index) => {
      guaranteed[genericResource(index)] = toAmount(granted[resource]);
    });
    waiting.sort((a, b) => b.priority - a.priority || a.uptimeMs - b.uptimeMs || compareText(b.id, a.id));
    return { name, guaranteed, used: new Float64Array(machines.resourceCount), waiting, score: 0 };
  });
}

/** By how much the user's next topology would exceed the guarantee, as a share of what is left; below 0: within it. */
function scoreOf(
  { waiting, used, guaranteed }: User,
  left: Float64Array,
  compared: readonly number[],
): number {
  const next = waiting.at(-1);
  if (next === undefined) return EXHAUSTED;
  let score = -Infinity;
  for (const resource of compared) {
    if (left[resource]! <= 0) return EXHAUSTED;
    const wouldUse = used[resource]! + totalOf(next.totals, resource);
    score = Math.max(score, (wouldUse - guaranteed[resource]!) / left[resource]!);
  }
  return score;
}

/** Beyond the guarantee the age of the user's youngest topology counts, and it goes first from then on. */
function fifoScore(user: User, left: Float64Array): number {
  const score = scoreOf(user, left, [CPU, MEMORY]);
  if (score < 0) return score;
  user.waiting.sort((a, b) => b.uptimeMs - a.uptimeMs || compareText(b.id, a.id));
  return user.waiting.at(-1)?.uptimeMs ?? EXHAUSTED;
}

function compareScores(
  a: User,
  b: User,
  total: Float64Array | undefined,
  compared: readonly number[],
): number {
  if (a.score !== b.score) return a.score - b.score;
  if (total === undefined || a.score !== EXHAUSTED) return 0;
  return excessOf(a, total, compared) - excessOf(b, total, compared);
}

/** As the score, as a share of the whole cluster. */
function excessOf(
  { waiting, used, guaranteed }: User,
  total: Float64Array,
  compared: readonly number[],
): number {
  const next = waiting.at(-1);
  if (next === undefined) return EXHAUSTED;
  let excess = -Infinity;
  for (const resource of compared) {
    if (total[resource]! <= 0) continue;
    const wouldUse = used[resource]! + totalOf(next.totals, resource);
    excess = Math.max(excess, (wouldUse - guaranteed[resource]!) / total[resource]!);
  }
  return excess;
}

function totalOf({ cpu, memory, generic }: RequestTotals, resource: number): number {
  if (resource === CPU) return cpu;
  return resource === MEMORY ? memory : generic[resource - genericResource(0)]!;
}

function addTotals(sums: Float64Array, totals: RequestTotals, sign: 1 | -1): void {
  for (let resource = 0; resource < sums.length; resource++)
    sums[resource]! += sign * totalOf(totals, resource);
}
