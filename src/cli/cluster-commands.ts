/** The commands that talk to Nimbus: ask, print what came, and turn what went wrong into an exit code. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ClusterClient, clusterClient, clusterDirectory, type TopologyDetail } from '../api/index.js';
import {
  compileSettings,
  type ErrorCode,
  IsobarError,
  type RawSettings,
  toErrorRecord,
  toIsobarError,
} from '../base/index.js';
import { prepareSubmission, resolveEntry, stopBundler } from '../engines/index.js';
import type { ClusterActions } from './cluster-program.js';
import {
  type ClusterFlags,
  type KillFlags,
  readRebalance,
  readWaitMs,
  type RebalanceFlags,
  type SubmitFlags,
} from './cluster-options.js';
import { colorsFor } from './colors.js';
import type { TextStream } from './display/display.js';
import { errorText, type OwnPlace } from './error-text.js';
import { ExitCode } from './exit-code.js';
import { SettingFlags } from './setting-flags.js';
import {
  configLines,
  describeLines,
  latency,
  lifeLine,
  listLines,
  rebalanceLines,
} from './view/cluster-views.js';

/** Everything that Isobar brings with it. */
const PLACE: OwnPlace = {
  prefixes: ['../../dist/', '../../src/'].map((path) => fileURLToPath(new URL(path, import.meta.url))),
};
const WIDTH_OF_PIPES = 200;
const DEFAULT_WAIT_MS = 30_000;

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

/** The commands; each resolves to its exit code, errors have been shown. */
export class ClusterCommands implements ClusterActions {
  readonly #surroundings: ClusterSurroundings;

  constructor(surroundings: ClusterSurroundings) {
    this.#surroundings = surroundings;
  }

  submit(file: string, flags: SubmitFlags): Promise<number> {
    return this.#run(
      flags,
      async (client) => {
        const settings = settingsOf(flags);
        const { description, code, sourceMap } = await prepare(file, flags, settings);
        const result = await client.ask('submit', {
          description,
          code,
          sourceMap,
          settings,
          inactive: flags.inactive === true,
          requestId: randomUUID(),
          codeHash: createHash('sha256').update(code).digest('hex'),
        });
        const notes = result.notes.map((note) => `note: ${note}`);
        this.#answer(flags, { type: 'submit', name: description.name, ...result }, () => [
          `${description.name} is submitted as ${result.topologyId}`,
          ...notes,
        ]);
      },
      ExitCode.notSubmitted,
    );
  }

  list(flags: ClusterFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const summary = await client.ask('list', null);
      this.#answer(flags, { type: 'list', ...summary }, () => listLines(summary, this.#width()));
    });
  }

  describe(name: string, flags: ClusterFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const detail = await client.ask('describe', name);
      this.#answer(flags, describeJson(detail), () => describeLines(detail, this.#width()));
    });
  }

  activate(name: string, flags: ClusterFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const result = await client.ask('activate', name);
      this.#answer(flags, { type: 'activate', name, ...result }, () => [lifeLine(name, result)]);
    });
  }

  deactivate(name: string, flags: ClusterFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const result = await client.ask('deactivate', name);
      this.#answer(flags, { type: 'deactivate', name, ...result }, () => [lifeLine(name, result)]);
    });
  }

  kill(name: string, flags: KillFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const result = await client.ask('kill', { name, waitMs: readWaitMs(flags.wait) ?? null });
      this.#answer(flags, { type: 'kill', name, ...result }, () => [lifeLine(name, result)]);
    });
  }

  rebalance(name: string, flags: RebalanceFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const asked = readRebalance(flags, randomUUID());
      // From scratch is Storm's rebalance, which waits.
      const waitsByDefault = asked.fromScratch && asked.waitMs === null && !asked.preview;
      const request = waitsByDefault ? { ...asked, waitMs: await messageTimeoutMs(client, name) } : asked;
      const result = await client.ask('rebalance', { name, request });
      const { preview } = request;
      this.#answer(flags, { type: 'rebalance', name, preview, ...result }, () =>
        rebalanceLines(name, result, preview),
      );
    });
  }

  config(name: string | undefined, flags: ClusterFlags): Promise<number> {
    return this.#run(flags, async (client) => {
      const settings = await client.ask('config', name ?? null);
      this.#answer(flags, { type: 'config', name: name ?? null, settings }, () =>
        configLines(settings, this.#width()),
      );
    });
  }

  /** @param refused exit code of what neither the command line nor the daemon's absence explains */
  async #run(
    flags: ClusterFlags,
    command: (client: ClusterClient) => Promise<void>,
    refused: number = ExitCode.failed,
  ): Promise<number> {
    const { environment } = this.#surroundings;
    const client = clusterClient(clusterDirectory(flags.directory, environment, homedir()));
    try {
      await command(client);
      return ExitCode.ok;
    } catch (error) {
      const fault = toIsobarError(error);
      const exitCode = exitCodeOf(fault.code, refused);
      this.#failure(flags, fault, exitCode);
      return exitCode;
    } finally {
      client.close();
    }
  }

  #answer(flags: ClusterFlags, json: object, lines: () => readonly string[]): void {
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
      err.write(`${errorText(record, PLACE, colorsFor(err, environment))}\n`);
    }
  }

  #width(): number {
    const { out } = this.#surroundings;
    return out.isTTY === true ? (out.columns ?? WIDTH_OF_PIPES) : WIDTH_OF_PIPES;
  }
}

function exitCodeOf(code: ErrorCode, refused: number): number {
  if (code === 'USAGE') return ExitCode.usage;
  return NO_DAEMON.has(code) ? ExitCode.clusterLost : refused;
}

/** @throws USAGE, SETTINGS_INVALID */
function settingsOf({ workers, set = [] }: SubmitFlags): RawSettings {
  const settings = new SettingFlags();
  if (workers !== undefined) settings.add('topology.workers', workers, '--workers');
  settings.addPairs(set);
  compileSettings(settings.raw);
  return settings.raw;
}

async function prepare(file: string, flags: SubmitFlags, settings: RawSettings) {
  const path = resolveEntry(file);
  const workDirectory = mkdtempSync(join(tmpdir(), 'isobar-submit-'));
  try {
    const { bundle, description } = await prepareSubmission({
      file: path,
      check: flags.check !== false,
      evaluationTimeoutMs: compileSettings(settings)['submit.evaluation-timeout'],
      workDirectory,
    });
    return { description, code: bundle.code, sourceMap: bundle.sourceMap };
  } finally {
    await stopBundler();
    rmSync(workDirectory, { recursive: true, force: true });
  }
}

async function messageTimeoutMs(client: ClusterClient, name: string): Promise<number> {
  const values = await client.ask('config', name);
  const value = values.find((one) => one.name === 'topology.message-timeout')?.value;
  return typeof value === 'number' ? value : DEFAULT_WAIT_MS;
}

/** As docs/json-output.md says. */
function describeJson({ summary, desired, status }: TopologyDetail): object {
  const { components, workers, totals, errors, lostStates, deadLetterFiles, oldestPending, notes, problems } =
    status;
  return {
    type: 'describe',
    ...summary,
    desired,
    notes,
    problems: problems.map(({ code, message }) => ({ code, message })),
    totals,
    oldestPending,
    components: components.map((one) => {
      const { executeMicros: _execute, completeMicros: _complete, perTask: _tasks, ...rest } = one;
      return { ...rest, latency: { p50Micros: latency(one, 0.5), p99Micros: latency(one, 0.99) } };
    }),
    placements: workers.map(({ threads, lastProblem, ...rest }) => ({
      ...rest,
      threads: threads.length,
      lastProblem: lastProblem === null ? null : { code: lastProblem.code, message: lastProblem.message },
    })),
    errors: errors.map(({ component, task, error: { code, message }, count, firstMs, lastMs }) => {
      return { component, task, code, message, count, firstMs, lastMs };
    }),
    lostStates,
    deadLetterFiles,
  };
}
