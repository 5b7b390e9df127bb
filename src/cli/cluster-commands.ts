/** The commands that submit, list and steer topologies. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClusterClient, TopologyDetail } from '../api/index.js';
import { compileSettings, type RawSettings } from '../base/index.js';
import { prepareSubmission, resolveEntry, stopBundler } from '../engines/index.js';
import { ClusterCaller, type ClusterSurroundings } from './cluster-caller.js';
import type { ClusterActions } from './cluster-program.js';
import {
  type ClusterFlags,
  type ConfigFlags,
  type KillFlags,
  readRebalance,
  readWaitMs,
  type RebalanceFlags,
  type SubmitFlags,
  wantedSettings,
} from './cluster-options.js';
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

const DEFAULT_WAIT_MS = 30_000;

/** The commands; each resolves to its exit code, errors have been shown. */
export class ClusterCommands implements ClusterActions {
  readonly #caller: ClusterCaller;

  constructor(surroundings: ClusterSurroundings) {
    this.#caller = new ClusterCaller(surroundings);
  }

  submit(file: string, flags: SubmitFlags): Promise<number> {
    return this.#caller.run(
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
        this.#caller.answer(flags, { type: 'submit', name: description.name, ...result }, () => [
          `${description.name} is submitted as ${result.topologyId}`,
          ...notes,
        ]);
      },
      { refused: ExitCode.notSubmitted },
    );
  }

  list(flags: ClusterFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const summary = await client.ask('list', null);
      this.#caller.answer(flags, { type: 'list', ...summary }, () => listLines(summary, this.#caller.width));
    });
  }

  describe(name: string, flags: ClusterFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const detail = await client.ask('describe', name);
      this.#caller.answer(flags, describeJson(detail), () => describeLines(detail, this.#caller.width));
    });
  }

  activate(name: string, flags: ClusterFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const result = await client.ask('activate', name);
      this.#caller.answer(flags, { type: 'activate', name, ...result }, () => [lifeLine(name, result)]);
    });
  }

  deactivate(name: string, flags: ClusterFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const result = await client.ask('deactivate', name);
      this.#caller.answer(flags, { type: 'deactivate', name, ...result }, () => [lifeLine(name, result)]);
    });
  }

  kill(name: string, flags: KillFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const result = await client.ask('kill', { name, waitMs: readWaitMs(flags.wait) ?? null });
      this.#caller.answer(flags, { type: 'kill', name, ...result }, () => [lifeLine(name, result)]);
    });
  }

  rebalance(name: string, flags: RebalanceFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const asked = readRebalance(flags, randomUUID());
      // From scratch is Storm's rebalance, which waits.
      const waitsByDefault = asked.fromScratch && asked.waitMs === null && !asked.preview;
      const request = waitsByDefault ? { ...asked, waitMs: await messageTimeoutMs(client, name) } : asked;
      const result = await client.ask('rebalance', { name, request });
      const { preview } = request;
      this.#caller.answer(flags, { type: 'rebalance', name, preview, ...result }, () =>
        rebalanceLines(name, result, preview),
      );
    });
  }

  config(name: string | undefined, flags: ConfigFlags): Promise<number> {
    return this.#caller.run(flags, async (client) => {
      const all = await client.ask('config', name ?? null);
      const settings = wantedSettings(all, flags);
      this.#caller.answer(flags, { type: 'config', name: name ?? null, settings }, () =>
        settings.length === 0
          ? [`none of ${all.length} settings is so`]
          : configLines(settings, this.#caller.width),
      );
    });
  }
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
function describeJson({ summary, desired, status, events }: TopologyDetail): object {
  const {
    components,
    workers,
    totals,
    errors,
    lostStates,
    deadLetterFiles,
    oldestPending,
    notes,
    problems,
    lastMove,
  } = status;
  return {
    type: 'describe',
    ...summary,
    desired,
    notes,
    problems: problems.map(({ code, message }) => ({ code, message })),
    totals,
    oldestPending,
    lastMove,
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
    events,
  };
}
