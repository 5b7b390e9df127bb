/**
 * The keeper's side of a local cluster: starts the daemon process, starts it again when it dies, and ends everything.
 *
 * K1  Workers are never touched from here: a daemon that died is succeeded by another one that adopts them.
 * K2  A daemon that cannot be kept alive is given up with DAEMON_LOST, which names its log.
 * K3  A first start that fails for a reason that will not go away is not tried again: its error is the caller's.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { openSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectControl, type ControlClient } from '../../api/index.js';
import {
  IsobarError,
  type RawSettings,
  systemClock,
  processIdentity,
  packageEntry,
  writeWorkFile,
} from '../../base/index.js';

import { type DaemonLaunch, FIRST_DAEMON, type FromDaemon, type ToDaemon } from './daemon-launch.js';
import { decideRestart } from './restart-policy.js';
import {
  checkStateDirectory,
  createRunDirectory,
  removeRunDirectory,
  type RunDirectory,
  sweepDeadRuns,
} from './run-directory.js';
import { runningCommands } from './running-commands.js';

const DAEMON_ENTRY = fileURLToPath(packageEntry('engines/local/daemon-main'));
/** Beyond the time that workers have to stop. */
const CLOSE_MARGIN_MS = 5000;

export interface LocalClusterOptions {
  /** The cluster's settings over the defaults. */
  readonly settings: RawSettings;
  /** `supervisor.worker-stop-timeout` of these settings, ms. */
  readonly workerStopTimeoutMs: number;
  /** Durable state of the user's choosing, an absolute path; the run's directory is made inside. Default: the other way round. */
  readonly stateDirectory?: string;
  /** Where run directories are made otherwise; default: the system's directory for temporary files. */
  readonly base?: string;
  /** Told of each daemon process that ended although nobody closed it, and that is started again. */
  onDaemonEnd?(how: string): void;
}

export interface LocalCluster {
  readonly directory: RunDirectory;
  /** Of the daemon process that runs now; undefined between two. */
  readonly pid: number | undefined;
  /** How often the daemon has been started again. */
  readonly daemonRestarts: number;
  /** Names of topologies of a former run of the state directory that had not ended and have been stopped. */
  readonly stoppedTopologies: readonly string[];
  /** A connection to the daemon that runs now or next. @throws what the first start failed with, DAEMON_LOST */
  control(): Promise<ControlClient>;
  /** Stops workers and daemon. Twice is harmless. */
  stop(): Promise<void>;
  /** {@link stop}, then removes the directory; resolves to whether something of it was kept. */
  close(options?: { keepLogs?: boolean }): Promise<boolean>;
}

/** Begins to start a local cluster; {@link LocalCluster.control} waits for it. @throws STATE_DIRECTORY_UNUSABLE */
export function startLocalCluster(options: LocalClusterOptions): LocalCluster {
  return new Keeper(options);
}

type State =
  | { readonly kind: 'starting'; readonly child: ChildProcess }
  | { readonly kind: 'ready'; readonly child: ChildProcess; readonly sinceMs: number }
  | { readonly kind: 'waiting'; readonly timer: NodeJS.Timeout }
  | { readonly kind: 'lost'; readonly error: IsobarError }
  | { readonly kind: 'closed' };

class Keeper implements LocalCluster {
  readonly directory: RunDirectory;
  readonly #options: LocalClusterOptions;
  readonly #launchPath: string;
  #state: State;
  #hasBeenReady = false;
  #stoppedTopologies: readonly string[] = [];
  #endsInARow = 0;
  #restarts = 0;
  #connection: Promise<ControlClient> | undefined;
  #waiters: { resolve: () => void; reject: (error: IsobarError) => void }[] = [];
  #failure: IsobarError | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: LocalClusterOptions) {
    const { stateDirectory } = options;
    this.#options = options;
    if (stateDirectory !== undefined) checkStateDirectory(stateDirectory);
    // Whoever looks for the processes of a state directory finds it in their command lines.
    const base = stateDirectory === undefined ? options.base : join(stateDirectory, 'runs');
    const keeper = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
    const place = base === undefined ? {} : { base };
    this.directory = createRunDirectory({
      keeper,
      ...place,
      ...(stateDirectory === undefined ? {} : { stateDirectory }),
    });
    this.#launchPath = join(this.directory.path, 'daemon.json');
    // Nothing of what a topology prints is left out where somebody watches it.
    // Runs are many at once, and each ends with its topology: who wants metrics of one says where.
    const settings = { 'log.rate-limit': null, 'metrics.port': null, ...options.settings };
    const launch: DaemonLaunch = { directory: this.directory, settings, keeper };
    writeWorkFile(this.#launchPath, JSON.stringify(launch));
    this.#state = this.#spawn();
    // Not before the daemon: the next run should not wait for the last one's remains.
    setImmediate(() => sweepDeadRuns(base, runningCommands()));
  }

  get pid(): number | undefined {
    return 'child' in this.#state ? this.#state.child.pid : undefined;
  }

  get daemonRestarts(): number {
    return this.#restarts;
  }

  get stoppedTopologies(): readonly string[] {
    return this.#stoppedTopologies;
  }

  async control(): Promise<ControlClient> {
    const known = await this.#connection?.catch(() => undefined);
    if (known !== undefined && !known.isClosed) return known;
    await this.#untilReady();
    this.#connection = connectControl(this.directory.controlSocket);
    return this.#connection;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async close(options: { keepLogs?: boolean } = {}): Promise<boolean> {
    await this.stop();
    return removeRunDirectory(this.directory, { keepLogs: options.keepLogs ?? false });
  }

  #untilReady(): Promise<void> {
    switch (this.#state.kind) {
      case 'ready':
        return Promise.resolve();
      case 'lost':
        return Promise.reject(this.#state.error);
      case 'closed':
        return Promise.reject(new IsobarError('CONNECTION_LOST', 'the local cluster has been closed'));
      case 'starting':
      case 'waiting':
        return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
    }
  }

  #spawn(): State {
    const log = openSync(this.directory.daemonLog, 'a', 0o600);
    const child = fork(DAEMON_ENTRY, [this.#launchPath, ...(this.#hasBeenReady ? [] : [FIRST_DAEMON])], {
      // In a session of its own: a signal of the terminal is the keeper's to decide on.
      detached: true,
      execArgv: ['--enable-source-maps'],
      serialization: 'advanced',
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    // The daemon is one of our own entries and sends what FromDaemon says.
    child.on('message', (message) => this.#onMessage(child, message as FromDaemon));
    child.once('error', (error) => this.#onEnd(child, error.message));
    child.once('exit', (code, signal) => this.#onEnd(child, signal ?? `exit code ${code ?? 'unknown'}`));
    return { kind: 'starting', child };
  }

  #onMessage(child: ChildProcess, message: FromDaemon): void {
    if (this.#state.kind !== 'starting' || this.#state.child !== child) return;
    switch (message.kind) {
      case 'ready':
        this.#state = { kind: 'ready', child, sinceMs: systemClock.nowMs() };
        if (!this.#hasBeenReady) this.#stoppedTopologies = message.stopped;
        this.#hasBeenReady = true;
        for (const { resolve } of this.#waiters.splice(0)) resolve();
        return;
      case 'failed':
        this.#failure = IsobarError.from(message.error);
        return;
    }
  }

  #onEnd(child: ChildProcess, how: string): void {
    const state = this.#state;
    if (!('child' in state) || state.child !== child) return;
    if (this.#stopping !== undefined) {
      this.#state = { kind: 'closed' };
      return;
    }
    if (this.#failure !== undefined && !this.#hasBeenReady) return this.#lose(this.#failure);
    const readyForMs = state.kind === 'ready' ? systemClock.nowMs() - state.sinceMs : undefined;
    const decision = decideRestart(this.#endsInARow, readyForMs);
    this.#endsInARow = decision.endsInARow;
    if (decision.kind === 'give-up') {
      this.#lose(
        new IsobarError(
          'DAEMON_LOST',
          `the local daemon ended ${decision.endsInARow} times in a row (${how}); its log is ${this.directory.daemonLog}`,
          { expected: 'a daemon that stays alive', found: how, where: this.directory.daemonLog },
          this.#failure,
        ),
      );
      return;
    }
    this.#options.onDaemonEnd?.(how);
    const timer = setTimeout(() => {
      this.#restarts++;
      this.#failure = undefined;
      this.#state = this.#spawn();
    }, decision.pauseMs);
    this.#state = { kind: 'waiting', timer };
  }

  #lose(error: IsobarError): void {
    this.#state = { kind: 'lost', error };
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  async #stop(): Promise<void> {
    const state = this.#state;
    (await this.#connection?.catch(() => undefined))?.close();
    if (state.kind === 'waiting') clearTimeout(state.timer);
    // Workers may be left without a daemon: another one must find and stop them.
    const child = 'child' in state ? state.child : state.kind === 'waiting' ? this.#successor() : undefined;
    if (child !== undefined) await this.#end(child);
    const closed = new IsobarError('CONNECTION_LOST', 'the local cluster has been closed');
    if (this.#state.kind !== 'lost') this.#state = { kind: 'closed' };
    for (const { reject } of this.#waiters.splice(0)) reject(closed);
  }

  #successor(): ChildProcess | undefined {
    this.#state = this.#spawn();
    return 'child' in this.#state ? this.#state.child : undefined;
  }

  async #end(child: ChildProcess): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve();
      child.once('exit', () => resolve());
    });
    const close: ToDaemon = { kind: 'close' };
    if (child.connected) child.send(close, () => undefined);
    const limitMs = this.#options.workerStopTimeoutMs + CLOSE_MARGIN_MS;
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
    await ended;
    clearTimeout(timer);
  }
}
