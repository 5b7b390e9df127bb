/**
 * One daemon as the keeper of `isobar dev` sees it: found or started, watched, and started again with back-off.
 *
 *     absent ──► running ──ended──► backing-off ──► running
 *        ▲          │                   │
 *        └──────────┴── not wanted ─────┘
 *
 * K1  A daemon that runs is never ended from here, nor started a second time: it is found by its lock.
 * K2  It is started again for ever; how often in a row it has ended, and why, can be asked for.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type CancelTimer,
  type Clock,
  type ErrorRecord,
  IsobarError,
  isSameProcessAlive,
  type Logger,
  type ProcessIdentity,
  processIdentity,
  toErrorRecord,
  writeDurableFile,
  packageEntry,
} from '../../base/index.js';
import { decideRestart, type RestartLimits } from '../local/restart-policy.js';
import { daemonFiles, type DevDaemonLaunch, findDaemon, type FromDevDaemon } from './daemon-control.js';
import type { DevDirectory } from './dev-directory.js';

const DAEMON_ENTRY = fileURLToPath(packageEntry('engines/dev/daemon-main'));
const LIMITS: RestartLimits = {
  firstPauseMs: 50,
  longestPauseMs: 5000,
  maxEnds: Infinity,
  healthyMs: 10_000,
};

export interface DaemonReport {
  readonly id: string;
  readonly state: 'running' | 'backing-off';
  readonly pid: number | null;
  /** Starts after its first, by this keeper. */
  readonly restarts: number;
  /** Why it ended last; null: it has not, or has been well for a while since. */
  readonly problem: ErrorRecord | null;
  /** Until the next start, ms; null: it runs. */
  readonly retryInMs: number | null;
}

export interface KeptDaemonOptions {
  readonly directory: DevDirectory;
  readonly workingDirectory: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

type State =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'running';
      readonly identity: ProcessIdentity;
      /** null: somebody else started it. */
      readonly child: ChildProcess | null;
      /** null: not yet. */
      readonly readySinceMs: number | null;
    }
  | { readonly kind: 'backing-off'; readonly untilMs: number; readonly cancel: CancelTimer };

export class KeptDaemon {
  readonly id: string;
  readonly #options: KeptDaemonOptions;
  #launch: DevDaemonLaunch;
  #state: State = { kind: 'absent' };
  #isWanted = true;
  #endsInARow = 0;
  #restarts = 0;
  #problem: ErrorRecord | null = null;
  #failure: ErrorRecord | undefined;

  constructor(launch: DevDaemonLaunch, options: KeptDaemonOptions) {
    this.id = launch.id;
    this.#launch = launch;
    this.#options = options;
  }

  /** It is to run, with these options from its next start on. */
  want(launch: DevDaemonLaunch): void {
    this.#launch = launch;
    if (!this.#isWanted) this.#endsInARow = 0;
    this.#isWanted = true;
    this.check();
  }

  /** It is not started again. */
  leave(): void {
    this.#isWanted = false;
    if (this.#state.kind === 'backing-off') {
      this.#state.cancel();
      this.#state = { kind: 'absent' };
    }
  }

  /** Whether somebody has to look after it. */
  get isOver(): boolean {
    return !this.#isWanted && this.#state.kind === 'absent';
  }

  /** Finds out whether it still runs; starts it where it is wanted and does not. */
  check(): void {
    if (this.#state.kind === 'running' && this.#state.child === null) {
      if (!isSameProcessAlive(this.#state.identity)) this.#onEnd('ended');
    }
    if (this.#state.kind === 'absent' && this.#isWanted) this.#findOrStart();
  }

  report(): DaemonReport | undefined {
    if (this.#state.kind === 'absent') return undefined;
    const { clock } = this.#options;
    const isBackingOff = this.#state.kind === 'backing-off';
    return {
      id: this.id,
      state: this.#state.kind,
      pid: this.#state.kind === 'running' ? this.#state.identity.pid : null,
      restarts: this.#restarts,
      problem: isBackingOff || !this.#isHealthy() ? this.#problem : null,
      retryInMs: this.#state.kind === 'backing-off' ? Math.max(0, this.#state.untilMs - clock.nowMs()) : null,
    };
  }

  #isHealthy(): boolean {
    const { clock } = this.#options;
    if (this.#state.kind !== 'running' || this.#state.readySinceMs === null) return false;
    return clock.nowMs() - this.#state.readySinceMs >= LIMITS.healthyMs;
  }

  #findOrStart(): void {
    const { directory, logger, clock } = this.#options;
    const found = findDaemon(directory, this.id);
    if (found !== undefined) {
      logger.info('daemon.found', { id: this.id, pid: found.pid });
      this.#state = { kind: 'running', identity: found, child: null, readySinceMs: clock.nowMs() };
      return;
    }
    try {
      this.#start();
    } catch (error) {
      this.#failure = toErrorRecord(error);
      this.#onEnd('could not be started');
    }
  }

  #start(): void {
    const { directory, workingDirectory, logger } = this.#options;
    const files = daemonFiles(directory, this.id);
    this.#failure = undefined;
    mkdirSync(dirname(files.log), { recursive: true, mode: 0o700 });
    writeDurableFile(files.launch, JSON.stringify(this.#launch));
    const log = openSync(files.log, 'a', 0o600);
    let child: ChildProcess;
    try {
      child = fork(DAEMON_ENTRY, [files.launch], {
        cwd: existsSync(workingDirectory) ? workingDirectory : directory.path,
        // In a session of its own: it outlives this process, and signals to a terminal are not meant for it.
        detached: true,
        execArgv: ['--enable-source-maps'],
        serialization: 'advanced',
        stdio: ['ignore', log, log, 'ipc'],
      });
    } finally {
      closeSync(log);
    }
    // The daemon is one of our own entries and sends what FromDevDaemon says.
    child.on('message', (message) => this.#onMessage(child, message as FromDevDaemon));
    child.once('error', (error) => this.#onChildEnd(child, error.message));
    child.once('exit', (code, signal) => this.#onChildEnd(child, signal ?? `exit code ${code ?? 'unknown'}`));
    const { pid = 0 } = child;
    // Not reaped before `exit` is told, so the pid is still this process's, even if it has ended already.
    const identity = processIdentity(pid) ?? { pid, startTime: '' };
    this.#state = { kind: 'running', identity, child, readySinceMs: null };
    logger.info('daemon.started', { id: this.id, pid });
  }

  #onMessage(child: ChildProcess, message: FromDevDaemon): void {
    if (this.#state.kind !== 'running' || this.#state.child !== child) return;
    if (message.kind === 'failed') this.#failure = message.error;
    else this.#state = { ...this.#state, readySinceMs: this.#options.clock.nowMs() };
  }

  #onChildEnd(child: ChildProcess, how: string): void {
    if (this.#state.kind === 'running' && this.#state.child === child) this.#onEnd(how);
  }

  #onEnd(how: string): void {
    const { clock, logger, directory } = this.#options;
    const readySinceMs = this.#state.kind === 'running' ? this.#state.readySinceMs : null;
    const readyForMs = readySinceMs === null ? undefined : clock.nowMs() - readySinceMs;
    this.#state = { kind: 'absent' };
    if (!this.#isWanted) {
      logger.info('daemon.ended', { id: this.id, how });
      return;
    }
    if (this.#failure?.code === 'STATE_DIRECTORY_OWNED' && findDaemon(directory, this.id) !== undefined) {
      this.#findOrStart();
      return;
    }
    const { log } = daemonFiles(directory, this.id);
    this.#problem =
      this.#failure ??
      toErrorRecord(
        new IsobarError('DAEMON_LOST', `daemon ${this.id} ended (${how})`, {
          expected: 'a daemon that stays alive',
          found: how,
          where: log,
        }),
      );
    this.#failure = undefined;
    const decision = decideRestart(this.#endsInARow, readyForMs, LIMITS);
    this.#endsInARow = decision.endsInARow;
    const pauseMs = decision.kind === 'restart' ? decision.pauseMs : LIMITS.longestPauseMs;
    logger.warn('daemon.ended', { id: this.id, how, code: this.#problem.code, pauseMs });
    this.#restarts++;
    const cancel = clock.after(pauseMs, () => {
      this.#state = { kind: 'absent' };
      this.check();
    });
    this.#state = { kind: 'backing-off', untilMs: clock.nowMs() + pauseMs, cancel };
  }
}
