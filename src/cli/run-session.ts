/**
 * One run of one file: starts the local cluster while the file is checked and bundled, submits, watches to the end, and
 * leaves nothing behind. Whoever calls decides what a signal means and where things are shown.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type {
  ClusterStatus,
  SubmitRequest,
  SubmitResult,
  TopologyStatus,
  TopologyTotals,
} from '../api/index.js';
import {
  compileSettings,
  errorKind,
  hasCode,
  IsobarError,
  systemClock,
  toErrorRecord,
} from '../base/index.js';
import { isTerminal } from '../coordination/index.js';
import { planTopology } from '../scheduling/index.js';
import {
  type LocalCluster,
  prepareSubmission,
  resolveEntry,
  startLocalCluster,
  stopBundler,
  type Submission,
} from '../engines/index.js';
import { graphStages } from '../topology/index.js';
import type { Display } from './display/display.js';
import { ExitCode } from './exit-code.js';
import { OutputTail } from './output-tail.js';
import type { RunOptions } from './run-options.js';
import { inFlowOrder } from './view/flow-order.js';
import { addStatus, EMPTY_HISTORY, type History } from './view/history.js';
import { type Drain, exitCodeOf, type RunEnd } from './view/report.js';
import { buildView, type RunView } from './view/view.js';
import { warningsOf } from './view/warnings.js';

export interface SessionControls {
  /** Aborted: prepare no further, or drain. */
  readonly drain: AbortSignal;
  /** Aborted: end at once. */
  readonly force: AbortSignal;
  /** How often the view is wanted, ms. */
  readonly refreshMs: number;
  /** Where run directories are made; default: the system's directory for temporary files. */
  readonly base?: string;
  /** Told the files that make up the topology. */
  readonly onInputs?: (inputs: readonly string[]) => void;
}

const TRANSIENT = [
  'CONNECTION_LOST',
  'REQUEST_TIMEOUT',
  'NOT_LEADER',
  'COORDINATOR_UNAVAILABLE',
  'SESSION_EXPIRED',
] as const;
const RETRY_MS = 200;
/** A short run should not wait for the next look; a long one should not cost anything. */
const BRISK_MS = 200;
const BRISK_TIME_MS = 10_000;
const ENDING_MS = 50;
const CALM_MS = 1000;
/** Nothing has been counted for this long: a few heartbeats. */
const STILL_MS = 3000;
/** A costly look is followed by a rest in proportion. */
const RESTS_PER_LOOK = 4;
/** A topology that has printed so much since the last look is read again after so long: its logs keep only so much. */
const MANY_LINES = 500;
const READ_AGAIN_MS = 20;
const LONGEST_REST_MS = 3000;
/** After a forced end, what is still to be read is read for this long. */
const SETTLE_MS = 3000;
/** A daemon that has just been started again has read its records by then. */
const MISSING_MS = 15_000;
const MAX_PROBLEMS = 50;

/** Runs a file and resolves to the exit code; errors have been shown. */
export async function runSession(
  options: RunOptions,
  display: Display,
  controls: SessionControls,
): Promise<number> {
  let cluster: LocalCluster | undefined;
  let exitCode: number = ExitCode.failed;
  try {
    resolveEntry(options.file);
    const place = controls.base === undefined ? {} : { base: controls.base };
    cluster = startLocalCluster({
      settings: options.clusterSettings,
      workerStopTimeoutMs: options.settings['supervisor.worker-stop-timeout'],
      onDaemonEnd: (how) =>
        display.note(`the local daemon ended (${how}) and is started again; workers go on`),
      ...place,
      ...(options.stateDirectory === undefined ? {} : { stateDirectory: options.stateDirectory }),
    });
    exitCode = await new Session(options, display, controls, cluster).run();
  } catch (error) {
    exitCode = exitCodeOfError(error, controls);
    if (exitCode !== ExitCode.interrupted) display.failure(toErrorRecord(error), exitCode);
  }
  if (cluster !== undefined) await closeCluster(cluster, display, options.keep || isWorthKeeping(exitCode));
  return exitCode;
}

class Session {
  readonly #options: RunOptions;
  readonly #display: Display;
  readonly #controls: SessionControls;
  readonly #cluster: LocalCluster;
  readonly #shown = new Set<string>();
  readonly #startedMs = systemClock.nowMs();
  #history: History = EMPTY_HISTORY;
  #drain: Drain | null = null;
  #aliveTotals: TopologyTotals | null = null;
  #isOutputLost = false;
  #seenMs = Infinity;
  #submittedMs = Infinity;
  /** Totals that were last seen to change, as text, and when. */
  #counted = { text: '', atMs: -Infinity };
  /** Bolts by stage. */
  #bolts: readonly string[] = [];

  constructor(options: RunOptions, display: Display, controls: SessionControls, cluster: LocalCluster) {
    this.#options = options;
    this.#display = display;
    this.#controls = controls;
    this.#cluster = cluster;
  }

  async run(): Promise<number> {
    const { topologySettings, check, file } = this.#options;
    this.#display.preparing(`${check ? 'checking, bundling' : 'bundling'} and starting ${file}`);
    const { bundle, description } = await this.#prepare();
    this.#refuseTooManyWorkers(description);
    this.#bolts = graphStages(description).flat();
    await this.#cluster.control();
    for (const name of this.#cluster.stoppedTopologies) {
      this.#display.note(`a former run of "${name}" had not ended; it has been stopped`);
    }
    this.#submittedMs = systemClock.nowMs();
    const { topologyId, notes } = await this.#submit({
      description,
      code: bundle.code,
      sourceMap: bundle.sourceMap,
      settings: topologySettings,
    });
    this.#display.submitted(topologyId, description.name, notes);
    const end = await this.#watch(topologyId, description.name);
    const { phase } = end.status;
    this.#display.end(end);
    if (phase.kind === 'failed') this.#display.failure(phase.error, exitCodeOf(end));
    return exitCodeOf(end);
  }

  /** Asks again if the daemon dies meanwhile; it knows then that it is the same request. */
  async #submit(request: SubmitRequest): Promise<SubmitResult> {
    const requestId = randomUUID();
    for (;;) {
      try {
        return await (await this.#cluster.control()).ask('submit', { ...request, requestId });
      } catch (error) {
        if (!isTransient(error)) throw error;
        await pause(RETRY_MS);
      }
    }
  }

  async #prepare(): Promise<Submission> {
    const { file, check, settings } = this.#options;
    const { drain, onInputs } = this.#controls;
    const failed = new AbortController();
    const prepared = prepareSubmission({
      file,
      check,
      evaluationTimeoutMs: settings['submit.evaluation-timeout'],
      workDirectory: this.#cluster.directory.path,
      signal: AbortSignal.any([drain, failed.signal]),
      ...(onInputs === undefined ? {} : { onInputs }),
    });
    try {
      // A cluster that cannot be started ends the preparation; a file that cannot be run does not wait for the cluster.
      const [submission] = await Promise.all([prepared, this.#cluster.control()]);
      drain.throwIfAborted();
      return submission;
    } catch (error) {
      failed.abort(error);
      await prepared.catch(() => undefined);
      throw error;
    } finally {
      await stopBundler();
    }
  }

  #refuseTooManyWorkers(description: Submission['description']): void {
    const { clusterSettings, topologySettings } = this.#options;
    const settings = compileSettings(clusterSettings, description.settings, topologySettings);
    const { topologyWorkers: workers } = planTopology(description, settings);
    const slots = settings['supervisor.slots'];
    if (workers <= slots) return;
    const message = `topology.workers (${workers}) is more than supervisor.slots (${slots})`;
    throw new IsobarError('SETTINGS_INVALID', message, {
      expected: `at most ${slots} workers, or --set supervisor.slots=${workers}`,
      found: String(workers),
      where: 'topology.workers',
    });
  }

  async #watch(topologyId: string, name: string): Promise<RunEnd> {
    this.#seenMs = systemClock.nowMs();
    const { drain, force } = this.#controls;
    const tail = new OutputTail({
      supervisorDirectory: this.#cluster.directory.supervisorDirectory,
      topologyId,
      onLine: (worker, line) => this.#display.output(worker, line),
      onLost: (_worker, fault) => this.#tellLostOutput(fault),
    });
    for (;;) {
      const lookedMs = systemClock.nowMs();
      const status = await this.#look(topologyId);
      const lookMs = systemClock.nowMs() - lookedMs;
      const lines = tail.poll();
      if (status !== undefined) {
        this.#showProblems(status);
        const view = buildView(this.#history);
        if (view !== undefined) {
          this.#showWarnings(view);
          this.#display.view(view);
        }
        if (status.isSettled) {
          tail.end();
          return this.#end(status, false);
        }
        if (force.aborted || (drain.aborted && cannotBegin(status)))
          return this.#forceEnd(topologyId, name, tail, status);
        if (drain.aborted && this.#drain === null) await this.#askToDrain(name, status);
      }
      await this.#rest(status, lookMs, lines >= MANY_LINES ? tail : null);
    }
  }

  /** The newest status of the topology; undefined while the daemon is away. @throws DAEMON_LOST, TOPOLOGY_NOT_ALIVE */
  async #look(topologyId: string): Promise<TopologyStatus | undefined> {
    let cluster: ClusterStatus;
    try {
      const answer = await (await this.#cluster.control()).ask('status', null);
      cluster = inFlowOrder(answer, topologyId, this.#bolts);
    } catch (error) {
      if (!isTransient(error)) throw error;
      this.#seenMs = systemClock.nowMs();
      return undefined;
    }
    const status = cluster.topologies.find(({ id }) => id === topologyId);
    if (status !== undefined) this.#seenMs = systemClock.nowMs();
    else if (systemClock.nowMs() - this.#seenMs > MISSING_MS) {
      throw new IsobarError(
        'TOPOLOGY_NOT_ALIVE',
        `the daemon does not know topology ${topologyId} any more`,
        {
          where: this.#cluster.directory.daemonLog,
        },
      );
    }
    this.#history = addStatus(this.#history, cluster, topologyId);
    if (status !== undefined) this.#note(status);
    return status;
  }

  /** What the last status, when all workers have ended, cannot tell any more. */
  #note({ phase, totals, errors }: TopologyStatus): void {
    if (!isTerminal(phase)) this.#aliveTotals = totals;
    if (errors.some(({ error }) => error.code === 'OUTPUT_LOST')) this.#isOutputLost = true;
  }

  #tellLostOutput(fault: IsobarError): void {
    if (this.#isOutputLost) return;
    this.#isOutputLost = true;
    this.#display.problem({ component: '', task: 0, error: toErrorRecord(fault), count: 1 });
  }

  async #askToDrain(name: string, status: TopologyStatus): Promise<void> {
    const { pending, acked, failed, deadLetters } = status.totals;
    try {
      await (await this.#cluster.control()).ask('drain', name);
    } catch (error) {
      // Asked again at the next look; one that has ended by itself meanwhile needs no drain.
      if (!isTransient(error) && !hasCode(error, 'TOPOLOGY_NOT_ALIVE')) throw error;
      return;
    }
    this.#drain = { atMs: this.#history.atMs, pending, acked, failed, deadLetters };
    this.#display.note(`draining ${pending} pending rows; once more to stop at once`);
  }

  async #forceEnd(
    topologyId: string,
    name: string,
    tail: OutputTail,
    before: TopologyStatus,
  ): Promise<RunEnd> {
    let last = before;
    const deadlineMs = systemClock.nowMs() + SETTLE_MS;
    try {
      const control = await this.#cluster.control();
      await control.ask('stop', name);
      while (!last.isSettled && systemClock.nowMs() < deadlineMs) {
        await pause(ENDING_MS);
        last = (await this.#look(topologyId)) ?? last;
      }
    } catch (error) {
      // Closing the cluster stops everything as well.
      if (!isTransient(error) && !hasCode(error, 'TOPOLOGY_NOT_ALIVE')) throw error;
    }
    await this.#cluster.stop();
    tail.end();
    return this.#end(last, true);
  }

  #end(status: TopologyStatus, isForced: boolean): RunEnd {
    const nowMs = systemClock.nowMs();
    return {
      status,
      aliveTotals: this.#aliveTotals,
      isOutputLost: this.#isOutputLost,
      isForced,
      drain: this.#drain,
      durationMs: nowMs - this.#submittedMs,
      totalMs: nowMs - this.#startedMs,
    };
  }

  #showProblems({ errors, problems }: TopologyStatus): void {
    const all = [...errors, ...problems.map((error) => ({ component: '', task: 0, error, count: 1 }))];
    for (const { component, task, error, count } of all) {
      const key = errorKind(component, error);
      if (this.#shown.has(key) || this.#shown.size >= MAX_PROBLEMS) continue;
      this.#shown.add(key);
      this.#display.problem({ component, task, error, count });
    }
  }

  #showWarnings(view: RunView): void {
    for (const warning of warningsOf(view)) {
      if (this.#shown.has(warning.key) || this.#shown.size >= MAX_PROBLEMS) continue;
      this.#shown.add(warning.key);
      this.#display.warning(warning);
    }
  }

  /**
   * @param lookMs what the last look has taken: a status of very many tasks must not keep the daemon from its work
   * @param loud read meanwhile as well; null: little is printed
   */
  async #rest(status: TopologyStatus | undefined, lookMs: number, loud: OutputTail | null): Promise<void> {
    const { drain, force, refreshMs } = this.#controls;
    const isYoung = systemClock.nowMs() - this.#startedMs < BRISK_TIME_MS;
    const isEnding = status !== undefined && status.phase.kind !== 'active';
    const periodMs = status === undefined ? RETRY_MS : isEnding ? ENDING_MS : isYoung ? BRISK_MS : CALM_MS;
    // A screen on which nothing moves need not be drawn again so soon.
    const isStill = status !== undefined && !isYoung && this.#isStill(status);
    const wantedMs = isStill ? periodMs : Math.min(periodMs, Math.max(refreshMs, ENDING_MS));
    const restMs = Math.max(wantedMs, Math.min(RESTS_PER_LOOK * lookMs, LONGEST_REST_MS));
    const waiting = [drain, force].filter((signal) => !signal.aborted);
    const signal = waiting.length === 0 ? undefined : AbortSignal.any(waiting);
    const untilMs = systemClock.nowMs() + restMs;
    try {
      for (let isLoud = loud !== null; ; ) {
        const leftMs = untilMs - systemClock.nowMs();
        if (leftMs <= 0) return;
        await pause(
          isLoud ? Math.min(READ_AGAIN_MS, leftMs) : leftMs,
          undefined,
          signal === undefined ? {} : { signal },
        );
        if (isLoud) isLoud = (loud?.poll() ?? 0) > 0;
      }
    } catch {
      // Woken by a signal: the next look acts on it.
      return;
    }
  }

  #isStill({ totals }: TopologyStatus): boolean {
    const text = JSON.stringify(totals);
    const nowMs = systemClock.nowMs();
    if (text !== this.#counted.text) this.#counted = { text, atMs: nowMs };
    return nowMs - this.#counted.atMs >= STILL_MS;
  }
}

/** It fails as it starts and nothing of it has run yet: a drain would wait for tasks that never come. */
function cannotBegin({ isReady, totals, errors }: TopologyStatus): boolean {
  return !isReady && errors.length > 0 && totals.emitted + totals.executed + totals.pending === 0;
}

function isTransient(error: unknown): boolean {
  return TRANSIENT.some((code) => hasCode(error, code));
}

function exitCodeOfError(error: unknown, { drain }: SessionControls): number {
  if (drain.aborted && !(error instanceof IsobarError && hasCode(error, 'DAEMON_LOST')))
    return ExitCode.interrupted;
  if (hasCode(error, 'DAEMON_LOST')) return ExitCode.clusterLost;
  return ExitCode.notSubmitted;
}

/** Logs help to understand a failure of the cluster or of workers; a file that does not compile has left none. */
function isWorthKeeping(exitCode: number): boolean {
  return exitCode === ExitCode.failed || exitCode === ExitCode.clusterLost;
}

async function closeCluster(cluster: LocalCluster, display: Display, keepLogs: boolean): Promise<void> {
  try {
    const isKept = await cluster.close({ keepLogs });
    if (isKept && keepLogs) display.note(`logs are kept in ${cluster.directory.path}`);
  } catch (error) {
    display.note(`${cluster.directory.path} could not be removed: ${String(error)}`);
  }
}
