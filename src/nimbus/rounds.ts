/**
 * Scheduling rounds of the leading Nimbus: who lives, what is free, what to write.
 *
 * A change of one topology makes a round about that topology alone: all other slots count as held, which is what the
 * strategy would find. A round about all follows when machines come or go, when slots become free that somebody waits for, and
 * periodically.
 */
import { type ErrorRecord, hasCode, type Logger, type Settings } from '../base/index.js';
import { type Coordination, type FoldedHeartbeat, type WorkerHeartbeat } from '../coordination/index.js';
import {
  type Assignment,
  type BlacklistMemory,
  type BlacklistRules,
  type ClusterSnapshot,
  EMPTY_BLACKLIST,
  openRound,
  type PlacementNeed,
  planBlacklist,
  type RoundSupervisor,
  type RoundTopology,
  type SlotAssignment,
  type TopologyOutcome,
  underBlacklist,
} from '../scheduling/index.js';
import type { ClusterView } from './cluster-view.js';
import type { Decider } from './deciding/decider.js';
import type { KnownTopology, LoadedTopology } from './known-topology.js';
import type { EventDesk } from './events/event-desk.js';
import { KnownLoads } from './known-loads.js';
import { Liveness } from './liveness.js';
import { destinationOf } from './moves/advance-move.js';
import { OfferedSlots } from './offered-slots.js';
import { isPlaced, placedPart } from './placed-part.js';
import { placementChanges } from './placement-changes.js';
import { picturedSettings, picturedTopology, type SchedulingPicture } from './scheduling-picture.js';
import { SlotWaits } from './slot-waits.js';
import { WaitingTopologies } from './waiting-topologies.js';
import type { WorkCounts } from './work-counts.js';

/** Strategies that cannot tell from free slots alone what is left of a machine. */
const WHOLE_MACHINES: ReadonlySet<string> = new Set(['isolation', 'multitenant', 'resource-aware']);
const CLEARING: ReadonlySet<string> = new Set(['isolation', 'multitenant']);
/** Period at which workers without supervisor are looked for while a supervisor is away. */
const AWAY_CHECK_MS = 500;
/** Requests to the coordinator, one after the other, in which a worker that has lost its supervisor surely announces itself. */
const ANNOUNCE_TURNS = 20;

export interface RoundsOptions {
  readonly coordination: Coordination;
  readonly view: ClusterView;
  readonly settings: Settings;
  /** Who answers rounds. */
  readonly decider: Pick<Decider, 'decide'>;
  readonly logger: Logger;
  readonly work: WorkCounts;
  readonly events: Pick<EventDesk, 'noteGone' | 'noteAssignment' | 'noteUnplaced' | 'noteNotScheduled'>;
  /** Wall clock, ms. */
  wallMs(): number;
  /** Nimbus's own time, ms; never jumps. */
  nowMs(): number;
  /** Another step is due in so many ms at the latest. */
  wakeIn(delayMs: number): void;
  /** Carries out what a round has decided, as far as it goes now, without stopping what need not stop. */
  advance(known: KnownTopology, outcome: TopologyOutcome): Promise<void>;
}

export class Rounds {
  readonly #options: RoundsOptions;
  #liveness: Liveness;
  #gone: ReadonlySet<string> = new Set();
  #blacklist: BlacklistMemory = EMPTY_BLACKLIST;
  #isAllDue = true;
  readonly #due = new Set<string>();
  readonly #waiting = new WaitingTopologies();
  readonly #slotWaits: SlotWaits;
  readonly #loads: KnownLoads;
  readonly #offered: OfferedSlots;
  readonly #places = new WeakMap<readonly SlotAssignment[], ReadonlyMap<number, SlotAssignment>>();
  /** Those that the round under way holds back for what may come in a moment. */
  readonly #held = new Set<string>();

  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#liveness = new Liveness(options.nowMs());
    this.#slotWaits = new SlotWaits(options.logger);
    this.#loads = new KnownLoads(options.view, options.settings);
    this.#offered = new OfferedSlots(options.view, this.#loads);
  }

  /** Leadership has just begun: nobody has been heard of yet. */
  reset(): void {
    this.#liveness = new Liveness(this.#options.nowMs());
    this.#gone = new Set();
    this.#blacklist = EMPTY_BLACKLIST;
    this.#waiting.clear();
    this.#loads.clear();
    this.#slotWaits.clear();
    this.#due.clear();
    this.#isAllDue = true;
  }

  /** The next round is about all topologies. */
  askForAll(): void {
    this.#isAllDue = true;
  }

  /** The next round is about this topology, if it is not about all. */
  askFor(topologyId: string): void {
    this.#due.add(topologyId);
  }

  /** Slots may have become free. */
  noteFreed(): void {
    if (this.#waiting.isAny) this.#isAllDue = true;
  }

  /**
   * A topology that has no slots any more was removed. Its slots were free when it gave them up; what is news is that no free
   * slot is kept for it, or no machine. Where there is none, its end costs the same however many others wait.
   */
  noteRemoved(topologyId: string): void {
    this.forget(topologyId);
    if (this.#looksAtAll || this.#isAnyFree) this.noteFreed();
  }

  forget(topologyId: string): void {
    this.#waiting.delete(topologyId);
    this.#loads.forget(topologyId);
    this.#slotWaits.forget(topologyId);
    this.#due.delete(topologyId);
  }

  noteHeartbeats(heartbeats: readonly FoldedHeartbeat[]): void {
    this.#liveness.noteHeartbeats(heartbeats, this.#options.nowMs());
    this.#loads.noteHeartbeats(heartbeats);
  }

  /** Supervisors whose machines have gone, as far as can be known. */
  get gone(): ReadonlySet<string> {
    return this.#gone;
  }

  /** Has the machine of this supervisor gone, as far as can be known? */
  isGone(supervisorId: string): boolean {
    return this.#gone.has(supervisorId);
  }

  /** While a supervisor that has something to do is away: do its workers announce themselves? */
  async lookForWorkers(concerned: ReadonlySet<string>): Promise<void> {
    const { coordination, view, settings, logger } = this.#options;
    const present = new Set(view.supervisors.map(({ id }) => id));
    const isAnyAway = [...concerned].some((id) => !present.has(id));
    const graceMs = settings['supervisor.gone-grace'];
    const look = async (): Promise<ReturnType<Liveness['goneSupervisors']>> => {
      const announced: readonly WorkerHeartbeat[] = isAnyAway ? await coordination.listWorkerLiveness() : [];
      const nowMs = this.#options.nowMs();
      this.#liveness.noteWorkers(announced, nowMs);
      return this.#liveness.goneSupervisors(concerned, view.supervisors, announced, graceMs, nowMs);
    };
    const newlyGone = (): readonly string[] => [...found.gone].filter((id) => !this.#gone.has(id));
    let found = await look();
    // Where everything is slow, the grace is too short for a worker's few requests: it may take as long as these do.
    for (let turn = 0; turn < ANNOUNCE_TURNS && newlyGone().length > 0; turn++) found = await look();
    const news = newlyGone();
    for (const id of news) {
      logger.warn('supervisor.gone', { supervisor: id });
      this.#options.events.noteGone(id, view.namesOn(id));
    }
    if (news.length > 0) this.#isAllDue = true;
    this.#gone = found.gone;
    if (found.nextCheckMs !== null)
      this.#options.wakeIn(Math.max(1, found.nextCheckMs - this.#options.nowMs()));
    else if (isAnyAway) this.#options.wakeIn(AWAY_CHECK_MS);
  }

  /** Makes the round that is due, if one is, and writes what it decides. @throws what `Coordination` throws */
  async run(): Promise<void> {
    for (const id of this.#slotWaits.takeDue(this.#options.nowMs())) this.#due.add(id);
    try {
      await this.#runDue();
    } finally {
      const { nextDueMs } = this.#slotWaits;
      if (nextDueMs !== undefined) this.#options.wakeIn(Math.max(1, nextDueMs - this.#options.nowMs()));
    }
  }

  async #runDue(): Promise<void> {
    if (!this.#isAllDue && this.#due.size === 0) return;
    const { view } = this.#options;
    const isAboutAll = this.#isAllDue || this.#looksAtAll;
    const ids = isAboutAll ? [...view.topologies.keys()] : [...this.#due];
    this.#isAllDue = false;
    this.#due.clear();
    if (isAboutAll) this.#liveness.retain([...view.topologies.values()].flatMap(assignmentOf));
    const scope = new Map(
      ids
        .map((id) => view.topologies.get(id))
        .filter((known) => known !== undefined && isPlaced(known))
        .map((known) => [known!.id, known!]),
    );
    const startMs = this.#options.nowMs();
    try {
      await this.#decide(scope, isAboutAll);
      this.#options.work.noteRound(this.#options.nowMs() - startMs);
    } catch (error) {
      for (const id of ids) this.#due.add(id);
      this.#isAllDue ||= isAboutAll;
      throw error;
    }
  }

  /** What a round would decide about one topology; nothing is written. */
  async preview(
    known: KnownTopology,
    as: Pick<RoundTopology, 'plan' | 'rebalance'>,
  ): Promise<TopologyOutcome> {
    const topology = { ...this.#roundTopology(known, known.loaded!), ...as };
    const others = this.#looksAtAll
      ? [...this.#options.view.topologies.values()].filter((one) => one !== known && isPlaced(one))
      : [];
    const round = openRound({
      nowMs: this.#options.nowMs(),
      supervisors: this.#supervisors(new Map([known, ...others].map((one) => [one.id, one]))),
      topologies: [
        topology,
        ...others.flatMap((one) => (one.loaded === undefined ? [] : [this.#roundTopology(one, one.loaded)])),
      ],
    });
    const asked = this.#shown(round.snapshot, false);
    const { topologies } = round.finish(await this.#options.decider.decide(asked), asked);
    return topologies.find(({ topologyId }) => topologyId === known.id)!;
  }

  /** What the next round about all topologies would start from; nothing is decided. */
  picture(): SchedulingPicture {
    const { view, settings } = this.#options;
    const nowMs = this.#options.nowMs();
    const scope = new Map([...view.topologies].filter(([, known]) => isPlaced(known)));
    const topologies = [...scope.values()].flatMap((known) => {
      if (known.loaded === undefined) return [];
      return picturedTopology(known, this.#roundTopology(known, known.loaded), nowMs) ?? [];
    });
    const supervisors = this.#supervisors(scope, true);
    const { listedUntilMs, hosts } = this.#blacklist;
    const listed = [...listedUntilMs].flatMap(([id, untilMs]) =>
      untilMs > nowMs ? (hosts.get(id) ?? []) : [],
    );
    const blacklistedHosts = settings['scheduling.blacklist'] ? [...new Set(listed)].sort() : [];
    return { nowMs, settings: picturedSettings(settings), supervisors, blacklistedHosts, topologies };
  }

  /**
   * What the strategy sees of a snapshot. `observes`: the blacklist learns from this round. A round about some topologies does not see all
   * slots, and a preview must change nothing: they go by what is known.
   */
  #shown(snapshot: ClusterSnapshot, observes: boolean): ClusterSnapshot {
    const { settings } = this.#options;
    if (!settings['scheduling.blacklist']) return snapshot;
    const rules: BlacklistRules = {
      toleranceMs: settings['blacklist.tolerance-time'],
      toleranceCount: settings['blacklist.tolerance-count'],
      resumeMs: settings['blacklist.resume-time'],
      roundMs: settings['nimbus.round-interval'],
      countsLostSlots: settings['blacklist.count-lost-slots'],
    };
    const known = this.#blacklist;
    const before = observes ? known : { ...known, known: new Map<string, readonly number[]>() };
    const decision = planBlacklist(before, snapshot, this.#options.nowMs(), rules);
    if (observes) {
      this.#blacklist = decision.memory;
      for (const id of decision.memory.listedUntilMs.keys()) {
        if (!known.listedUntilMs.has(id))
          this.#options.logger.warn('supervisor.blacklisted', { supervisor: id });
      }
    }
    return underBlacklist(snapshot, decision);
  }

  /** Strategies that look at whole machines decide about all topologies at once. */
  get #looksAtAll(): boolean {
    return WHOLE_MACHINES.has(this.#options.settings['scheduling.strategy']);
  }

  get #isAnyFree(): boolean {
    const { view } = this.#options;
    return view.supervisors.some(({ id, ports }) =>
      ports.some((port) => view.holderOf(`${id}:${port}`) === undefined),
    );
  }

  /** Somebody may look at what machines have left: the cluster's strategy, or one that is installed. */
  get #looksAtResources(): boolean {
    const { settings } = this.#options;
    return (
      settings['scheduling.strategy'] === 'resource-aware' ||
      settings['scheduling.strategy-modules'].length > 0
    );
  }

  /** Strategies that have machines cleared for one topology: who is to have a slot there waits until it is free. */
  get #clearsMachines(): boolean {
    return CLEARING.has(this.#options.settings['scheduling.strategy']);
  }

  async #decide(scope: ReadonlyMap<string, KnownTopology>, isAboutAll: boolean): Promise<void> {
    const { logger } = this.#options;
    this.#held.clear();
    const topologies = [...scope.values()].flatMap((known) =>
      known.loaded === undefined ? [] : [this.#roundTopology(known, known.loaded)],
    );
    if (topologies.length === 0) return;
    const open = openRound({
      nowMs: this.#options.nowMs(),
      supervisors: this.#supervisors(scope),
      topologies,
      // Slots that topologies wait for that are not part of the round: one for each executor at most.
      spokenFor: this.#waiting.lackingBeside(scope.keys()),
      ...(this.#options.settings['scheduling.strategy'] === 'balanced'
        ? { holds: (need) => this.#hold(scope.get(need.topologyId)!, need) }
        : {}),
    });
    const before = new Map([...scope.values()].map((one) => [one.id, decidedFrom(one)]));
    const asked = this.#shown(open.snapshot, isAboutAll);
    const round = open.finish(await this.#options.decider.decide(asked), asked);
    // What somebody else has changed while the strategy thought is decided again.
    const isStale = ({ topologyId }: TopologyOutcome): boolean => {
      const one = this.#options.view.topologies.get(topologyId);
      return one === undefined || !sameParts(decidedFrom(one), before.get(topologyId)!);
    };
    const stale = new Set(round.topologies.filter(isStale).map(({ topologyId }) => topologyId));
    if (stale.size > 0) {
      for (const id of stale) this.#due.add(id);
      this.#options.wakeIn(0);
    }
    const known = new Set(
      round.topologies
        .filter((outcome) => this.#isKnownLack(scope.get(outcome.topologyId)!, outcome))
        .map(({ topologyId }) => topologyId),
    );
    for (const { level, event, fields } of round.log) {
      // Said when it began; once is enough.
      if (event === 'executors.unplaced' && known.has(String(fields['topology']))) continue;
      logger[level](event, fields);
    }
    for (const outcome of round.topologies)
      if (!stale.has(outcome.topologyId)) await this.#apply(scope.get(outcome.topologyId)!, outcome);
    // Who has several slots may have more than its share, which only a round about all can tell.
    const isNewlyWithout = ({ topologyId, unplaced }: TopologyOutcome): boolean =>
      unplaced.length > 0 &&
      !known.has(topologyId) &&
      unplaced.length === scope.get(topologyId)!.loaded?.plan.executors.length;
    if (!isAboutAll && round.topologies.some(isNewlyWithout) && this.#options.view.hasSpread) {
      this.#isAllDue = true;
      this.#options.wakeIn(0);
    }
    if (!round.runAgain) return;
    for (const { topologyId, unplaced } of round.topologies) {
      if (unplaced.length > 0) this.#due.add(topologyId);
    }
    this.#options.wakeIn(0);
  }

  #hold({ loaded }: KnownTopology, need: PlacementNeed): string | null {
    const reason = this.#slotWaits.hold(need, loaded!.settings, this.#options.nowMs());
    const free = [...need.free.values()].reduce((sum, slots) => sum + slots.length, 0);
    if (reason !== null && free >= need.wanted) this.#held.add(need.topologyId);
    return reason;
  }

  #isKnownLack(known: KnownTopology, { unplaced, unplacedReason }: TopologyOutcome): boolean {
    return known.unplacedExecutors === unplaced.length && known.unplacedReason === unplacedReason;
  }

  async #apply(known: KnownTopology, outcome: TopologyOutcome): Promise<void> {
    const { events } = this.#options;
    const problem = outcome.kind === 'failed' ? outcome.error : undefined;
    if (problem !== undefined && !isSameProblem(problem, known.roundProblem))
      events.noteNotScheduled(known, problem);
    // What is held back for a moment lacks nothing yet.
    const lacks = outcome.unplaced.length > 0 && !this.#held.has(known.id);
    if (lacks && !this.#isKnownLack(known, outcome))
      events.noteUnplaced(known, outcome.unplaced.length, outcome.unplacedReason ?? 'no slot is free');
    known.noteOutcome(problem, outcome, this.#options.wallMs());
    if (outcome.kind === 'changed' && this.#takesFromOthers(known, outcome.assignment)) {
      // A slot is given up by one topology before another one may have it: the next round finds it free.
      this.#waiting.set(known.id, outcome.unplaced.length);
      return;
    }
    if (outcome.kind !== 'failed') await this.#options.advance(known, outcome);
    if (outcome.unplaced.length === 0) this.#slotWaits.forget(known.id);
    if (outcome.unplaced.length > 0 || known.rebalance !== undefined)
      this.#waiting.set(known.id, outcome.unplaced.length);
    else this.#waiting.delete(known.id);
  }

  #takesFromOthers(known: KnownTopology, { slots }: Assignment): boolean {
    return slots.some(({ supervisor, port }) => {
      const holder = this.#options.view.holderOf(`${supervisor}:${port}`);
      return holder !== undefined && holder !== known;
    });
  }

  /** Writes an assignment that follows the one in force. Resolves to false if somebody else has decided meanwhile. */
  async write(known: KnownTopology, assignment: Assignment): Promise<boolean> {
    const { coordination, view } = this.#options;
    const before = known.assignment;
    try {
      await coordination.writeAssignment(assignment);
    } catch (error) {
      if (!hasCode(error, 'VERSION_CONFLICT') && !hasCode(error, 'NODE_MISSING')) throw error;
      view.markTopologies([known.id]);
      this.#due.add(known.id);
      this.#options.wakeIn(0);
      return false;
    }
    view.setAssignment(known, assignment);
    const changes = placementChanges(before, assignment);
    this.#options.work.noteAssignment(changes);
    this.#options.events.noteAssignment(known, { before, after: assignment, changes, gone: this.#gone });
    const kept = new Set(assignment.slots.map(({ supervisor, port }) => `${supervisor}:${port}`));
    const isFreed = before?.slots.some(({ supervisor, port }) => !kept.has(`${supervisor}:${port}`)) ?? false;
    if (isFreed) {
      this.noteFreed();
      this.#options.wakeIn(0);
    }
    return true;
  }

  #roundTopology(known: KnownTopology, { plan, settings }: LoadedTopology): RoundTopology {
    const { id, assignment, rebalance } = known;
    return {
      id,
      plan,
      settings,
      // Where it is headed: what is under way is not decided again.
      stored: assignment === undefined ? undefined : placedPart(destinationOf(assignment)),
      facts: {
        name: known.record.name,
        uptimeMs: Math.max(0, this.#options.nowMs() - known.record.submittedMs),
      },
      lastHeartbeatMs: this.#lastHeartbeats(known, settings),
      ...this.#loads.measured(id),
      ...(rebalance === undefined ? {} : { rebalance }),
    };
  }

  /** Supervisors with the slots that topologies of this round may have, and those that have gone. */
  #supervisors(
    scope: ReadonlyMap<string, KnownTopology>,
    looksAtResources = this.#looksAtResources,
  ): readonly RoundSupervisor[] {
    const present = this.#offered.of(scope, {
      clearsMachines: this.#clearsMachines,
      looksAtLoad: this.#options.settings['scheduling.strategy'] === 'balanced',
      looksAtResources,
    });
    return [...present, ...[...this.#gone].map((id) => ({ id, host: '', ports: [], gone: true }))];
  }

  /** When each executor of a topology, named by its first task, was last heard from in its present slot. */
  #lastHeartbeats(known: KnownTopology, settings: Settings): (firstTask: number) => number | undefined {
    const nowMs = this.#options.nowMs();
    if (known.assignment === undefined) return () => undefined;
    const timeoutMs = settings['topology.worker-timeout'];
    const launchTimeoutMs = settings['topology.worker-launch-timeout'];
    const places = this.#placesOf(destinationOf(known.assignment));
    const heardIn = new Map<SlotAssignment, (firstTask: number) => number | undefined>();
    return (firstTask) => {
      const slot = places.get(firstTask);
      if (slot === undefined) return undefined;
      let heard = heardIn.get(slot);
      if (heard === undefined) {
        const { supervisor, port, startedMs } = slot;
        const place = { topologyId: known.id, supervisor, port, timeoutMs, launchTimeoutMs, startedMs };
        heardIn.set(slot, (heard = this.#liveness.lastHeartbeats(place, nowMs)));
      }
      return heard(firstTask);
    };
  }

  /** Where each executor, named by its first task, is headed. Made once for an assignment. */
  #placesOf(assignment: Assignment): ReadonlyMap<number, SlotAssignment> {
    let places = this.#places.get(assignment.slots);
    if (places === undefined) {
      const made = new Map<number, SlotAssignment>();
      for (const slot of assignment.slots) for (const [first] of slot.executors) made.set(first, slot);
      this.#places.set(assignment.slots, (places = made));
    }
    return places;
  }
}

function isSameProblem(a: ErrorRecord, b: ErrorRecord | undefined): boolean {
  return a.code === b?.code && a.message === b.message;
}

/** What a decision about a topology starts from, by identity. */
function decidedFrom({ record, assignment, loaded }: KnownTopology): readonly unknown[] {
  return [record, assignment, loaded];
}

function sameParts(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.every((part, index) => part === b[index]);
}

function assignmentOf({ assignment }: KnownTopology): readonly Assignment[] {
  return assignment === undefined ? [] : [assignment];
}
