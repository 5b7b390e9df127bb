/**
 * The blacklist: hosts whose supervisors vanish or lose slots again and again get nothing new for a while. A wrapper around any
 * strategy; what it remembers is a value that the caller keeps. Source: Storm's `BlacklistScheduler` and `DefaultBlacklistStrategy`.
 *
 * L1: a supervisor is listed only after it was bad in `toleranceCount` rounds of `toleranceMs`. L2: it is released `resumeMs` later, or
 * earlier where slots are short, host by host in order of name, and is used last then. L3: what runs stays. L4: the same memory, snapshot and
 * moment give the same answer. Storm counts rounds, which come at a fixed pace there; here rounds that come sooner count as one.
 */
import type { ClusterSnapshot } from '../../cluster-snapshot.js';
import { compareText } from '../../order.js';

export interface BlacklistRules {
  /** How far back bad rounds count. */
  readonly toleranceMs: number;
  /** Bad rounds within that time that make a supervisor listed. */
  readonly toleranceCount: number;
  /** For how long a supervisor stays listed. */
  readonly resumeMs: number;
  /** Rounds within such a time count as one. */
  readonly roundMs: number;
  /** A supervisor that offers fewer ports than it did is bad too. */
  readonly countsLostSlots: boolean;
}

/** What is remembered from round to round. */
export interface BlacklistMemory {
  /** Ports that each supervisor has ever offered, ascending. */
  readonly known: ReadonlyMap<string, readonly number[]>;
  /** Bad supervisors with the ports that they lacked, the oldest round first. */
  readonly rounds: readonly BadRound[];
  /** Listed supervisors, and until when. */
  readonly listedUntilMs: ReadonlyMap<string, number>;
  /** Names of hosts, also of supervisors that are away. */
  readonly hosts: ReadonlyMap<string, string>;
}

interface BadRound {
  readonly atMs: number;
  readonly bad: ReadonlyMap<string, readonly number[]>;
}

export interface BlacklistDecision {
  readonly memory: BlacklistMemory;
  /** Hosts on which nothing new is placed now. */
  readonly hosts: ReadonlySet<string>;
  /** Supervisors that were released because slots are short. */
  readonly greyListed: ReadonlySet<string>;
}

export const EMPTY_BLACKLIST: BlacklistMemory = {
  known: new Map(),
  rounds: [],
  listedUntilMs: new Map(),
  hosts: new Map(),
};

/** One round: who is bad, who is listed, who is released. Cost: O(supervisors × rounds in the tolerance time). */
export function planBlacklist(
  before: BlacklistMemory,
  snapshot: ClusterSnapshot,
  nowMs: number,
  rules: BlacklistRules,
): BlacklistDecision {
  const listed = new Map([...before.listedUntilMs].filter(([, untilMs]) => nowMs < untilMs));
  const { bad, known } = look(before.known, snapshot, rules);
  const rounds = withRound(before.rounds, { atMs: nowMs, bad }, rules);
  const counts = new Map<string, number>();
  for (const round of rounds) for (const id of round.bad.keys()) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const [id, count] of counts) {
    if (count >= rules.toleranceCount && !listed.has(id)) listed.set(id, nowMs + rules.resumeMs);
  }
  const hosts = new Map(before.hosts);
  for (const { id, host } of snapshot.supervisors) hosts.set(id, host);
  for (const id of hosts.keys()) if (!known.has(id) && !listed.has(id)) hosts.delete(id);
  const greyListed = released(snapshot, listed, hosts);
  for (const id of greyListed) listed.delete(id);
  const present = new Map(snapshot.supervisors.map(({ id, host }) => [id, host]));
  const blacklisted = [...listed.keys()].map((id) => present.get(id)).filter((host) => host !== undefined);
  return {
    memory: { known: forgetting(known, rounds, rules), rounds, listedUntilMs: listed, hosts },
    hosts: new Set(blacklisted.sort(compareText)),
    greyListed,
  };
}

/** What a strategy sees of a snapshot under the blacklist. */
export function underBlacklist(
  snapshot: ClusterSnapshot,
  { hosts, greyListed }: BlacklistDecision,
): ClusterSnapshot {
  if (hosts.size === 0 && greyListed.size === 0) return snapshot;
  return {
    ...snapshot,
    blacklistedHosts: new Set([...(snapshot.blacklistedHosts ?? []), ...hosts]),
    greyListedSupervisors: greyListed,
  };
}

/** Supervisors that are away or lack ports that they had, with these ports; and what is known from now on. */
function look(
  knownBefore: BlacklistMemory['known'],
  { supervisors }: ClusterSnapshot,
  { countsLostSlots }: BlacklistRules,
): { readonly bad: Map<string, readonly number[]>; readonly known: Map<string, readonly number[]> } {
  const known = new Map(knownBefore);
  const bad = new Map<string, readonly number[]>();
  const present = new Set(supervisors.map(({ id }) => id));
  for (const [id, ports] of knownBefore) if (!present.has(id)) bad.set(id, ports);
  for (const { id, ports } of supervisors) {
    const had = knownBefore.get(id) ?? [];
    const offered = new Set(ports);
    const missing = had.filter((port) => !offered.has(port));
    if (missing.length > 0 && countsLostSlots) bad.set(id, missing);
    if (missing.length > 0 || had.length < offered.size)
      known.set(
        id,
        [...new Set([...had, ...ports])].sort((a, b) => a - b),
      );
  }
  return { bad, known };
}

/** The rounds that count, with this one: a supervisor is bad once in a round's time however many rounds fall into it. */
function withRound(before: readonly BadRound[], now: BadRound, rules: BlacklistRules): readonly BadRound[] {
  const recent = before.filter(({ atMs }) => now.atMs - atMs < rules.toleranceMs);
  const last = recent.at(-1);
  if (last === undefined || now.atMs - last.atMs >= rules.roundMs) return [...recent, now];
  return [...recent.slice(0, -1), { atMs: last.atMs, bad: new Map([...last.bad, ...now.bad]) }];
}

/** Whole hosts, in order of name, until the slots that topologies lack are there. */
function released(
  snapshot: ClusterSnapshot,
  listed: ReadonlyMap<string, number>,
  hosts: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const result = new Set<string>();
  if (listed.size === 0) return result;
  const isClosed = (host: string): boolean => snapshot.blacklistedHosts?.has(host) ?? false;
  const taken = new Map<string, number>();
  for (const workers of snapshot.placement.values())
    for (const { supervisor } of workers) taken.set(supervisor, (taken.get(supervisor) ?? 0) + 1);
  const freeOn = new Map(
    snapshot.supervisors.map(({ id, ports, host }) => [
      id,
      isClosed(host) ? 0 : Math.max(0, ports.length - (taken.get(id) ?? 0)),
    ]),
  );
  const listedHosts = new Set(
    [...listed.keys()].map((id) => hosts.get(id)).filter((host) => host !== undefined),
  );
  let shortage = slotsWanted(snapshot);
  for (const { id, host } of snapshot.supervisors)
    if (!listedHosts.has(host)) shortage -= freeOn.get(id) ?? 0;
  for (const host of [...listedHosts].sort(compareText)) {
    if (shortage <= 0) break;
    for (const id of listed.keys()) {
      if (hosts.get(id) !== host) continue;
      result.add(id);
      shortage -= freeOn.get(id) ?? 0;
    }
  }
  return result;
}

/** Workers that topologies lack; one at least for a topology with an executor that has no slot. */
function slotsWanted({ topologies, placement }: ClusterSnapshot): number {
  return topologies.reduce((sum, { id, workers, executors }) => {
    const placed = placement.get(id) ?? [];
    const missing = Math.min(workers, executors.length) - placed.length;
    const count = placed.reduce((total, worker) => total + worker.executors.length, 0);
    return sum + Math.max(missing, count < executors.length && placed.length === 0 ? 1 : 0, 0);
  }, 0);
}

/** A supervisor, or a port, that was missing in every round of a full tolerance time is not expected any more. */
function forgetting(
  known: ReadonlyMap<string, readonly number[]>,
  rounds: readonly BadRound[],
  { toleranceMs, roundMs }: BlacklistRules,
): ReadonlyMap<string, readonly number[]> {
  const isFull = rounds.length >= Math.max(1, Math.floor(toleranceMs / roundMs));
  if (!isFull) return known;
  const remembered = [...known].map(([id, ports]): [string, readonly number[]] => [
    id,
    ports.filter((port) => !rounds.every(({ bad }) => bad.get(id)?.includes(port) === true)),
  ]);
  return new Map(remembered.filter(([id, ports]) => ports.length > 0 || known.get(id)?.length === 0));
}
