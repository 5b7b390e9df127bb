/**
 * Scheduling rounds of the leading Nimbus: who lives, what is free, what to write.
 *
 * A change of one topology makes a round about that topology alone: all other slots count as held, which is what the
 * strategy would find. A round about all follows when machines come or go, when slots become free that somebody waits for, and
 * periodically.
 */
import { hasCode, type Logger, type Settings } from '../base/index.js';
import {
  type Coordination,
  type FoldedHeartbeat,
  isTerminal,
  type WorkerHeartbeat,
} from '../coordination/index.js';
import {
  type Assignment,
  type BlacklistMemory,
  type BlacklistRules,
  type ClusterSnapshot,
  clusterTopologyOf,
  EMPTY_BLACKLIST,
  executorLoads,
  LoadMeter,
  openRound,
  type PlacementNeed,
  planBlacklist,
  type RoundSupervisor,
  type RoundTopology,
  type SlotAssignment,
  type TopologyOutcome,
  typicalLoad,
  underBlacklist,
} from '../scheduling/index.js';
import type { ClusterView } from './cluster-view.js';
import type { Decider } from './deciding/decider.js';
import type { KnownTopology, LoadedTopology } from './known-topology.js';
import { Liveness } from './liveness.js';
import { noteLoads } from './load-samples.js';
import { destinationOf } from './moves/advance-move.js';
import { picturedSettings, picturedTopology, type SchedulingPicture } from './scheduling-picture.js';
import { SlotWaits } from './slot-waits.js';
import type { WorkCounts } from './work-counts.js';

/** Strategies that cannot tell from free slots alone what is left of a machine. */
const WHOLE_MACHINES: ReadonlySet<string> = new Set(['isolation', 'multitenant', 'resource-aware']);
const CLEARING: ReadonlySet<string> = new Set(['isolation', 'multitenant']);
/** Period at which workers without supervisor are looked for while a supervisor is away. */
const AWAY_CHECK_MS = 500;
/** Requests to the coordinator, one after the other, in which a worker that has lost its supervisor surely announces itself. */
const ANNOUNCE_TURNS = 20;

const BYTES_OF_MB = 1_048_576;

export interface RoundsOptions {
  readonly coordination: Coordination;
  readonly view: ClusterView;
  readonly settings: Settings;
  /** Who answers rounds. */
  readonly decider: Pick<Decider, 'decide'>;
  readonly logger: Logger;
  readonly work: WorkCounts;
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
  /** Topologies with executors that have no slot, or with a rebalance that could not be carried out as it was asked for. */
  readonly #waiting = new Set<string>();
  readonly #slotWaits: SlotWaits;
  readonly #loads = new LoadMeter();
  /** What an executor of weight 1 measures; undefined: to be worked out. */
  #typicalLoad: number | undefined;
  /** What executors weigh: worked out once, or once between heartbeats where it is measured. */
  #loadsOf = new WeakMap<LoadedTopology, (firstTask: number) => number>();

  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#liveness = new Liveness(options.nowMs());
    this.#slotWaits = new SlotWaits(options.logger);
  }

  /** Leadership has just begun: nobody has been heard of yet. */
  reset(): void {
    this.#liveness = new Liveness(this.#options.nowMs());
    this.#gone = new Set();
    this.#blacklist = EMPTY_BLACKLIST;
    this.#waiting.clear();
    this.#loads.clear();
    this.#loadsOf = new WeakMap();
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
    if (this.#waiting.size > 0) this.#isAllDue = true;
  }

  forget(topologyId: string): void {
    this.#waiting.delete(topologyId);
    this.#loads.forget(topologyId);
    this.#slotWaits.forget(topologyId);
    this.#due.delete(topologyId);
  }

  noteHeartbeats(heartbeats: readonly FoldedHeartbeat[]): void {
    this.#liveness.noteHeartbeats(heartbeats, this.#options.nowMs());
    if (!this.#measuresLoad) return;
    noteLoads(this.#loads, heartbeats, this.#options.settings['load-balance.measure-window']);
    this.#typicalLoad = undefined;
    this.#loadsOf = new WeakMap();
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
    for (const id of news) logger.warn('supervisor.gone', { supervisor: id });
    if (news.length > 0) this.#isAllDue = true;
    this.#gone = found.gone;
    if (found.nextCheckMs !== null)
      this.#options.wakeIn(Math.max(1, found.nextCheckMs - this.#options.nowMs()));
    else if (isAnyAway) this.#options.wakeIn(AWAY_CHECK_MS);
  }

  /** Makes the round that is due, if one is, and writes what it decides. @throws what `Coordination` throws */
  async run(): Promise<void> {
    for (const id of this.#slotWaits.due(this.#options.nowMs())) this.#due.add(id);
    try {
      await this.#runDue();
    } finally {
      const { nextDueMs } = this.#slotWaits;
      if (nextDueMs < Infinity) this.#options.wakeIn(Math.max(1, nextDueMs - this.#options.nowMs()));
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
    const { topologies } = round.finish(
      await this.#options.decider.decide(this.#shown(round.snapshot, false)),
    );
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
    const supervisors = this.#supervisors(scope);
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

  /** Strategies that have machines cleared for one topology: who is to have a slot there waits until it is free. */
  get #clearsMachines(): boolean {
    return CLEARING.has(this.#options.settings['scheduling.strategy']);
  }

  async #decide(scope: ReadonlyMap<string, KnownTopology>, isAboutAll: boolean): Promise<void> {
    const { logger } = this.#options;
    const topologies = [...scope.values()].flatMap((known) =>
      known.loaded === undefined ? [] : [this.#roundTopology(known, known.loaded)],
    );
    if (topologies.length === 0) return;
    const open = openRound({
      nowMs: this.#options.nowMs(),
      supervisors: this.#supervisors(scope),
      topologies,
      ...(this.#options.settings['scheduling.strategy'] === 'balanced'
        ? { holds: (need) => this.#hold(scope.get(need.topologyId)!, need) }
        : {}),
    });
    const before = new Map([...scope.values()].map((one) => [one.id, decidedFrom(one)]));
    const round = open.finish(await this.#options.decider.decide(this.#shown(open.snapshot, isAboutAll)));
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
    if (!round.runAgain) return;
    for (const { topologyId, unplaced } of round.topologies) {
      if (unplaced.length > 0) this.#due.add(topologyId);
    }
    this.#options.wakeIn(0);
  }

  #hold({ loaded }: KnownTopology, need: PlacementNeed): string | null {
    return this.#slotWaits.hold(need, loaded!.settings, this.#options.nowMs());
  }

  #isKnownLack(known: KnownTopology, { unplaced, unplacedReason }: TopologyOutcome): boolean {
    return known.unplacedExecutors === unplaced.length && known.unplacedReason === unplacedReason;
  }

  async #apply(known: KnownTopology, outcome: TopologyOutcome): Promise<void> {
    known.roundProblem = outcome.kind === 'failed' ? outcome.error : undefined;
    known.unplacedExecutors = outcome.unplaced.length;
    known.unplacedReason = outcome.unplacedReason;
    if (outcome.kind === 'changed' && this.#takesFromOthers(known, outcome.assignment)) {
      // A slot is given up by one topology before another one may have it: the next round finds it free.
      this.#waiting.add(known.id);
      return;
    }
    if (outcome.kind !== 'failed') await this.#options.advance(known, outcome);
    if (outcome.unplaced.length === 0) this.#slotWaits.forget(known.id);
    if (outcome.unplaced.length > 0 || known.rebalance !== undefined) this.#waiting.add(known.id);
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
    this.#options.work.noteAssignment(before, assignment);
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
      ...this.#measured(id),
      ...(rebalance === undefined ? {} : { rebalance }),
    };
  }

  /** Supervisors with the slots that topologies of this round may have. */
  #supervisors(scope: ReadonlyMap<string, KnownTopology>): readonly RoundSupervisor[] {
    const { view, settings } = this.#options;
    const looksAtLoad = settings['scheduling.strategy'] === 'balanced';
    const headedFor = new Map<KnownTopology, ReadonlySet<string>>();
    const isHeadedFor = (holder: KnownTopology, slot: string): boolean => {
      const slots = headedFor.get(holder) ?? slotsHeadedFor(holder);
      headedFor.set(holder, slots);
      return slots.has(slot);
    };
    const isOpen = (slot: string): boolean => {
      const holder = view.holderOf(slot);
      if (holder === undefined) return true;
      if (!scope.has(holder.id) || holder.loaded === undefined) return false;
      // What a topology is about to give up is still its own. A machine that is being cleared looks as it soon will, or the
      // next round would clear another one instead.
      return scope.size === 1 || this.#clearsMachines || isHeadedFor(holder, slot);
    };
    const present = view.supervisors.map(({ id, host, rack, cores, memoryBytes, ports }) => {
      const [open, held] = [[] as number[], [] as number[]];
      for (const port of ports) (isOpen(`${id}:${port}`) ? open : held).push(port);
      const otherLoad = looksAtLoad ? held.reduce((sum, port) => sum + this.#loadOf(id, port), 0) : 0;
      const used = held.map((port) => this.#requestOf(id, port));
      const resources = {
        cpuPercent: Math.max(0, cores * 100 - used.reduce((sum, { cpuPercent }) => sum + cpuPercent, 0)),
        memoryMb: Math.max(
          0,
          memoryBytes / BYTES_OF_MB - used.reduce((sum, { memoryMb }) => sum + memoryMb, 0),
        ),
      };
      return { id, host, rack, ports: open, otherLoad, resources };
    });
    return [...present, ...[...this.#gone].map((id) => ({ id, host: '', ports: [], gone: true }))];
  }

  /** What the holder of a slot that is not part of this round weighs there. */
  #loadOf(supervisor: string, port: number): number {
    const known = this.#options.view.holderOf(`${supervisor}:${port}`);
    const slot = known?.assignment?.slots.find((one) => one.supervisor === supervisor && one.port === port);
    if (known === undefined || slot === undefined) return 0;
    const loadOf = this.#executorLoads(known);
    return slot.executors.reduce((sum, [first]) => sum + loadOf(first), 0);
  }

  /** What the holder of a slot that is not part of this round asks for there. */
  #requestOf(supervisor: string, port: number): { readonly cpuPercent: number; readonly memoryMb: number } {
    const known = this.#options.view.holderOf(`${supervisor}:${port}`);
    const slot = known?.assignment?.slots.find((one) => one.supervisor === supervisor && one.port === port);
    const components = new Map(known?.loaded?.plan.components.map((component) => [component.id, component]));
    let [cpuPercent, memoryMb] = [0, 0];
    for (const [first] of slot?.executors ?? []) {
      const task = known?.loaded?.plan.tasks.find(({ last }) => first <= last);
      const resources = components.get(task?.component ?? '')?.resources;
      cpuPercent += resources?.cpuPercent ?? 0;
      memoryMb += (resources?.onHeapMb ?? 0) + (resources?.offHeapMb ?? 0);
    }
    return { cpuPercent, memoryMb };
  }

  #executorLoads({ id, loaded }: KnownTopology): (firstTask: number) => number {
    if (loaded === undefined) return () => 1;
    const known = this.#loadsOf.get(loaded);
    if (known !== undefined) return known;
    const loads = executorLoads(clusterTopologyOf({ id, ...loaded, ...this.#measured(id) }));
    this.#loadsOf.set(loaded, loads);
    return loads;
  }

  #measured(topologyId: string): Pick<RoundTopology, 'measured'> {
    if (!this.#measuresLoad) return {};
    this.#typicalLoad ??= this.#typical();
    return { measured: { byTask: this.#loads.of(topologyId), typical: this.#typicalLoad } };
  }

  get #measuresLoad(): boolean {
    const { settings } = this.#options;
    return settings['scheduling.strategy'] === 'balanced' && settings['load-balance.load'] === 'measured';
  }

  #typical(): number {
    const all = [...this.#options.view.topologies.values()];
    return typicalLoad(
      all.flatMap(({ id, loaded }) =>
        loaded === undefined ? [] : [{ ...loaded.plan, byTask: this.#loads.of(id) }],
      ),
    );
  }

  /** When each executor of a topology, named by its first task, was last heard from in its present slot. */
  #lastHeartbeats(known: KnownTopology, settings: Settings): (firstTask: number) => number | undefined {
    const nowMs = this.#options.nowMs();
    const slots = new Map<number, SlotAssignment>();
    const headedFor = known.assignment === undefined ? [] : destinationOf(known.assignment).slots;
    for (const slot of headedFor) for (const [first] of slot.executors) slots.set(first, slot);
    return (firstTask) => {
      const slot = slots.get(firstTask);
      if (slot === undefined) return undefined;
      const { supervisor, port, startedMs } = slot;
      const timeoutMs = settings['topology.worker-timeout'];
      const launchTimeoutMs = settings['topology.worker-launch-timeout'];
      const place = { topologyId: known.id, supervisor, port, firstTask };
      return this.#liveness.lastHeartbeatMs({ ...place, timeoutMs, launchTimeoutMs, startedMs }, nowMs);
    };
  }
}

/** What a decision about a topology starts from, by identity. */
function decidedFrom({ record, assignment, loaded }: KnownTopology): readonly unknown[] {
  return [record, assignment, loaded];
}

function sameParts(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.every((part, index) => part === b[index]);
}

/** Topologies that are placed: alive, and not killed, which keep what they have until they are removed. */
function isPlaced({ record: { phase } }: KnownTopology): boolean {
  return !isTerminal(phase) && phase.kind !== 'killed';
}

function assignmentOf({ assignment }: KnownTopology): readonly Assignment[] {
  return assignment === undefined ? [] : [assignment];
}

/** Without slots that have no executors: the scheduler knows none of these. */
function placedPart(assignment: Assignment): Assignment {
  const { slots } = assignment;
  // The very list, where it can be: what is known of it needs not be found out again.
  if (slots.every(({ executors }) => executors.length > 0)) return assignment;
  return { ...assignment, slots: slots.filter(({ executors }) => executors.length > 0) };
}

function slotsHeadedFor({ assignment }: KnownTopology): ReadonlySet<string> {
  const slots = assignment === undefined ? [] : placedPart(destinationOf(assignment)).slots;
  return new Set(slots.map(({ supervisor, port }) => `${supervisor}:${port}`));
}
