/**
 * Finds the workers that an earlier supervisor of this machine left running: by its launch records, and by the launch
 * files in the command lines of processes. Of several for one slot the newest is kept; the others are ended, and
 * verified gone, before anything is started.
 */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  compileSettings,
  type Clock,
  type Logger,
  type RawSettings,
  type Settings,
  isSameProcessAlive,
  type ProcessIdentity,
  readJsonFile,
  removeUnfinished,
} from '../base/index.js';
import type { WorkerLaunch } from '../coordination/index.js';
import { isLaunchFileBelow } from './leftovers.js';
import type { LaunchRecord, LaunchRecords } from './launch-records.js';
import type { SlotWorker, WorkerTuning } from './slot-plan.js';
import { findWorkerProcesses, killWorkerGroup } from './worker-processes.js';

const POLL_MS = 10;

export interface FoundWorker {
  readonly worker: SlotWorker;
  readonly port: number;
  readonly outputPath: string;
}

/** Where a worker's output goes. */
export function outputPathOf(launchFile: string): string {
  return join(dirname(launchFile), 'output.log');
}

export function tuningOf(settings: Settings): WorkerTuning {
  return {
    // A topology that is slow to start may ask for more time than its supervisor gives by itself, not for less.
    launchTimeoutMs: Math.max(
      settings['supervisor.worker-start-timeout'],
      settings['topology.worker-launch-timeout'],
    ),
    timeoutMs: settings['topology.worker-timeout'],
    backoffMs: settings['worker.restart-backoff'],
    backoffMaxMs: settings['worker.restart-backoff-max'],
  };
}

/** Finds, picks and clears up. Resolves to at most one worker a port, all alive. */
export async function recoverWorkers(options: {
  records: LaunchRecords;
  workersDirectory: string;
  ports: readonly number[];
  clock: Clock;
  logger: Logger;
  /** Of each worker that has ended meanwhile. */
  onGone: (record: LaunchRecord) => void;
}): Promise<readonly FoundWorker[]> {
  const { records, workersDirectory, clock, logger, onGone } = options;
  records.tidy();
  const strays: ProcessIdentity[] = [];
  const found = new Map<number, FoundWorker>();
  for (const record of records.readAll()) {
    if (record.process === null) continue;
    if (isSameProcessAlive(record.process)) found.set(record.process.pid, ofRecord(record, record.process));
    // What it left of its process group goes as well.
    else killWorkerGroup(record.process);
  }
  for (const { launchFile, identity } of findWorkerProcesses(isLaunchFileBelow(workersDirectory))) {
    if (found.has(identity.pid)) continue;
    const worker = ofLaunchFile(launchFile, identity);
    if (worker === undefined) strays.push(identity);
    else found.set(identity.pid, worker);
  }
  const kept = new Map<number, FoundWorker>();
  for (const worker of [...found.values()].sort(byAge)) {
    if (kept.has(worker.port) || !options.ports.includes(worker.port)) strays.push(worker.worker.process);
    else kept.set(worker.port, worker);
  }
  for (const stray of strays) logger.warn('worker.stray', { pid: stray.pid });
  await endAll(strays, clock);
  for (const record of records.readAll()) {
    if (kept.get(record.port)?.worker.workerId !== record.workerId) {
      onGone(record);
      // It names the topology's secret; and nobody else would remove it.
      rmSync(record.launchFile, { force: true });
      removeUnfinished(dirname(record.launchFile));
    }
    if (!kept.has(record.port)) records.remove(record.port);
  }
  return [...kept.values()];
}

/** Newest first: the generation tells within a topology, the start time between topologies. */
function byAge(a: FoundWorker, b: FoundWorker): number {
  if (a.worker.topologyId === b.worker.topologyId) return b.worker.generation - a.worker.generation;
  return Number(b.worker.process.startTime) - Number(a.worker.process.startTime);
}

async function endAll(strays: readonly ProcessIdentity[], clock: Clock): Promise<void> {
  for (const stray of strays) killWorkerGroup(stray);
  while (strays.some((stray) => isSameProcessAlive(stray))) {
    await new Promise<void>((resolve) => clock.after(POLL_MS, resolve));
  }
}

function ofRecord(record: LaunchRecord, process: ProcessIdentity): FoundWorker {
  const { workerId, topologyId, generation, tuning, port, launchFile } = record;
  return {
    port,
    outputPath: outputPathOf(launchFile),
    worker: { workerId, topologyId, generation, process, tuning },
  };
}

function ofLaunchFile(launchFile: string, process: ProcessIdentity): FoundWorker | undefined {
  const launch = readJsonFile(launchFile);
  if (typeof launch !== 'object' || launch === null) return undefined;
  // Written by a supervisor of this directory; what it lacks shows below.
  const { workerId, topologyId, generation, port, settings } = launch as Partial<WorkerLaunch>;
  if (workerId === undefined || topologyId === undefined || generation === undefined || port === undefined) {
    return undefined;
  }
  const tuning = tuningOfLayers(settings ?? []);
  return {
    port,
    outputPath: outputPathOf(launchFile),
    worker: { workerId, topologyId, generation, process, tuning },
  };
}

function tuningOfLayers(layers: readonly RawSettings[]): WorkerTuning {
  try {
    return tuningOf(compileSettings(...layers));
  } catch {
    // Written by a version with other settings: the worker runs all the same.
    return tuningOf(compileSettings());
  }
}
