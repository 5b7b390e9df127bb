/**
 * How a cluster fills while its machines come up: what topologies request, declare and wait for, which slots are offered when, and
 * what is placed. Rounds and waits are those of Nimbus, over a clock that is only imagined.
 *
 * At most {@link MAX_OFFERS} moments of offering: where there are more slots, several are offered at once.
 */
import type { Assignment } from '../assignment.js';
import type { PlacementNeed, RoundSupervisor } from '../round-types.js';
import { schedulingRound } from '../scheduling-round.js';
import { type SlotWaitState, waitBySettings } from '../slot-pool/index.js';
import { inParts, installedStrategies } from '../strategies/installed-strategies.js';
import { strategyNamed } from '../strategies/strategies.js';
import type { Strategy } from '../strategies/strategy.js';
import type { ImaginedCluster, ImaginedTopology } from './imagined-cluster.js';
import { type PlacementMetrics, placementMetrics } from './placement-metrics.js';
import { movesOfRound } from './placement-moves.js';
import { roundTopology, snapshotOf } from './plan-cluster.js';

export interface TimelineOptions {
  readonly strategy: string;
  /** How a strategy is asked, by its name; not given: those that come with Isobar, directly. */
  readonly named?: (name: string) => Strategy;
  /** Time between two slots that are offered. */
  readonly offerEveryMs: number;
  /** When supervisors offer all their slots at once, by id, ms after the start; takes the place of `offerEveryMs` for them. */
  readonly offersAtMs: ReadonlyMap<string, number>;
}

export type TimelineEvent = { readonly atMs: number } & (
  | { readonly kind: 'requested' | 'declared'; readonly topologyId: string; readonly slots: number }
  | { readonly kind: 'offered'; readonly machine: string; readonly ports: readonly number[] }
  | { readonly kind: 'waiting'; readonly topologyId: string; readonly slots: number; readonly free: number }
  | {
      readonly kind: 'placed';
      readonly topologyId: string;
      readonly workers: number;
      /** Executors that have no slot yet. */
      readonly waiting: number;
      /** The wait was over before there were as many slots as wanted. */
      readonly isProvisional: boolean;
      /** Running executors that changed their slot. */
      readonly moved: number;
      /** Load of all machines that are up. */
      readonly loads: readonly { readonly machine: string; readonly load: number }[];
    }
  | {
      readonly kind: 'lacking';
      readonly topologyId: string;
      readonly executors: number;
      readonly text: string;
    }
);

export interface SlotTimeline {
  readonly strategy: string;
  readonly events: readonly TimelineEvent[];
  readonly endMs: number;
  /** Nothing would change any more. */
  readonly isSettled: boolean;
  readonly after: PlacementMetrics;
  /** Topologies that run in fewer workers than they want. */
  readonly short: readonly {
    readonly topologyId: string;
    readonly workers: number;
    readonly wanted: number;
    /** It keeps what it was placed on, whatever comes free: every mode of the strategy `balanced` but `tasks`. */
    readonly stays: boolean;
  }[];
}

const MAX_OFFERS = 200;
const MAX_ROUNDS = 2000;

interface Offer {
  readonly atMs: number;
  readonly machine: string;
  readonly ports: readonly number[];
}

/** @throws SETTINGS_INVALID for a strategy that does not exist */
export function slotTimeline(cluster: ImaginedCluster, options: TimelineOptions): SlotTimeline {
  return new Timeline(cluster, options).run();
}

class Timeline {
  readonly #cluster: ImaginedCluster;
  readonly #options: TimelineOptions;
  readonly #events: TimelineEvent[] = [];
  readonly #stored: Map<string, Assignment | undefined>;
  readonly #offered = new Map<string, number[]>();
  readonly #waits = new Map<string, SlotWaitState>();
  readonly #dueMs = new Map<string, number>();
  readonly #provisional = new Set<string>();
  readonly #lacking = new Map<string, number>();
  #nowMs = 0;
  #isDue = true;

  constructor(cluster: ImaginedCluster, options: TimelineOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#stored = new Map(cluster.topologies.map(({ id, stored }) => [id, stored]));
  }

  run(): SlotTimeline {
    const offers = offersOf(this.#cluster.supervisors, this.#options);
    let rounds = 0;
    for (;;) {
      while (offers[0] !== undefined && offers[0].atMs <= this.#nowMs) this.#offer(offers.shift()!);
      if (this.#isDue) this.#round();
      if (++rounds >= MAX_ROUNDS) break;
      const nextMs = Math.min(
        offers[0]?.atMs ?? Infinity,
        ...this.#dueMs.values(),
        this.#isDue ? this.#nowMs + this.#cluster.settings['nimbus.round-interval'] : Infinity,
      );
      if (nextMs === Infinity) break;
      this.#nowMs = Math.max(this.#nowMs, nextMs);
      this.#isDue = true;
    }
    return {
      strategy: this.#options.strategy,
      events: this.#events,
      endMs: this.#events.at(-1)?.atMs ?? 0,
      isSettled: rounds < MAX_ROUNDS,
      after: placementMetrics(snapshotOf(this.#cluster, this.#stored)),
      short: this.#short(),
    };
  }

  #short(): SlotTimeline['short'] {
    const { topologies } = snapshotOf(this.#cluster, this.#stored);
    return topologies.flatMap(({ id, workers: most, executors, balance }) => {
      const workers = this.#stored.get(id)?.slots.length ?? 0;
      const wanted = Math.min(most, executors.length);
      const stays = this.#options.strategy === 'balanced' && (balance?.mode ?? 'tasks') !== 'tasks';
      return workers === 0 || workers >= wanted ? [] : [{ topologyId: id, workers, wanted, stays }];
    });
  }

  #offer({ machine, ports }: Offer): void {
    this.#offered.set(machine, [...(this.#offered.get(machine) ?? []), ...ports]);
    this.#events.push({ atMs: this.#nowMs, kind: 'offered', machine, ports });
    this.#isDue = true;
  }

  #round(): void {
    const { settings, topologies } = this.#cluster;
    const { strategy, named = (name: string) => strategyNamed(name, settings) } = this.#options;
    const nowMs = this.#cluster.nowMs + this.#nowMs;
    const none = new Set<string>();
    this.#dueMs.clear();
    const input = topologies.map((one) => roundTopology(one, this.#stored.get(one.id), none, nowMs));
    const byId = new Map(topologies.map((one) => [one.id, one]));
    const outcome = schedulingRound({
      nowMs,
      supervisors: this.#present(),
      topologies: input,
      strategy: inParts(strategy, installedStrategies(settings), named),
      ...(strategy === 'balanced' ? { holds: (need) => this.#hold(byId.get(need.topologyId)!, need) } : {}),
    });
    const before = new Map(this.#stored);
    const moves = movesOfRound({ round: 1, strategy, outcome, before, rebalanced: none });
    for (const one of outcome.topologies) {
      if (one.kind === 'changed') this.#stored.set(one.topologyId, one.assignment);
      if (one.unplaced.length === 0) this.#waits.delete(one.topologyId);
    }
    const { machines } = placementMetrics({
      ...snapshotOf(this.#cluster, this.#stored),
      supervisors: this.#present(),
    });
    const loads = machines.map(({ id, load }) => ({ machine: id, load }));
    this.#isDue = outcome.runAgain;
    for (const { topologyId, kind, unplaced, unplacedReason } of outcome.topologies) {
      const waiting = unplaced.length;
      const workers = this.#stored.get(topologyId)?.slots.length ?? 0;
      const hadWorkers = (before.get(topologyId)?.slots.length ?? 0) > 0;
      if (kind === 'changed' && (workers > 0 || hadWorkers)) {
        const moved = moves
          .filter((move) => move.topologyId === topologyId && move.from !== null)
          .reduce((sum, { executors }) => sum + executors.length, 0);
        this.#events.push({
          atMs: this.#nowMs,
          kind: 'placed',
          topologyId,
          workers,
          waiting,
          isProvisional: this.#provisional.has(topologyId),
          moved,
          loads,
        });
        // Balance may take more rounds than one.
        this.#isDue = true;
      } else if (waiting > 0 && !this.#dueMs.has(topologyId) && this.#lacking.get(topologyId) !== waiting) {
        this.#lacking.set(topologyId, waiting);
        this.#events.push({
          atMs: this.#nowMs,
          kind: 'lacking',
          topologyId,
          executors: waiting,
          text: unplacedReason ?? '',
        });
      }
    }
  }

  /** As Nimbus waits: under `tasks` only, until what is wanted is there or the wait is over. */
  #hold({ settings }: ImaginedTopology, { topologyId, ...need }: PlacementNeed): string | null {
    const { wanted } = need;
    const before = this.#waits.get(topologyId);
    const step = waitBySettings(before, need, settings, this.#nowMs);
    if (step === undefined) return null;
    const { state, decision } = step;
    this.#waits.set(topologyId, state);
    const atMs = this.#nowMs;
    if (before === undefined) this.#events.push({ atMs, kind: 'requested', topologyId, slots: wanted });
    if (state.declarations > (before?.declarations ?? 0))
      this.#events.push({ atMs, kind: 'declared', topologyId, slots: wanted });
    if (decision.kind === 'place') {
      if (decision.isProvisional) this.#provisional.add(topologyId);
      else this.#provisional.delete(topologyId);
      return null;
    }
    this.#events.push({ atMs, kind: 'waiting', topologyId, slots: decision.wanted, free: decision.free });
    this.#dueMs.set(topologyId, decision.dueMs);
    return 'waits to be placed as a whole.';
  }

  /** Supervisors that have offered something, with what they have offered; those that are gone stay so. */
  #present(): RoundSupervisor[] {
    return this.#cluster.supervisors.flatMap((one) => {
      if (one.gone === true) return [one];
      const ports = this.#offered.get(one.id);
      return ports === undefined ? [] : [{ ...one, ports }];
    });
  }
}

/**
 * In order of time. Machines where something runs are up from the start; of the others each that has no time of its own offers
 * its slots one after the other, machine by machine.
 */
function offersOf(
  supervisors: readonly RoundSupervisor[],
  { offerEveryMs, offersAtMs }: TimelineOptions,
): Offer[] {
  const present = supervisors.filter(({ gone, ports }) => gone !== true && ports.length > 0);
  const timed = present.filter(({ id }) => offersAtMs.has(id));
  const others = present.filter(({ id }) => !offersAtMs.has(id));
  const slots = others.flatMap(({ id, ports }) => ports.map((port) => ({ machine: id, port })));
  const size = Math.max(1, Math.ceil(slots.length / MAX_OFFERS));
  const offers: Offer[] = timed.map(({ id, ports }) => ({
    atMs: offersAtMs.get(id) ?? 0,
    machine: id,
    ports: [...ports],
  }));
  for (let from = 0; from < slots.length; from += size) {
    const atMs = (from / size) * offerEveryMs;
    const byMachine = new Map<string, number[]>();
    for (const { machine, port } of slots.slice(from, from + size))
      byMachine.set(machine, [...(byMachine.get(machine) ?? []), port]);
    for (const [machine, ports] of byMachine) offers.push({ atMs, machine, ports });
  }
  return offers.sort((a, b) => a.atMs - b.atMs);
}
