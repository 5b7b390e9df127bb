/**
 * The leader of a cluster: takes submissions, decides assignments and phases, and tells how everything is.
 *
 * Stateless over the coordinator: whatever it knows it has read, and every decision is one conditional write. It works
 * in steps, one at a time; a watch wakes it, and says only that something may have changed. While the coordinator is
 * away nothing is concluded and nothing moves. Nothing is deleted because it is absent from some view.
 */
import type { Clock, ErrorRecord, Logger, Settings } from '../base/index.js';
import { hasCode, IsobarError, Shutdown } from '../base/index.js';
import {
  type Coordination,
  type FoldedHeartbeat,
  isTerminal,
  type SupervisorRecord,
  type TopologyPhase,
  type WorkerHeartbeat,
} from '../coordination/index.js';
import { type RoundSupervisor, schedulingRound, type SlotAssignment } from '../scheduling/index.js';
import type { BlobStore } from './blob-store.js';
import { KnownTopology } from './known-topology.js';
import { Liveness } from './liveness.js';
import { advancePhase } from './phases.js';
import { type ClusterStatus, supervisorStatuses, topologyStatus } from './status.js';
import { checkSubmission } from './submission.js';
import { type SubmitRequest, type SubmitResult, TopologyRequests } from './topology-requests.js';
import { WakeableLoop } from './wakeable-loop.js';

const RETRY_MS = 200;
/** How long a request waits for this Nimbus to lead: a restarted daemon needs a moment. */
const LEADER_WAIT_MS = 5000;
const LEADER_RETRY_MS = 500;
/** Period at which workers without supervisor are looked for while a supervisor is away. */
const AWAY_CHECK_MS = 500;
const SAVE_INTERVAL_MS = 1000;

export interface NimbusOptions {
  readonly id: string;
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  /** The cluster's settings; the first layer of every topology's. */
  readonly settings: Settings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Source of secrets. */
  randomBytes(count: number): Uint8Array;
}

export interface Nimbus {
  readonly id: string;
  readonly isLeader: boolean;
  /**
   * Checks and stores a topology; it is placed at once.
   *
   * @throws DESCRIPTION_INVALID, SETTINGS_INVALID, PARALLELISM_ILLEGAL, TOO_MANY_WORKERS, TOO_MANY_EXECUTORS,
   *   CYCLE_NEEDS_ACKERS, TOPOLOGY_ALREADY_ALIVE, STATE_DIRECTORY_UNUSABLE, COORDINATOR_UNAVAILABLE, NOT_LEADER
   */
  submit(request: SubmitRequest): Promise<SubmitResult>;
  /** Stops reading and lets pending trees complete. One that is ending already goes on to its end. @throws TOPOLOGY_NOT_ALIVE */
  drain(name: string): Promise<void>;
  /** Stops at once. @throws TOPOLOGY_NOT_ALIVE */
  kill(name: string): Promise<void>;
  status(): Promise<ClusterStatus>;
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
  readonly #requests: TopologyRequests;
  /** Nimbus's own time, ms: as far from the epoch as the wall clock was at the start, and never jumping since. */
  readonly #epochMs: number;
  #liveness: Liveness;
  #isLeader = false;
  #mustCheckLeader = true;
  #leaderWaiters: (() => void)[] = [];
  #isClosed = false;
  /** What may have changed since it was last read. */
  #stale = { topologies: true, supervisors: true, heartbeats: true };
  #mustSchedule = true;
  #isRoundDue = true;
  readonly #topologies = new Map<string, KnownTopology>();
  #supervisors: readonly SupervisorRecord[] = [];
  #announcedWorkers: readonly WorkerHeartbeat[] = [];
  #heartbeats: readonly FoldedHeartbeat[] = [];
  #gone: ReadonlySet<string> = new Set();
  #submitting: Promise<unknown> = Promise.resolve();
  #saving: Promise<void> | undefined;
  #savedMs = -Infinity;

  constructor(options: NimbusOptions) {
    this.id = options.id;
    this.#options = options;
    this.#coordination = options.coordination;
    this.#logger = options.logger.child({ nimbus: options.id });
    this.#epochMs = options.clock.wallMs() - options.clock.nowMs();
    this.#liveness = new Liveness(this.#nowMs());
    this.#requests = new TopologyRequests({
      coordination: options.coordination,
      blobStore: options.blobStore,
      logger: this.#logger,
      wallMs: () => options.clock.wallMs(),
      randomBytes: (count) => options.randomBytes(count),
    });
    this.#loop = new WakeableLoop({
      step: () => this.#step(),
      onFailure: (error) => this.#onFailure(error),
      clock: options.clock,
      retryMs: RETRY_MS,
    });
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  start(): void {
    const { coordination, clock, settings } = this.#options;
    const onChange = (mark: () => void) => (): void => {
      mark();
      this.#loop.wake();
    };
    const checkLeader = onChange(() => (this.#mustCheckLeader = true));
    const reread = onChange(() => {
      this.#mustCheckLeader = true;
      this.#markAllStale();
    });
    this.#shutdown.add('leader watch', coordination.watchLeader(checkLeader));
    this.#shutdown.add('reconnects', coordination.onReconnect(reread));
    const watches = [
      coordination.watchTopologies(onChange(() => (this.#stale.topologies = true))),
      coordination.watchAssignments(onChange(() => (this.#stale.topologies = true))),
      coordination.watchSupervisors(onChange(() => (this.#stale.supervisors = true))),
      coordination.watchHeartbeats(onChange(() => (this.#stale.heartbeats = true))),
    ];
    for (const stop of watches) this.#shutdown.add('watch', stop);
    // Whatever a watch may have missed is read again in every period.
    const round = onChange(() => {
      this.#isRoundDue = true;
      this.#markAllStale();
    });
    this.#shutdown.add('rounds', clock.every(settings['nimbus.round-interval'], round));
    this.#loop.wake();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const resolve of this.#leaderWaiters.splice(0)) resolve();
    await this.#shutdown.close();
    await this.#loop.close();
    await this.#saving;
  }

  // ── requests ──

  submit(request: SubmitRequest): Promise<SubmitResult> {
    // One after the other: whether a name is alive must not change between the check and the record.
    const result = this.#submitting.then(() => this.#submit(request));
    this.#submitting = result.catch(() => undefined);
    return result;
  }

  async drain(name: string): Promise<void> {
    await this.#setPhase(name, (phase) =>
      phase.kind === 'active' ? { kind: 'draining', sinceMs: this.#nowMs() } : phase,
    );
  }

  async kill(name: string): Promise<void> {
    await this.#setPhase(name, () => ({ kind: 'stopped' }));
  }

  async status(): Promise<ClusterStatus> {
    await this.#untilLeading();
    const wallMs = this.#options.clock.wallMs();
    return {
      atMs: wallMs,
      nimbusId: this.id,
      supervisors: supervisorStatuses(this.#supervisors, this.#heartbeats),
      topologies: [...this.#topologies.values()]
        .sort((a, b) => a.record.submittedMs - b.record.submittedMs || (a.id < b.id ? -1 : 1))
        .map((known) => topologyStatus(known.facts(), this.#heartbeats, wallMs)),
    };
  }

  async #submit(request: SubmitRequest): Promise<SubmitResult> {
    await this.#untilLeading();
    const checked = checkSubmission(request.description, request.settings, this.#options.settings);
    const result = await this.#requests.store(request, checked);
    await this.#followUp();
    return result;
  }

  async #setPhase(name: string, change: (phase: TopologyPhase) => TopologyPhase): Promise<void> {
    await this.#untilLeading();
    await this.#requests.setPhase(name, change);
    await this.#followUp();
  }

  /** Whoever asks for the status after a request must see what became of it. */
  async #followUp(): Promise<void> {
    this.#stale.topologies = true;
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

  #markAllStale(): void {
    this.#stale = { topologies: true, supervisors: true, heartbeats: true };
  }

  #onFailure(error: unknown): void {
    if (this.#isClosed) return;
    this.#markAllStale();
    this.#mustCheckLeader = true;
    const isExpected =
      hasCode(error, 'COORDINATOR_UNAVAILABLE') ||
      hasCode(error, 'SESSION_EXPIRED') ||
      hasCode(error, 'VERSION_CONFLICT');
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
    await this.#lookForWorkers();
    await this.#advancePhases();
    await this.#emptyEnded();
    if (this.#mustSchedule || this.#isRoundDue) await this.#schedule();
    this.#save();
    for (const resolve of this.#leaderWaiters.splice(0)) resolve();
  }

  async #checkLeader(): Promise<void> {
    const leads = await this.#coordination.tryLead(this.id);
    this.#mustCheckLeader = !leads;
    if (leads === this.#isLeader) return;
    this.#logger.info(leads ? 'leadership.taken' : 'leadership.lost');
    // Whoever led meanwhile has decided on what it saw: begin from nothing.
    this.#topologies.clear();
    this.#liveness = new Liveness(this.#nowMs());
    this.#markAllStale();
    this.#mustSchedule = true;
    if (leads) await this.#read();
    this.#isLeader = leads;
  }

  async #read(): Promise<void> {
    if (this.#stale.topologies) {
      this.#stale.topologies = false;
      await this.#readTopologies();
      this.#mustSchedule = true;
      // Reports that came before their topology was known count for it now.
      this.#stale.heartbeats = true;
    }
    if (this.#stale.supervisors) {
      this.#stale.supervisors = false;
      const before = placesText(this.#supervisors);
      this.#supervisors = await this.#coordination.listSupervisors();
      if (placesText(this.#supervisors) !== before) this.#mustSchedule = true;
    }
    if (this.#stale.heartbeats) {
      this.#stale.heartbeats = false;
      this.#heartbeats = await this.#coordination.listHeartbeats();
      this.#liveness.noteHeartbeats(this.#heartbeats, this.#nowMs());
      for (const known of this.#topologies.values()) known.noteHeartbeats(this.#heartbeats);
    }
  }

  async #readTopologies(): Promise<void> {
    const { blobStore, settings } = this.#options;
    const records = await this.#coordination.listTopologies();
    const assignments = new Map(
      (await this.#coordination.listAssignments()).map((one) => [one.topologyId, one]),
    );
    const listed = new Set(records.map(({ value }) => value.id));
    // This forgets; it deletes nothing.
    for (const id of this.#topologies.keys()) if (!listed.has(id)) this.#topologies.delete(id);
    for (const versioned of records) {
      const known = this.#topologies.get(versioned.value.id) ?? new KnownTopology(versioned);
      this.#topologies.set(known.id, known);
      known.record = versioned.value;
      known.version = versioned.version;
      known.assignment = assignments.get(known.id);
      const before = known.loadProblem?.message;
      await known.load(blobStore, settings);
      if (known.loadProblem !== undefined && known.loadProblem.message !== before) {
        this.#logger.error('topology.not-loaded', { topology: known.id, ...shortProblem(known.loadProblem) });
      }
    }
    this.#liveness.retain([...assignments.values()]);
  }

  /** While a supervisor that is assigned something is away: do its workers announce themselves? */
  async #lookForWorkers(): Promise<void> {
    const assigned = new Set(
      [...this.#topologies.values()].flatMap(
        ({ assignment }) => assignment?.slots.map(({ supervisor }) => supervisor) ?? [],
      ),
    );
    const present = new Set(this.#supervisors.map(({ id }) => id));
    const isAnyAway = [...assigned].some((id) => !present.has(id));
    this.#announcedWorkers = isAnyAway ? await this.#coordination.listWorkerLiveness() : [];
    const nowMs = this.#nowMs();
    this.#liveness.noteWorkers(this.#announcedWorkers, nowMs);
    const { gone, nextCheckMs } = this.#liveness.goneSupervisors(
      assigned,
      this.#supervisors,
      this.#announcedWorkers,
      this.#options.settings['supervisor.gone-grace'],
      nowMs,
    );
    for (const id of gone) if (!this.#gone.has(id)) this.#logger.warn('supervisor.gone', { supervisor: id });
    if ([...gone].some((id) => !this.#gone.has(id))) this.#mustSchedule = true;
    this.#gone = gone;
    if (nextCheckMs !== null) this.#loop.wakeIn(Math.max(1, nextCheckMs - nowMs));
    else if (isAnyAway) this.#loop.wakeIn(AWAY_CHECK_MS);
  }

  async #advancePhases(): Promise<void> {
    for (const known of this.#topologies.values()) {
      while (known.loaded !== undefined && !isTerminal(known.record.phase)) {
        const { loaded, record, assignment, isAtRest } = known;
        const nowMs = this.#nowMs();
        const drainTimeoutMs = loaded.settings['drain.timeout'];
        const phase = advancePhase({
          topologyId: record.id,
          phase: record.phase,
          description: loaded.description,
          plan: loaded.plan,
          assignment,
          heartbeats: this.#heartbeats,
          isAtRest,
          nowMs,
          drainTimeoutMs,
        });
        if (phase === record.phase) {
          if (phase.kind === 'draining')
            this.#loop.wakeIn(Math.max(1, phase.sinceMs + drainTimeoutMs - nowMs));
          break;
        }
        if (record.phase.kind === 'draining' && phase.kind === 'stopped') {
          known.notes.push(
            `Not everything that was pending completed within drain.timeout (${drainTimeoutMs} ms).`,
          );
        }
        if (!(await this.#writePhase(known, phase))) break;
      }
    }
  }

  /** Resolves to false if the record has changed meanwhile: it is read again, and decided on, in the next step. */
  async #writePhase(known: KnownTopology, phase: TopologyPhase): Promise<boolean> {
    const record = { ...known.record, phase };
    try {
      await this.#coordination.updateTopology(record, known.version);
    } catch (error) {
      if (!hasCode(error, 'VERSION_CONFLICT') && !hasCode(error, 'NODE_MISSING')) throw error;
      this.#stale.topologies = true;
      this.#loop.wake();
      return false;
    }
    this.#logger.info('topology.phase', {
      topology: known.id,
      phase: phase.kind,
      ...(phase.kind === 'ending' ? { stage: phase.stage } : {}),
      ...(phase.kind === 'failed' ? shortProblem(phase.error) : {}),
    });
    known.record = record;
    known.version++;
    if (isTerminal(phase)) known.keepTotals();
    return true;
  }

  /** A topology that has ended keeps its record and no worker. */
  async #emptyEnded(): Promise<void> {
    for (const known of this.#topologies.values()) {
      const { assignment, record } = known;
      if (!isTerminal(record.phase) || assignment === undefined || assignment.slots.length === 0) continue;
      const empty = { ...assignment, version: assignment.version + 1, slots: [] };
      try {
        await this.#coordination.writeAssignment(empty);
        known.assignment = empty;
        // Its slots are free for others.
        this.#mustSchedule = true;
      } catch (error) {
        if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
        this.#stale.topologies = true;
        this.#loop.wake();
      }
    }
  }

  async #schedule(): Promise<void> {
    this.#mustSchedule = false;
    this.#isRoundDue = false;
    const running = [...this.#topologies.values()].filter(({ record }) => !isTerminal(record.phase));
    const nowMs = this.#nowMs();
    const topologies = running.flatMap((known) => {
      const { loaded, assignment: stored, id } = known;
      if (loaded === undefined) return [];
      const { plan, settings } = loaded;
      const lastHeartbeatMs = this.#lastHeartbeats(known, settings, nowMs);
      const { rebalance } = known;
      return [{ id, plan, settings, stored, lastHeartbeatMs, ...(rebalance && { rebalance }) }];
    });
    const {
      topologies: outcomes,
      log,
      runAgain,
    } = schedulingRound({
      nowMs,
      supervisors: this.#roundSupervisors(running),
      topologies,
      strategy: 'even',
    });
    for (const { level, event, fields } of log) this.#logger[level](event, fields);
    for (const outcome of outcomes) {
      const known = this.#topologies.get(outcome.topologyId);
      if (known === undefined) continue;
      known.roundProblem = outcome.kind === 'failed' ? outcome.error : undefined;
      known.unplacedExecutors = outcome.unplaced.length;
      known.unplacedReason = outcome.unplacedReason;
      if (outcome.kind !== 'changed') continue;
      try {
        await this.#coordination.writeAssignment(outcome.assignment);
        known.assignment = outcome.assignment;
      } catch (error) {
        if (!hasCode(error, 'VERSION_CONFLICT') && !hasCode(error, 'NODE_MISSING')) throw error;
        // Somebody else has decided: read, and decide again.
        this.#stale.topologies = true;
        this.#loop.wake();
      }
    }
    if (runAgain) {
      this.#mustSchedule = true;
      this.#loop.wake();
    }
  }

  /** Supervisors with the slots that may be used: not those of topologies that could not be loaded. */
  #roundSupervisors(running: readonly KnownTopology[]): readonly RoundSupervisor[] {
    const held = new Set(
      running
        .filter(({ loaded }) => loaded === undefined)
        .flatMap(
          ({ assignment }) => assignment?.slots.map(({ supervisor, port }) => `${supervisor}:${port}`) ?? [],
        ),
    );
    const present = this.#supervisors.map(({ id, host, ports }) => ({
      id,
      host,
      ports: ports.filter((port) => !held.has(`${id}:${port}`)),
    }));
    return [...present, ...[...this.#gone].map((id) => ({ id, host: '', ports: [], gone: true }))];
  }

  /** When each executor of a topology, named by its first task, was last heard from in its present slot. */
  #lastHeartbeats(
    known: KnownTopology,
    settings: Settings,
    nowMs: number,
  ): (firstTask: number) => number | undefined {
    const slots = new Map<number, SlotAssignment>();
    for (const slot of known.assignment?.slots ?? [])
      for (const [first] of slot.executors) slots.set(first, slot);
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

  /** Writes totals that would be lost with this process, at most once a second; never in the way of a decision. */
  #save(): void {
    if (this.#saving !== undefined) return;
    const waitMs = this.#savedMs + SAVE_INTERVAL_MS - this.#options.clock.nowMs();
    if (waitMs > 0) {
      this.#loop.wakeIn(waitMs);
      return;
    }
    this.#saving = this.#saveAll().finally(() => (this.#saving = undefined));
  }

  async #saveAll(): Promise<void> {
    for (const known of this.#topologies.values()) {
      try {
        if (await known.saveTotals(this.#options.blobStore)) this.#savedMs = this.#options.clock.nowMs();
      } catch (error) {
        this.#logger.warn('totals.not-saved', { topology: known.id, message: String(error) });
      }
    }
  }
}

function placesText(supervisors: readonly SupervisorRecord[]): string {
  return JSON.stringify(supervisors.map(({ id, host, ports }) => [id, host, ports]).sort());
}

function shortProblem({ code, message }: ErrorRecord): { readonly code: string; readonly message: string } {
  return { code, message };
}
