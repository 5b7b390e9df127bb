/** `isobar dev` and what belongs to it: starts, shows and stops a cluster that outlives the command. */
import { homedir } from 'node:os';
import { clusterDirectory } from '../api/index.js';
import { IsobarError, toErrorRecord } from '../base/index.js';
import {
  type DevDirectory,
  devDirectory,
  inspectCluster,
  noCluster,
  startCluster,
  startClusterSupervisor,
  stopCluster,
  stopClusterSupervisor,
} from '../engines/index.js';
import { colorsFor } from './colors.js';
import {
  type DevFlags,
  type DevStartFlags,
  type DevStopFlags,
  readDevOptions,
  readSupervisor,
  type SupervisorStartFlags,
  type SupervisorStopFlags,
} from './dev-options.js';
import type { TextStream } from './display/display.js';
import { errorText } from './error-text.js';
import { ExitCode } from './exit-code.js';
import { OWN_PLACE } from './own-place.js';
import { devStatusLines } from './view/dev-status.js';
import { counted } from './view/format.js';

export interface DevSurroundings {
  readonly out: TextStream;
  readonly err: TextStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Calls back at each signal that asks to end; returns how to stop that. */
  onInterrupt(callback: () => void): () => void;
}

/** The commands; each resolves to its exit code, errors have been shown. */
export class DevCommands {
  readonly #surroundings: DevSurroundings;

  constructor(surroundings: DevSurroundings) {
    this.#surroundings = surroundings;
  }

  start(flags: DevStartFlags): Promise<number> {
    return this.#run(flags, async (directory, signal) => {
      const asked = readDevOptions(flags);
      const { outcome, status } = await startCluster(directory, asked, {
        workingDirectory: process.cwd(),
        signal,
        onStarting: () => {
          if (flags.json !== true) this.#note(`starting the daemons in ${directory.path} …`);
        },
      });
      if (flags.json === true) return this.#answer({ type: 'dev', outcome, ...status });
      const said = {
        started: 'started',
        attached: 'the daemons ran without a keeper; they have one again',
        running: 'runs already',
      }[outcome];
      const where = flags.directory === undefined ? '' : ` --directory ${shellWord(flags.directory)}`;
      this.#print([...devStatusLines(status), '', `${said}; ready: isobar submit app.ts${where}`]);
      return ExitCode.ok;
    });
  }

  status(flags: DevFlags): Promise<number> {
    return this.#run(flags, async (directory) => {
      const status = await inspectCluster(directory);
      if (status === undefined) throw noCluster(directory);
      if (flags.json === true) this.#answer({ type: 'dev-status', ...status });
      else this.#print(devStatusLines(status));
      return status.state === 'ready' && status.keeper !== null ? ExitCode.ok : ExitCode.failed;
    });
  }

  stop(flags: DevStopFlags): Promise<number> {
    return this.#run(flags, async (directory) => {
      const keepWorkers = flags.keepWorkers === true;
      const { stopped } = await stopCluster(directory, { keepWorkers });
      if (flags.json === true)
        return this.#answer({ type: 'dev-stop', directory: directory.path, stopped, keepWorkers });
      const what = stopped.length === 0 ? 'nothing ran' : `stopped ${stopped.join(', ')}`;
      const rest = keepWorkers ? 'workers go on until isobar dev adopts them' : 'the state stays';
      this.#print([`${what}; ${rest} in ${directory.path}`]);
      return ExitCode.ok;
    });
  }

  startSupervisor(name: string, flags: SupervisorStartFlags): Promise<number> {
    return this.#run(flags, async (directory) => {
      const { supervisor: [text, ...more] = [] } = flags;
      if (more.length > 0)
        throw new IsobarError('USAGE', '--supervisor is given twice', { expected: 'one supervisor' });
      await startClusterSupervisor(
        directory,
        name,
        text === undefined ? undefined : readSupervisor(text, name),
      );
      if (flags.json === true) return this.#answer({ type: 'dev-supervisor', name, action: 'start' });
      this.#print([`supervisor ${name} is started`]);
      return ExitCode.ok;
    });
  }

  stopSupervisor(name: string, flags: SupervisorStopFlags): Promise<number> {
    return this.#run(flags, async (directory) => {
      const [crash, only] = [flags.crash === true, flags.only === true];
      const { pid, workers } = await stopClusterSupervisor(directory, name, { crash, only });
      if (flags.json === true) {
        return this.#answer({ type: 'dev-supervisor', name, action: 'stop', crash, only, pid, workers });
      }
      const how = pid === null ? 'did not run' : crash ? 'was killed' : 'has stopped';
      const rest = only ? 'its workers go on' : `and with it ${counted(workers, 'worker')}`;
      this.#print([`supervisor ${name} ${how}; ${rest}`]);
      return ExitCode.ok;
    });
  }

  async #run(
    flags: DevFlags,
    work: (directory: DevDirectory, signal: AbortSignal) => Promise<number>,
  ): Promise<number> {
    const interrupted = new AbortController();
    const stop = this.#surroundings.onInterrupt(() => interrupted.abort(new Error('interrupted')));
    try {
      const path = clusterDirectory(flags.directory, this.#surroundings.environment, homedir());
      return await work(devDirectory(path), interrupted.signal);
    } catch (error) {
      if (interrupted.signal.aborted) {
        this.#note('interrupted; what has been started goes on: see isobar dev status');
        return ExitCode.interrupted;
      }
      return this.#fail(error, flags.json === true);
    } finally {
      stop();
    }
  }

  #fail(error: unknown, isJson: boolean): number {
    const { out, err, environment } = this.#surroundings;
    const { code, message, details, ...rest } = toErrorRecord(error);
    const exitCode = exitCodeOf(code);
    if (isJson) out.write(`${JSON.stringify({ type: 'error', code, message, details, exitCode })}\n`);
    else
      err.write(
        `${errorText({ code, message, details, ...rest }, OWN_PLACE, colorsFor(err, environment))}\n`,
      );
    return exitCode;
  }

  #answer(line: object): number {
    this.#surroundings.out.write(`${JSON.stringify(line)}\n`);
    return ExitCode.ok;
  }

  #print(lines: readonly string[]): void {
    this.#surroundings.out.write(lines.map((line) => `${line}\n`).join(''));
  }

  #note(text: string): void {
    this.#surroundings.err.write(`${text}\n`);
  }
}

/** As a shell reads it back. */
function shellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function exitCodeOf(code: string): number {
  switch (code) {
    case 'USAGE':
    case 'SETTINGS_INVALID':
    case 'COORDINATOR_ADDRESS_INVALID':
    case 'DEV_ALREADY_RUNNING':
    case 'SUPERVISOR_UNKNOWN':
      return ExitCode.usage;
    case 'DAEMON_NOT_RUNNING':
    case 'DAEMON_LOST':
      return ExitCode.clusterLost;
    default:
      return ExitCode.failed;
  }
}
