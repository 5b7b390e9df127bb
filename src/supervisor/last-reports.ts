/**
 * The last reports of workers that have ended, kept until Nimbus says that it keeps what they counted.
 *
 * L1 A report is on disk before its worker's slot is free: a supervisor that dies loses none.
 * L2 A report goes only when it was acknowledged by the id of its worker; ids are never given out twice.
 *
 * Only sums are kept, one pseudo task a component, so that they stay small however many tasks a worker had.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJsonFile, removeUnfinished, writeDurableFile, type Logger } from '../base/index.js';
import {
  isWorkerHeartbeat,
  LAST_REPORT_FILE,
  type TaskReport,
  type WorkerHeartbeat,
} from '../coordination/index.js';

/** Beyond this many the oldest goes: nobody has asked for them for very long. */
const MAX_REPORTS = 4096;

export class LastReports {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #reports = new Map<string, WorkerHeartbeat>();

  constructor(directory: string, logger: Logger) {
    this.#directory = directory;
    this.#logger = logger;
  }

  /** Reads what an earlier supervisor of this directory has kept. */
  open(): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    // One of these may hold a whole report: it would be said anew after every restart, as nothing acknowledges it.
    removeUnfinished(this.#directory);
    const found = readdirSync(this.#directory)
      .map((name) => readJsonFile(join(this.#directory, name)))
      .filter((value) => isWorkerHeartbeat(value))
      .sort((a, b) => a.startedMs - b.startedMs);
    for (const report of found) this.#reports.set(report.workerId, report);
  }

  /** Oldest first. The same list until something changes. */
  get all(): readonly WorkerHeartbeat[] {
    this.#list ??= [...this.#reports.values()];
    return this.#list;
  }

  #list: readonly WorkerHeartbeat[] | undefined;

  /**
   * Keeps the last report of a worker that is gone: what it was last heard to say, or what it wrote beside its launch file
   * when it ended, whichever is newer.
   */
  keep(workerId: string, launchFile: string, heard: WorkerHeartbeat | null): void {
    const writtenPath = join(dirname(launchFile), LAST_REPORT_FILE);
    const written = readJsonFile(writtenPath);
    const candidates = [
      heard,
      isWorkerHeartbeat(written) ? written : null,
      this.#reports.get(workerId) ?? null,
    ]
      .filter((report) => report !== null)
      .filter((report) => report.workerId === workerId)
      .sort((a, b) => b.sequence - a.sequence);
    const [newest] = candidates;
    if (newest !== undefined) this.#store(summed(newest));
    rmSync(writtenPath, { force: true });
  }

  /** Returns whether there was any of them. */
  forget(workerIds: readonly string[]): boolean {
    const known = workerIds.filter((workerId) => this.#reports.has(workerId));
    for (const workerId of known) this.#remove(workerId);
    return known.length > 0;
  }

  #store(report: WorkerHeartbeat): void {
    this.#reports.set(report.workerId, report);
    this.#list = undefined;
    const [oldest] = this.#reports.keys();
    if (this.#reports.size > MAX_REPORTS && oldest !== undefined) {
      this.#logger.error('last-report.dropped', { worker: oldest });
      this.#remove(oldest);
    }
    try {
      writeDurableFile(this.#path(report.workerId), JSON.stringify(report));
    } catch (error) {
      // It is published all the same, and lost only if this process ends before it has been read.
      this.#logger.warn('last-report.not-written', { worker: report.workerId, message: String(error) });
    }
  }

  #remove(workerId: string): void {
    this.#reports.delete(workerId);
    this.#list = undefined;
    rmSync(this.#path(workerId), { force: true });
  }

  /** Ids of workers may be longer than names of files. */
  #path(workerId: string): string {
    return join(this.#directory, `${createHash('sha256').update(workerId).digest('hex')}.json`);
  }
}

/** The report without what means nothing once its worker is gone, and with one sum for all tasks of a component. */
export function summed(report: WorkerHeartbeat): WorkerHeartbeat {
  const sums = new Map<string, TaskReport>();
  for (const task of report.tasks) {
    const before = sums.get(task.component);
    sums.set(task.component, {
      task: 0,
      component: task.component,
      emitted: task.emitted + (before?.emitted ?? 0),
      transferred: task.transferred + (before?.transferred ?? 0),
      executed: task.executed + (before?.executed ?? 0),
      acked: task.acked + (before?.acked ?? 0),
      failed: task.failed + (before?.failed ?? 0),
      replayed: task.replayed + (before?.replayed ?? 0),
      deadLetters: task.deadLetters + (before?.deadLetters ?? 0),
      unreplayable: task.unreplayable + (before?.unreplayable ?? 0),
      queued: 0,
      pending: 0,
      ended: false,
      stopped: false,
      generation: report.generation,
    });
  }
  return { ...report, ready: false, threads: [], tasks: [...sums.values()], oldestPending: null };
}
