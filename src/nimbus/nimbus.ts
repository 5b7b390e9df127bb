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
  isCoordinatorAway,
  isTerminal,
  type TopologyPhase,
} from '../coordination/index.js';
import type { BlobStore } from './blob-store.js';
import { ClusterAnswers, type TopologyDetail } from './cluster-answers.js';
import { ClusterView, type Report } from './cluster-view.js';
import { coordinatorProblem } from './coordinator-check.js';
import { Decider } from './deciding/decider.js';
import { DeferredSaves } from './deferred-saves.js';
import { DueTimes } from './due-times.js';
import type { EventList, EventQuery } from './events/cluster-event.js';
import { EventDesk } from './events/event-desk.js';
import type { EventJournal } from './events/event-journal.js';
import type { KnownTopology } from './known-topology.js';
import { nextRecord } from './next-record.js';
import type { RebalanceRequest, RebalanceResult } from './rebalance.js';
import { decideRebalance } from './rebalance-decision.js';
import { areWorkersGone, removeTopology } from './removal.js';
import { TopologyMoves } from './moves/topology-moves.js';
import { Rounds } from './rounds.js';
import type { SchedulingPicture } from './scheduling-picture.js';
import { Serial } from './serial.js';
import type { SettingValue } from './setting-values.js';
import type { ClusterStatus, SupervisorStatus } from './status.js';
import type { LifeEvent } from './status-machine.js';
import { checkBundleSize, checkSubmission } from './submission.js';
import type { ClusterSummary } from './summary.js';
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
  /** Supervisors that are there, or have left reports, by id. */
  supervisors(): Promise<readonly SupervisorStatus[]>;
  /** One line for each topology. */
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
  readonly #answers: ClusterAnswers;
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
  readonly #saves: DeferredSaves;

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
    this.#saves = new DeferredSaves({
      ...{ coordination, blobStore, clock, logger, journal: options.journal, view: this.#view },
      wake: () => this.#loop.wake(),
      wakeIn: (delayMs) => this.#loop.wakeIn(delayMs),
    });
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
      onStateLost: (known) => this.#saves.add(known),
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
    this.#answers = new ClusterAnswers({
      ...{ nimbusId: options.id, view: this.#view, requests: this.#requests, events: this.#events },
      ...{ settings, clock },
      isGone: (supervisorId) => this.#rounds.isGone(supervisorId),
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
      this.#saves.reset();
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
      for (const known of view.topologies.values()) if (known.hasCounted) this.#saves.add(known);
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
    await this.#saves.close(this.#isLeader);
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
    return this.#answers.status(await coordinatorProblem(this.#coordination, this.#options.clock));
  }

  async supervisors(): Promise<readonly SupervisorStatus[]> {
    await this.#untilLeading();
    return this.#answers.supervisors();
  }

  async picture(): Promise<SchedulingPicture> {
    await this.#untilLeading();
    return this.#rounds.picture();
  }

  async list(): Promise<ClusterSummary> {
    await this.#untilLeading();
    return this.#answers.list(await coordinatorProblem(this.#coordination, this.#options.clock));
  }

  async describe(name: string): Promise<TopologyDetail> {
    await this.#untilLeading();
    return this.#answers.describe(name);
  }

  async events(query: EventQuery): Promise<EventList> {
    await this.#untilLeading();
    return this.#answers.events(query);
  }

  async config(name: string | null): Promise<readonly SettingValue[]> {
    await this.#untilLeading();
    return this.#answers.config(name);
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
    await this.#saves.acknowledge();
    this.#saves.begin();
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
    this.#saves.reset();
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
    this.#saves.noteHeartbeats(heartbeats);
    for (const id of reported) {
      this.#concerned.add(id);
      this.#lookAtCode(id);
    }
    for (const id of new Set([...reported, ...topologies])) {
      const known = this.#view.topologies.get(id);
      if (known?.isUnsaved === true) this.#saves.add(known);
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
        this.#saves.add(known);
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
    const { record, lookAgainMs } = nextRecord(known, {
      heartbeats: this.#view.heartbeats,
      isGone: (supervisorId) => this.#rounds.isGone(supervisorId),
      nowMs: this.#nowMs(),
      moment: this.#options.clock.moment(),
    });
    if (lookAgainMs !== undefined) this.#due.set(known.id, lookAgainMs);
    return record;
  }

  #noteUndrained(known: KnownTopology): void {
    const timeoutMs = known.loaded?.settings['drain.timeout'] ?? 0;
    known.notes.push(`Not everything that was pending completed within drain.timeout (${timeoutMs} ms).`);
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
    this.#saves.forget(known);
  }

  /** Its record went, and not by this Nimbus. */
  #forget(topologyId: string): void {
    this.#due.delete(topologyId);
    this.#rounds.forget(topologyId);
    this.#rounds.noteFreed();
  }
}

function holdsTopology({ topologyId }: { readonly topologyId: string | null }): boolean {
  return topologyId !== null;
}
