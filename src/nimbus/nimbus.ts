/**
 * The leader of a cluster: takes submissions, decides assignments and phases, and tells how everything is.
 *
 * Stateless over the coordinator: whatever it knows it has read, and every decision is one conditional write. It works
 * in steps, one at a time; a watch wakes it, and says only that something may have changed. A step decides about those
 * topologies only that something was heard of, or that something is due for. While the coordinator is away nothing is
 * concluded and nothing moves. Nothing is deleted because it is absent from some view.
 */
import type { Clock, Logger, Settings } from '../base/index.js';
import { hasCode, IsobarError, Shutdown } from '../base/index.js';
import {
  type Coordination,
  type DesiredState,
  type FoldedHeartbeat,
  isCoordinatorAway,
  isTerminal,
  type TopologyPhase,
} from '../coordination/index.js';
import type { BlobStore } from './blob-store.js';
import { ClusterView, type Report } from './cluster-view.js';
import { Decider } from './deciding/decider.js';
import { DueTimes } from './due-times.js';
import type { ClusterEvent, EventList, EventQuery } from './events/cluster-event.js';
import { EventDesk } from './events/event-desk.js';
import type { EventJournal } from './events/event-journal.js';
import type { KnownTopology } from './known-topology.js';
import { LastReportDesk } from './last-reports.js';
import { advancePhase } from './phases.js';
import type { RebalanceRequest, RebalanceResult } from './rebalance.js';
import { decideRebalance, notLoaded } from './rebalance-decision.js';
import { areWorkersGone, removeTopology } from './removal.js';
import { TopologyMoves } from './moves/topology-moves.js';
import { Rounds } from './rounds.js';
import type { SchedulingPicture } from './scheduling-picture.js';
import { Serial } from './serial.js';
import { type SettingValue, settingValues } from './setting-values.js';
import {
  type ClusterStatus,
  type SupervisorStatus,
  supervisorStatuses,
  topologyStatus,
  type TopologyStatus,
} from './status.js';
import { type LifeEvent, lifeTimer, transition } from './status-machine.js';
import { checkBundleSize, checkSubmission } from './submission.js';
import { type ClusterSummary, type TopologySummary, topologySummary } from './summary.js';
import {
  type LifeResult,
  type SubmitRequest,
  type SubmitResult,
  TopologyRequests,
} from './topology-requests.js';
import { type NimbusCounts, WorkCounts } from './work-counts.js';
import { WakeableLoop } from './wakeable-loop.js';

const RETRY_MS = 200;
/** How long a request waits for this Nimbus to lead: a restarted daemon needs a moment. */
const LEADER_WAIT_MS = 5000;
const LEADER_RETRY_MS = 500;
const SAVE_INTERVAL_MS = 1000;

export interface NimbusOptions {
  readonly id: string;
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  /** The history of the cluster, on this machine. */
  readonly journal: EventJournal;
  /** The cluster's settings; the first layer of every topology's. */
  readonly settings: Settings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Source of secrets. */
  randomBytes(count: number): Uint8Array;
  /** Called before steps that others must be able to go on from; for tests of crashes in between. */
  onStep?(name: string): void;
}

export interface TopologyDetail {
  readonly summary: TopologySummary;
  /** What a rebalance has made of it; null: it is as submitted. */
  readonly desired: DesiredState | null;
  readonly status: TopologyStatus;
  /** The last few things that happened to it, oldest first. */
  readonly events: readonly ClusterEvent[];
}

export interface Nimbus {
  readonly id: string;
  readonly isLeader: boolean;
  /** What it has decided since it started. */
  readonly counts: NimbusCounts;
  /**
   * Checks and stores a topology; it is placed at once.
   *
   * @throws DESCRIPTION_INVALID, SETTINGS_INVALID, PARALLELISM_ILLEGAL, TOO_MANY_WORKERS, TOO_MANY_EXECUTORS,
   *   CYCLE_NEEDS_ACKERS, BUNDLE_TOO_LARGE, TOPOLOGY_ALREADY_ALIVE, STATE_DIRECTORY_UNUSABLE,
   *   COORDINATOR_UNAVAILABLE, NOT_LEADER
   */
  submit(request: SubmitRequest): Promise<SubmitResult>;
  /** Its spouts read again. @throws TOPOLOGY_NOT_ALIVE, TRANSITION_ILLEGAL */
  activate(name: string): Promise<LifeResult>;
  /** Its spouts stop reading; what is pending completes, and its workers stay. @throws TOPOLOGY_NOT_ALIVE, TRANSITION_ILLEGAL */
  deactivate(name: string): Promise<LifeResult>;
  /**
   * Changes counts, and the placement with them.
   *
   * @throws TOPOLOGY_NOT_ALIVE, TRANSITION_ILLEGAL, PARALLELISM_ILLEGAL, COMPONENT_NOT_FOUND, RESOURCES_NOT_HEEDED, TOO_MANY_WORKERS,
   *   TOO_MANY_EXECUTORS, and why it could not be loaded
   */
  rebalance(name: string, request: RebalanceRequest): Promise<RebalanceResult>;
  /**
   * Stops its spouts, and removes it once `waitMs` are over (null: its message time-out) and its workers are gone. One that
   * has ended is removed at once.
   *
   * @throws TOPOLOGY_NOT_ALIVE
   */
  kill(name: string, waitMs: number | null): Promise<LifeResult>;
  /** Stops reading and lets pending trees complete. One that is ending already goes on to its end. @throws TOPOLOGY_NOT_ALIVE */
  drain(name: string): Promise<void>;
  /** Stops its workers at once; its record stays, to show how it ended. @throws TOPOLOGY_NOT_ALIVE */
  stop(name: string): Promise<void>;
  status(): Promise<ClusterStatus>;
  /** One line for each topology. */
  /** Supervisors that are there, or have left reports, by id. */
  supervisors(): Promise<readonly SupervisorStatus[]>;
  list(): Promise<ClusterSummary>;
  /** What a scheduling round would start from. */
  picture(): Promise<SchedulingPicture>;
  /** Everything about one topology, alive or ended. @throws TOPOLOGY_NOT_ALIVE */
  describe(name: string): Promise<TopologyDetail>;
  /** What has happened. @throws TOPOLOGY_NOT_ALIVE for a name that nothing is known of */
  events(query: EventQuery): Promise<EventList>;
  /** Every setting of a topology, or of the cluster. @throws TOPOLOGY_NOT_ALIVE, and why it could not be loaded */
  config(name: string | null): Promise<readonly SettingValue[]>;
  /** Stops deciding. The cluster goes on as it is. */
  close(): Promise<void>;
}

/** Starts a Nimbus, leading or in wait. */
export async function startNimbus(options: NimbusOptions): Promise<Nimbus> {
  const nimbus = new RunningNimbus(options);
  nimbus.start();
  return nimbus;
}

class RunningNimbus implements Nimbus {
  readonly id: string;
  readonly #options: NimbusOptions;
  readonly #coordination: Coordination;
  readonly #logger: Logger;
  readonly #shutdown = new Shutdown();
  readonly #loop: WakeableLoop;
  readonly #view: ClusterView;
  readonly #decider: Decider;
  readonly #rounds: Rounds;
  readonly #moves: TopologyMoves;
  readonly #requests: TopologyRequests;
  readonly #serial = new Serial();
  readonly #work = new WorkCounts();
  readonly #events: EventDesk;
  /** Nimbus's own time, ms: as far from the epoch as the wall clock was at the start, and never jumping since. */
  readonly #epochMs: number;
  #isLeader = false;
  #mustCheckLeader = true;
  #leaderWaiters: (() => void)[] = [];
  #isClosed = false;
  /** Topologies that the next step decides about. */
  readonly #concerned = new Set<string>();
  /** When something is due for a topology, by id, ms of `#nowMs()`. */
  readonly #due = new DueTimes();
  readonly #unsaved = new Set<KnownTopology>();
  readonly #lastReports: LastReportDesk;
  #mustAcknowledge = false;
  #saving: Promise<void> | undefined;
  #savingEvents: Promise<void> | undefined;
  #savedMs = -Infinity;

  constructor(options: NimbusOptions) {
    this.id = options.id;
    this.#options = options;
    this.#coordination = options.coordination;
    const { coordination, blobStore, settings, clock } = options;
    const logger = options.logger.child({ nimbus: options.id });
    this.#logger = logger;
    this.#epochMs = clock.wallMs() - clock.nowMs();
    this.#loop = new WakeableLoop({
      step: () => this.#step(),
      onFailure: (error) => this.#onFailure(error),
      clock,
      retryMs: RETRY_MS,
    });
    this.#view = new ClusterView({
      ...{ coordination, blobStore, settings, logger, wallMs: () => clock.wallMs() },
      onRecord: (record) => this.#events.noteRecord(record),
      onSupervisors: (records) => this.#events.noteSupervisors(records),
      onNotLoaded: (record, problem) => this.#events.noteNotLoaded(record, problem),
    });
    this.#events = new EventDesk({
      journal: options.journal,
      wallMs: () => clock.wallMs(),
      nameOf: (topologyId) => this.#view.topologies.get(topologyId)?.record.name ?? null,
    });
    this.#lastReports = new LastReportDesk(coordination);
    this.#decider = new Decider({ settings, clock });
    this.#rounds = new Rounds({
      work: this.#work,
      events: this.#events,
      wallMs: () => clock.wallMs(),
      coordination,
      view: this.#view,
      settings,
      decider: this.#decider,
      logger,
      nowMs: () => this.#nowMs(),
      wakeIn: (delayMs) => this.#loop.wakeIn(delayMs),
      advance: (known, outcome) => this.#moves.advance(known, outcome),
    });
    this.#moves = new TopologyMoves({
      coordination,
      blobStore,
      view: this.#view,
      logger,
      nowMs: () => this.#nowMs(),
      wallMs: () => clock.wallMs(),
      wakeIn: (delayMs) => this.#loop.wakeIn(delayMs),
      write: (known, assignment) => this.#rounds.write(known, assignment),
      gone: () => this.#rounds.gone,
      askForRound: (topologyId) => this.#rounds.askFor(topologyId),
      onStateLost: (known) => this.#unsaved.add(known),
      onMove: (known, event) => this.#events.noteMove(known, event),
      onStep: (name) => options.onStep?.(name),
    });
    this.#requests = new TopologyRequests({
      coordination,
      blobStore,
      view: this.#view,
      settings: options.settings,
      clock,
      logger,
      serial: this.#serial,
      randomBytes: (count) => options.randomBytes(count),
      refresh: () => this.#loop.nextStep(),
    });
  }

  get counts(): NimbusCounts {
    return this.#work.counts;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  start(): void {
    const { coordination, clock, settings } = this.#options;
    const view = this.#view;
    const wakeAfter =
      <A extends readonly unknown[]>(mark: (...values: A) => void) =>
      (...values: A): void => {
        mark(...values);
        this.#loop.wake();
      };
    const reread = wakeAfter(() => {
      this.#mustCheckLeader = true;
      this.#lastReports.reset();
      view.markAll();
      this.#moves.markStale();
    });
    const watches = {
      'leader watch': coordination.watchLeader(wakeAfter(() => (this.#mustCheckLeader = true))),
      reconnects: coordination.onReconnect(reread),
      'topology watch': coordination.watchTopologies(wakeAfter((ids) => view.markTopologies(ids))),
      'assignment watch': coordination.watchAssignments(wakeAfter((ids) => view.markTopologies(ids))),
      'supervisor watch': coordination.watchSupervisors(wakeAfter(() => view.markSupervisors())),
      'handover watch': coordination.watchHandovers(wakeAfter((ids) => this.#moves.markStale(ids))),
      'heartbeat watch': coordination.watchHeartbeats(wakeAfter((ids) => view.markHeartbeats(ids))),
    };
    for (const [name, stop] of Object.entries(watches)) this.#shutdown.add(name, stop);
    const round = wakeAfter(() => {
      this.#rounds.askForAll();
      view.markPeriodically();
      this.#moves.markStale();
      for (const known of view.topologies.values()) if (known.hasCounted) this.#unsaved.add(known);
    });
    this.#shutdown.add('rounds', clock.every(settings['nimbus.round-interval'], round));
    this.#loop.wake();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const resolve of this.#leaderWaiters.splice(0)) resolve();
    await this.#shutdown.close();
    this.#decider.close();
    await this.#loop.close();
    await this.#saving;
    if (this.#isLeader) await this.#options.journal.save();
  }

  // ── requests ──

  async submit(request: SubmitRequest): Promise<SubmitResult> {
    await this.#untilLeading();
    checkBundleSize(request.code, this.#options.settings['submit.max-bundle-bytes']);
    const checked = checkSubmission(request.description, request.settings, this.#options.settings);
    const result = await this.#requests.store(request, checked);
    await this.#followUp(result.topologyId);
    return result;
  }

  activate(name: string): Promise<LifeResult> {
    return this.#send(name, () => ({ kind: 'activate' }));
  }

  deactivate(name: string): Promise<LifeResult> {
    return this.#send(name, () => ({ kind: 'inactivate' }));
  }

  kill(name: string, waitMs: number | null): Promise<LifeResult> {
    return this.#send(name, ({ loaded }) => {
      const settings = loaded?.settings ?? this.#options.settings;
      return { kind: 'kill', waitMs: waitMs ?? settings['topology.message-timeout'] };
    });
  }

  async rebalance(name: string, request: RebalanceRequest): Promise<RebalanceResult> {
    await this.#untilLeading();
    const result = await this.#requests.change(name, (known) =>
      decideRebalance(name, known, request, {
        settings: this.#options.settings,
        now: this.#options.clock.moment(),
        preview: (as) => this.#rounds.preview(known, as),
      }),
    );
    if (!request.preview) await this.#followUp(result.topologyId);
    return result;
  }

  async drain(name: string): Promise<void> {
    await this.#setPhase(name, (phase) =>
      phase.kind === 'active' || phase.kind === 'inactive'
        ? { kind: 'draining', sinceMs: this.#nowMs() }
        : phase,
    );
  }

  async stop(name: string): Promise<void> {
    await this.#setPhase(name, () => ({ kind: 'stopped' }));
  }

  async status(): Promise<ClusterStatus> {
    await this.#untilLeading();
    const wallMs = this.#options.clock.wallMs();
    const { heartbeats, supervisors, topologies } = this.#view;
    const current = this.#currentHeartbeats();
    return {
      atMs: wallMs,
      nimbusId: this.id,
      supervisors: supervisorStatuses(supervisors, heartbeats),
      topologies: [...topologies.values()]
        .sort((a, b) => a.record.submittedMs - b.record.submittedMs || (a.id < b.id ? -1 : 1))
        .map((known) => topologyStatus(known.facts(), current, wallMs)),
    };
  }

  async supervisors(): Promise<readonly SupervisorStatus[]> {
    await this.#untilLeading();
    return supervisorStatuses(this.#view.supervisors, this.#view.heartbeats);
  }

  async picture(): Promise<SchedulingPicture> {
    await this.#untilLeading();
    return this.#rounds.picture();
  }

  async list(): Promise<ClusterSummary> {
    await this.#untilLeading();
    const now = this.#options.clock.moment();
    const { heartbeats, supervisors, topologies } = this.#view;
    const slots = supervisorStatuses(supervisors, heartbeats).flatMap((one) =>
      one.isPresent ? one.slots : [],
    );
    return {
      atMs: now.wallMs,
      nimbusId: this.id,
      supervisors: supervisors.length,
      slots: { total: slots.length, used: slots.filter(({ topologyId }) => topologyId !== null).length },
      topologies: [...topologies.values()]
        .filter(({ record }) => record.phase.kind !== 'removed')
        .map((known) => topologySummary(known, this.#currentReportsOf(known.id), now))
        .sort((a, b) => compareText(a.name, b.name) || a.submittedMs - b.submittedMs),
    };
  }

  async describe(name: string): Promise<TopologyDetail> {
    await this.#untilLeading();
    const known = this.#requests.named(name);
    const now = this.#options.clock.moment();
    return {
      summary: topologySummary(known, this.#currentReportsOf(known.id), now),
      desired: known.record.desired ?? null,
      status: topologyStatus(known.facts(), this.#currentHeartbeats(), now.wallMs),
      events: this.#events.lastOf(known.id),
    };
  }

  async events(query: EventQuery): Promise<EventList> {
    await this.#untilLeading();
    const list = this.#events.list(query);
    // Whatever is known of those that have been removed is told; of a name that nobody had, nothing is.
    if (query.name !== null && !this.#events.knows(query.name)) this.#requests.named(query.name);
    return list;
  }

  async config(name: string | null): Promise<readonly SettingValue[]> {
    await this.#untilLeading();
    const cluster = this.#options.settings;
    if (name === null) return settingValues(cluster);
    const { loaded, record, loadProblem, id } = this.#requests.named(name);
    if (loaded === undefined) throw IsobarError.from(loadProblem ?? notLoaded(id));
    const { settings, description } = loaded;
    const workers = record.desired?.workers;
    return settingValues(cluster, {
      settings,
      file: description.settings,
      submitted: record.settings,
      workers,
    });
  }

  async #send(name: string, eventFor: (known: KnownTopology) => LifeEvent): Promise<LifeResult> {
    await this.#untilLeading();
    const result = await this.#requests.send(name, eventFor);
    await this.#followUp(result.topologyId);
    return result;
  }

  async #setPhase(name: string, change: (phase: TopologyPhase) => TopologyPhase): Promise<void> {
    await this.#untilLeading();
    const { id } = this.#requests.named(name);
    await this.#requests.setPhase(name, change);
    await this.#followUp(id);
  }

  /** Whoever asks for the status after a request must see what became of it. */
  async #followUp(topologyId: string): Promise<void> {
    this.#concerned.add(topologyId);
    this.#rounds.askFor(topologyId);
    await this.#loop.nextStep();
  }

  /** @throws NOT_LEADER */
  async #untilLeading(): Promise<void> {
    if (this.#isLeader) return;
    await new Promise<void>((resolve) => {
      this.#leaderWaiters.push(resolve);
      this.#options.clock.after(LEADER_WAIT_MS, resolve);
    });
    if (!this.#isLeaderNow()) {
      throw new IsobarError('NOT_LEADER', `Nimbus ${this.id} does not lead`, { where: this.id });
    }
  }

  /** Leadership may have come during a wait, which the compiler does not know. */
  #isLeaderNow(): boolean {
    return this.#isLeader && !this.#isClosed;
  }

  // ── steps ──

  #nowMs(): number {
    return this.#epochMs + this.#options.clock.nowMs();
  }

  #onFailure(error: unknown): void {
    if (this.#isClosed) return;
    this.#view.markAll();
    this.#moves.markStale();
    this.#mustCheckLeader = true;
    // Why the coordinator is away has been logged by its client.
    const isExpected = isCoordinatorAway(error) || hasCode(error, 'VERSION_CONFLICT');
    const fields = { message: String(error), stack: error instanceof Error ? error.stack : undefined };
    if (isExpected) this.#logger.debug('step.failed', fields);
    else this.#logger.error('step.failed', fields);
  }

  async #step(): Promise<void> {
    if (this.#mustCheckLeader) await this.#checkLeader();
    if (!this.#isLeader) {
      this.#loop.wakeIn(LEADER_RETRY_MS);
      return;
    }
    await this.#read();
    await this.#rounds.lookForWorkers(this.#supervisorsConcerned());
    for (const id of this.#due.takeDue(this.#nowMs())) this.#concerned.add(id);
    for (const id of [...this.#concerned]) {
      const known = this.#view.topologies.get(id);
      if (known !== undefined) await this.#decide(known);
      else this.#forget(id);
      this.#concerned.delete(id);
    }
    await this.#rounds.run();
    for (const known of this.#view.inPhase('removed')) await this.#removeWhenGone(known);
    await this.#acknowledge();
    this.#save();
    this.#saveEvents();
    const { nextMs } = this.#due;
    if (nextMs !== undefined) this.#loop.wakeIn(Math.max(1, nextMs - this.#nowMs()));
    for (const resolve of this.#leaderWaiters.splice(0)) resolve();
  }

  async #checkLeader(): Promise<void> {
    const leads = await this.#coordination.tryLead(this.id);
    this.#mustCheckLeader = !leads;
    if (leads === this.#isLeader) return;
    this.#logger.info(leads ? 'leadership.taken' : 'leadership.lost');
    // Whoever led meanwhile has decided on what it saw: begin from nothing.
    this.#view.clear();
    this.#rounds.reset();
    this.#moves.reset();
    this.#due.clear();
    this.#concerned.clear();
    this.#lastReports.reset();
    if (leads) {
      this.#options.journal.reload();
      this.#events.noteLead(this.id);
      await this.#read();
    }
    this.#isLeader = leads;
  }

  async #read(): Promise<void> {
    const { topologies, places, heartbeats, reported } = await this.#view.read();
    for (const id of await this.#moves.read()) this.#concerned.add(id);
    for (const id of topologies) {
      this.#concerned.add(id);
      this.#rounds.askFor(id);
    }
    if (places) this.#rounds.askForAll();
    this.#rounds.noteHeartbeats(heartbeats);
    this.#events.noteHeartbeats(heartbeats);
    this.#mustAcknowledge ||= heartbeats.some(
      ({ lastReports, events = [] }) => lastReports.length > 0 || events.length > 0,
    );
    for (const id of reported) {
      this.#concerned.add(id);
      this.#lookAtCode(id);
    }
    for (const id of new Set([...reported, ...topologies])) {
      const known = this.#view.topologies.get(id);
      if (known?.isUnsaved === true) this.#unsaved.add(known);
    }
  }

  /** A supervisor that cannot start a worker for want of its code says so: Nimbus then looks itself. */
  #lookAtCode(topologyId: string): void {
    const isMissed = ({ slot }: Report): boolean =>
      slot.topologyId === topologyId &&
      slot.workerId === null &&
      slot.lastProblem?.code === 'TOPOLOGY_CODE_LOST';
    if (!this.#view.reportsOf(topologyId).some(isMissed)) return;
    if (this.#view.topologies.get(topologyId)?.doubtCode() !== true) return;
    this.#view.markTopologies([topologyId]);
    this.#loop.wake();
  }

  /** Supervisors of which it must be known whether their machine is there. */
  #supervisorsConcerned(): ReadonlySet<string> {
    const present = new Set(this.#view.supervisors.map(({ id }) => id));
    // Those that are away and have reported of workers: they may be there still.
    const reporting = this.#view.heartbeats
      .filter(({ supervisorId, slots }) => !present.has(supervisorId) && slots.some(holdsTopology))
      .map(({ supervisorId }) => supervisorId);
    return new Set([...this.#view.assignedSupervisors, ...reporting]);
  }

  /** Without the last words of machines that are gone: what they say of workers does not hold any more. */
  #currentHeartbeats(): readonly FoldedHeartbeat[] {
    return this.#view.heartbeats.filter(({ supervisorId }) => !this.#rounds.isGone(supervisorId));
  }

  #currentReportsOf(topologyId: string): readonly Report[] {
    return this.#view.reportsOf(topologyId).filter(({ supervisorId }) => !this.#rounds.isGone(supervisorId));
  }

  /** Takes a topology as far as it goes now. */
  async #decide(known: KnownTopology): Promise<void> {
    this.#due.delete(known.id);
    for (;;) {
      const before = known.record.phase;
      const next = this.#nextRecord(known);
      if (next === undefined) break;
      if (!(await this.#requests.write(known, next))) {
        // Another one was written: it is read, and decided about, in the next step.
        this.#loop.wake();
        return;
      }
      this.#rounds.askFor(known.id);
      if (before.kind === 'draining' && next.phase.kind === 'stopped') this.#noteUndrained(known);
      if (isTerminal(next.phase)) {
        known.keepTotals();
        this.#unsaved.add(known);
      }
    }
    const { assignment, record } = known;
    if (isTerminal(record.phase) && assignment !== undefined && assignment.slots.length > 0) {
      // A topology that has ended keeps its record and no worker.
      const { topologyId, tasks, version } = assignment;
      await this.#rounds.write(known, { topologyId, version: version + 1, tasks, slots: [] });
    }
    await this.#moves.advance(known);
  }

  /** The record that follows now; undefined: it stays, and `#due` says when to look again. */
  #nextRecord(known: KnownTopology): KnownTopology['record'] | undefined {
    const { record, loaded } = known;
    const now = this.#options.clock.moment();
    const since = (phase: TopologyPhase): KnownTopology['record'] => ({
      ...record,
      phase,
      phaseSinceMs: Math.floor(now.wallMs),
    });
    const timer = lifeTimer(record.phase, now);
    if (timer !== undefined && timer.afterMs <= 0) {
      const moved = transition(record.phase, { kind: timer.event }, now);
      if (moved.kind !== 'moved') return undefined;
      const { desired } = moved;
      return {
        ...since(moved.phase),
        // It comes into force now.
        ...(desired === undefined ? {} : { desired: { ...desired, changedMs: Math.floor(now.wallMs) } }),
      };
    }
    if (timer !== undefined) this.#due.set(known.id, this.#nowMs() + timer.afterMs);
    if (isTerminal(record.phase)) return undefined;
    if (known.isCodeLost && this.#hasNoWorker(known)) {
      return since({ kind: 'failed', error: known.loadProblem! });
    }
    if (loaded === undefined) return undefined;
    const nowMs = this.#nowMs();
    const drainTimeoutMs = loaded.settings['drain.timeout'];
    const phase = advancePhase({
      topologyId: record.id,
      phase: record.phase,
      description: loaded.description,
      plan: loaded.plan,
      assignment: known.assignment,
      heartbeats: this.#currentHeartbeats(),
      isAtRest: known.isAtRest,
      nowMs,
      drainTimeoutMs,
    });
    if (phase !== record.phase) return since(phase);
    if (phase.kind === 'draining') this.#due.set(known.id, phase.sinceMs + drainTimeoutMs);
    return undefined;
  }

  #noteUndrained(known: KnownTopology): void {
    const timeoutMs = known.loaded?.settings['drain.timeout'] ?? 0;
    known.notes.push(`Not everything that was pending completed within drain.timeout (${timeoutMs} ms).`);
  }

  /** Do the supervisors of all its slots say that no worker of it is there? */
  #hasNoWorker({ id, assignment }: KnownTopology): boolean {
    const reporting = new Map(this.#view.heartbeats.map((one) => [one.supervisorId, one.slots]));
    return (assignment?.slots ?? []).every(({ supervisor, port }) => {
      const slots = reporting.get(supervisor);
      const slot = slots?.find((one) => one.port === port);
      return slots !== undefined && (slot?.topologyId !== id || slot.workerId === null);
    });
  }

  async #removeWhenGone(known: KnownTopology): Promise<void> {
    if (!areWorkersGone(known, this.#view, (supervisorId) => this.#rounds.isGone(supervisorId))) return;
    const { coordination, blobStore } = this.#options;
    await removeTopology(known, {
      coordination,
      blobStore,
      view: this.#view,
      logger: this.#logger,
      serial: this.#serial,
    });
    this.#due.delete(known.id);
    this.#rounds.noteRemoved(known.id);
    this.#unsaved.delete(known);
  }

  /** Its record went, and not by this Nimbus. */
  #forget(topologyId: string): void {
    this.#due.delete(topologyId);
    this.#rounds.forget(topologyId);
    this.#rounds.noteFreed();
  }

  async #acknowledge(): Promise<void> {
    if (!this.#mustAcknowledge) return;
    this.#mustAcknowledge = false;
    const { heartbeats, topologies } = this.#view;
    const keeperOf = (topologyId: string): KnownTopology | undefined => topologies.get(topologyId);
    await this.#lastReports.acknowledge(heartbeats, keeperOf, this.#options.journal);
  }

  /** What was told by supervisors is acknowledged once it is on disk. */
  #saveEvents(): void {
    const { journal } = this.#options;
    if (this.#savingEvents !== undefined || !journal.isUnsaved) return;
    this.#savingEvents = journal.save().finally(() => {
      this.#savingEvents = undefined;
      this.#mustAcknowledge = true;
      if (journal.isUnsaved) this.#loop.wakeIn(SAVE_INTERVAL_MS);
      else this.#loop.wake();
    });
  }

  /** Writes totals that would be lost with this process, at most once a second; never in the way of a decision. */
  #save(): void {
    if (this.#saving !== undefined || this.#unsaved.size === 0) return;
    const waitMs = this.#savedMs + SAVE_INTERVAL_MS - this.#options.clock.nowMs();
    if (waitMs > 0) {
      this.#loop.wakeIn(waitMs);
      return;
    }
    this.#saving = this.#saveAll().finally(() => (this.#saving = undefined));
  }

  async #saveAll(): Promise<void> {
    this.#savedMs = this.#options.clock.nowMs();
    for (const known of [...this.#unsaved]) {
      this.#unsaved.delete(known);
      if (known.record.phase.kind === 'removed') continue;
      try {
        await known.saveTotals(this.#options.blobStore);
        this.#mustAcknowledge = true;
        this.#loop.wake();
      } catch (error) {
        this.#unsaved.add(known);
        this.#logger.warn('totals.not-saved', { topology: known.id, message: String(error) });
      }
    }
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function holdsTopology({ topologyId }: { readonly topologyId: string | null }): boolean {
  return topologyId !== null;
}
