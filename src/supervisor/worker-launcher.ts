/**
 * Everything between "this slot shall have a worker" and a running process: code on disk, a new generation, the launch
 * file, the launch record (before the spawn, and again after it), the spawn. Also what is left of workers: their records,
 * launch files and directories.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type Clock,
  canonicalSettingName,
  compileSettings,
  DEFAULT_SETTINGS,
  IsobarError,
  type Logger,
  type RawSettings,
  type Settings,
  toIsobarError,
  type ProcessIdentity,
  writeDurableFile,
} from '../base/index.js';
import { type Coordination, isCoordinatorAway, type WorkerLaunch } from '../coordination/index.js';
import { declaredHeapMb } from '../scheduling/index.js';
import type { AssignedTopology, AssignmentView } from './assignment-view.js';
import { CodeDirectory } from './code-directory.js';
import type { LaunchRecords } from './launch-records.js';
import type { Blobs, LocalisedCode } from './localiser.js';
import { outputPathOf, tuningOf } from './recovery.js';
import type { LaunchedWorker, PreparedLaunch } from './slot.js';
import type { SlotWorker, WorkerTuning } from './slot-plan.js';
import { rotateFile, spawnWorker } from './worker-processes.js';

const RETRY_MS = 200;
/** Directories of workers that are kept for their logs. */
const KEPT_DIRECTORIES = 32;

export interface WorkerLauncherOptions {
  readonly supervisorId: string;
  /** Where workers have their directories. */
  readonly workersDirectory: string;
  readonly codeDirectory: string;
  readonly socketPath: string;
  readonly coordinatorAddress: string;
  readonly workerEntry: string;
  /** What the workers of this supervisor share. */
  readonly cores: number;
  readonly settings: Settings;
  readonly keeper: ProcessIdentity | null;
  readonly socketDirectory: string;
  readonly deadLetterDirectory: string;
  readonly blobs: Blobs;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly records: LaunchRecords;
  readonly view: AssignmentView;
  /** The workers that hold slots now. */
  workers(): readonly { readonly worker: SlotWorker; readonly port: number }[];
}

export class WorkerLauncher {
  readonly #options: WorkerLauncherOptions;
  readonly #code: CodeDirectory;

  constructor(options: WorkerLauncherOptions) {
    this.#options = options;
    this.#code = new CodeDirectory({ ...options, directory: options.codeDirectory });
  }

  /** Tuning of a topology that has a slot here. */
  tuningOf(topologyId: string): WorkerTuning {
    const assigned = this.#options.view.topology(topologyId);
    return tuningOf(assigned === undefined ? this.#options.settings : this.settingsOf(assigned));
  }

  /**
   * Localises a topology's code and raises its generation; waits for the coordinator until `signal` is aborted.
   *
   * @throws TOPOLOGY_CODE_LOST, STATE_DIRECTORY_UNUSABLE, TOPOLOGY_NOT_ALIVE
   */
  async prepare(topologyId: string, port: number, signal: AbortSignal): Promise<PreparedLaunch> {
    const assigned = this.#options.view.topology(topologyId);
    if (assigned === undefined) {
      throw new IsobarError('TOPOLOGY_NOT_ALIVE', `topology ${topologyId} is not known any more`);
    }
    const { record } = assigned;
    const code = await this.#code.localise(port, record);
    // Raised before the launch: whatever the new worker does is newer than all that its predecessors still do.
    const generation = await this.#nextGeneration(topologyId, signal);
    return { generation, launch: () => this.#launch(assigned, code, port, generation) };
  }

  /** Writes the record of a running worker. */
  record({ workerId, topologyId, generation, process, tuning }: SlotWorker, port: number): void {
    const { records, logger } = this.#options;
    const launchFile = this.#launchFile(topologyId, port, workerId);
    try {
      records.write({ workerId, port, topologyId, generation, launchFile, tuning, process });
    } catch (error) {
      // It is found by its launch file or by its hello all the same.
      logger.error('worker.not-recorded', { port, message: String(error) });
    }
  }

  /** Removes record and launch file of a worker that is gone; its logs stay. */
  forget({ workerId, topologyId }: SlotWorker, port: number): void {
    // The record last: by it a successor finds what is left to remove.
    rmSync(this.#launchFile(topologyId, port, workerId), { force: true });
    this.#options.records.remove(port);
    this.pruneCode(workerId);
  }

  /** Removes code that no worker uses, nor is about to; without the one that has just gone. */
  pruneCode(goneWorkerId?: string): void {
    const others = this.#options.workers().filter(({ worker }) => worker.workerId !== goneWorkerId);
    this.#code.prune(others.map(({ worker, port }) => this.launchFileOf(worker, port)));
  }

  launchFileOf({ workerId, topologyId }: SlotWorker, port: number): string {
    return this.#launchFile(topologyId, port, workerId);
  }

  /** In force for a topology: the cluster's, and its own over them. */
  settingsOf({ record }: AssignedTopology): Settings {
    return compileSettings(this.#options.settings, record.settings);
  }

  async #nextGeneration(topologyId: string, signal: AbortSignal): Promise<number> {
    const { coordination, clock } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      try {
        return await coordination.nextGeneration(topologyId);
      } catch (error) {
        if (!isCoordinatorAway(error)) throw error;
        await new Promise<void>((done) => clock.after(RETRY_MS, done));
      }
    }
  }

  async #launch(
    assigned: AssignedTopology,
    code: LocalisedCode,
    port: number,
    generation: number,
  ): Promise<LaunchedWorker> {
    const { records, workerEntry } = this.#options;
    const topologyId = assigned.record.id;
    const settings = this.settingsOf(assigned);
    const tuning = tuningOf(settings);
    // A generation is never given out twice in a topology, and ids of topologies are unique.
    const workerId = `${topologyId}-g${generation}`;
    const launchFile = this.#launchFile(topologyId, port, workerId);
    const outputPath = outputPathOf(launchFile);
    const directory = dirname(launchFile);
    try {
      this.#clearDirectory(directory);
      rotateFile(outputPath);
      const launch = this.#launchOf(assigned, settings, code, { port, generation, workerId, directory });
      writeDurableFile(launchFile, JSON.stringify(launch));
      records.write({ workerId, port, topologyId, generation, launchFile, tuning, process: null });
    } catch (error) {
      throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: directory });
    }
    const { identity, exited } = await spawnWorker({ workerEntry, launchFile, outputPath });
    const worker: SlotWorker = { workerId, topologyId, generation, process: identity, tuning };
    this.record(worker, port);
    return { worker, outputPath, exited };
  }

  #launchOf(
    { record, assignment }: AssignedTopology,
    settings: Settings,
    code: LocalisedCode,
    own: Pick<WorkerLaunch, 'port' | 'generation' | 'workerId' | 'directory'>,
  ): WorkerLaunch {
    const { view, ...options } = this.#options;
    return {
      ...own,
      ...code,
      topologyId: record.id,
      topologyName: record.name,
      supervisorId: options.supervisorId,
      settings: [options.settings, record.settings],
      secret: record.secret,
      supervisorSocket: options.socketPath,
      socketDirectory: options.socketDirectory,
      deadLetterDirectory: settings['dead-letters.directory'] ?? options.deadLetterDirectory,
      coordinatorAddress: options.coordinatorAddress,
      threadShare: Math.max(1, Math.floor(options.cores / Math.max(1, view.wantedWorkers))),
      executorHeapMb:
        settings['scheduling.strategy'] === 'resource-aware'
          ? declaredHeapMb(
              assignment.tasks,
              settings,
              isHeapDeclared(options.settings, record.settings),
              record.desired?.resources,
            )
          : {},
      keeper: options.keeper,
    };
  }

  #launchFile(topologyId: string, port: number, workerId: string): string {
    return join(this.#options.workersDirectory, `${topologyId}-${port}`, `launch-${workerId}.json`);
  }

  /** Launch files of former workers go; so do the oldest directories that no slot uses. */
  #clearDirectory(directory: string): void {
    const { workersDirectory } = this.#options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(directory)) {
      if (/^\.?launch-/u.test(name)) rmSync(join(directory, name), { force: true });
    }
    const used = new Set([directory]);
    for (const { worker, port } of this.#options.workers()) {
      used.add(dirname(this.#launchFile(worker.topologyId, port, worker.workerId)));
    }
    const unused = readdirSync(workersDirectory)
      .map((name) => join(workersDirectory, name))
      .filter((path) => !used.has(path) && existsSync(path))
      .map((path) => ({ path, changedMs: statSync(path).mtimeMs }))
      .sort((a, b) => b.changedMs - a.changedMs);
    for (const { path } of unused.slice(KEPT_DIRECTORIES)) rmSync(path, { recursive: true, force: true });
  }
}

const HEAP_SETTING = 'topology.component-heap';

/** Somebody has said what heap an executor asks for: the operator for all topologies, or the topology. */
function isHeapDeclared(cluster: Settings, topology: RawSettings): boolean {
  return (
    cluster[HEAP_SETTING] !== DEFAULT_SETTINGS[HEAP_SETTING] ||
    Object.keys(topology).some((key) => canonicalSettingName(key) === HEAP_SETTING)
  );
}
