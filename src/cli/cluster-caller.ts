/** How every command talks to Nimbus: asks, prints what came, and turns what went wrong into an exit code. */
import { homedir } from 'node:os';
import { type ClusterClient, clusterClient, clusterDirectory } from '../api/index.js';
import { type ErrorCode, type IsobarError, toErrorRecord, toIsobarError } from '../base/index.js';
import type { ClusterFlags } from './cluster-options.js';
import { colorsFor } from './colors.js';
import type { TextStream } from './display/display.js';
import { errorText } from './error-text.js';
import { ExitCode } from './exit-code.js';
import { OWN_PLACE } from './own-place.js';

const WIDTH_OF_PIPES = 200;

const NO_DAEMON: ReadonlySet<ErrorCode> = new Set([
  'DAEMON_NOT_RUNNING',
  'DAEMON_VERSION_MISMATCH',
  'CONNECTION_LOST',
  'REQUEST_TIMEOUT',
  'NOT_LEADER',
  'COORDINATOR_UNAVAILABLE',
]);

export interface ClusterSurroundings {
  readonly out: TextStream;
  readonly err: TextStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export class ClusterCaller {
  readonly #surroundings: ClusterSurroundings;

  constructor(surroundings: ClusterSurroundings) {
    this.#surroundings = surroundings;
  }

  /** The directory of the cluster that a command means. */
  directoryOf(flags: ClusterFlags): string {
    return clusterDirectory(flags.directory, this.#surroundings.environment, homedir());
  }

  /**
   * @param options.refused exit code of what neither the command line nor the daemon's absence explains
   * @param options.patienceMs how long a daemon is waited for that has left its socket
   */
  async run(
    flags: ClusterFlags,
    command: (client: ClusterClient) => Promise<void>,
    options: { readonly refused?: number; readonly patienceMs?: number } = {},
  ): Promise<number> {
    const { refused = ExitCode.failed, ...patience } = options;
    const directory = this.directoryOf(flags);
    const onSlow = (isAway: boolean): void => {
      const what = isAway ? 'Nimbus does not answer; waiting for it to be back' : 'waiting for an answer';
      this.#surroundings.err.write(`${what} (cluster in ${directory}; isobar dev status says who runs) …\n`);
    };
    const client = clusterClient(directory, { ...patience, onSlow });
    try {
      await command(client);
      return ExitCode.ok;
    } catch (error) {
      const fault = toIsobarError(error);
      const exitCode = clusterExitCode(fault.code, refused);
      this.#failure(flags, fault, exitCode);
      return exitCode;
    } finally {
      client.close();
    }
  }

  /** Prints one answer: its JSON, or its lines. */
  answer(flags: ClusterFlags, json: object, lines: () => readonly string[]): void {
    const text = flags.json === true ? `${JSON.stringify(json)}\n` : `${lines().join('\n')}\n`;
    this.#surroundings.out.write(text);
  }

  #failure(flags: ClusterFlags, error: IsobarError, exitCode: number): void {
    const { out, err, environment } = this.#surroundings;
    const record = toErrorRecord(error);
    if (flags.json === true) {
      const { code, message, details } = record;
      const { expected, found, where } = details;
      out.write(`${JSON.stringify({ type: 'error', code, message, expected, found, where, exitCode })}\n`);
    } else {
      err.write(`${errorText(record, OWN_PLACE, colorsFor(err, environment))}\n`);
    }
  }

  /** Columns of the terminal. */
  get width(): number {
    const { out } = this.#surroundings;
    return out.isTTY === true ? (out.columns ?? WIDTH_OF_PIPES) : WIDTH_OF_PIPES;
  }
}

/** No daemon answers, or one that could. */
export function isDaemonAway(error: unknown): boolean {
  return NO_DAEMON.has(toIsobarError(error).code);
}

/** @param refused of what neither the command line nor the daemon's absence explains */
export function clusterExitCode(code: ErrorCode, refused: number): number {
  if (code === 'USAGE') return ExitCode.usage;
  return NO_DAEMON.has(code) ? ExitCode.clusterLost : refused;
}
