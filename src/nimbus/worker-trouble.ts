/**
 * What is wrong with a worker whose process runs: nothing is heard of it, one of its threads does not come back from a call, or
 * its threads end again and again before it is ready. The slot of such a worker looks as any other. Pure.
 */
import type { ErrorRecord, Settings } from '../base/index.js';
import { quietIntervalMs, type WorkerHeartbeat } from '../coordination/index.js';
import type { Report } from './cluster-view.js';

/** So many times the longest pause between two heartbeats, both on the way to its supervisor and from there. */
const SILENT_INTERVALS = 4;

interface Trouble extends Pick<ErrorRecord, 'code' | 'message'> {
  /** Since when it is so, or when it was seen last, ms since the epoch. */
  readonly atMs: number;
}

/** Of several workers the worst trouble: silence, then a stuck thread, then threads that do not stay. */
export function workerTrouble(
  reports: readonly Report[],
  settings: Settings,
  wallMs: number,
): Trouble | null {
  const running = reports.filter(({ slot }) => slot.state === 'running');
  const kinds = [silence, stuckThread, endingThreads] as const;
  for (const troubleOf of kinds) {
    for (const report of running) {
      const trouble = troubleOf(report, settings, wallMs);
      if (trouble !== null) return trouble;
    }
  }
  return null;
}

function silence(report: Report, settings: Settings, wallMs: number): Trouble | null {
  const { heartbeatMs, pid } = report.slot;
  const silentMs = heartbeatMs === null ? 0 : wallMs - heartbeatMs;
  if (silentMs < SILENT_INTERVALS * quietIntervalMs(settings)) return null;
  const limit = seconds(settings['topology.worker-timeout']);
  const message = `nothing has been heard of worker ${nameOf(report)} (pid ${pid ?? 'not known'}) for ${seconds(silentMs)}; it counts as dead after ${limit}`;
  return { code: 'WORKER_SILENT', message, atMs: wallMs - silentMs };
}

function stuckThread(report: Report, _settings: Settings, wallMs: number): Trouble | null {
  const calls = (heartbeatOf(report)?.threads ?? []).flatMap(({ index, longCalls }) =>
    longCalls.filter(({ isBlocking }) => isBlocking).map((call) => ({ index, ...call })),
  );
  const [longest] = calls.sort((a, b) => b.forMs - a.forMs);
  if (longest === undefined) return null;
  const { index, component, task, call, forMs } = longest;
  const who = component === '' ? `thread ${index}` : `${component}[${task}]`;
  const message = `${who} on ${nameOf(report)} has been in ${call} for ${seconds(forMs)}; its thread does nothing else`;
  return { code: 'THREAD_STUCK', message, atMs: (report.slot.heartbeatMs ?? wallMs) - forMs };
}

function endingThreads(report: Report): Trouble | null {
  const heartbeat = heartbeatOf(report);
  if (heartbeat === null || heartbeat.ready) return null;
  const restarts = heartbeat.threads.reduce((sum, one) => sum + one.restarts, 0);
  const last = heartbeat.errors.reduce<WorkerHeartbeat['errors'][number] | undefined>(
    (newest, one) => (newest === undefined || one.lastMs >= newest.lastMs ? one : newest),
    undefined,
  );
  if (restarts === 0 || last === undefined) return null;
  const message = `worker ${nameOf(report)} does not get ready, its threads have ended and were started again ${restarts} ×: ${last.error.message}`;
  return { code: last.error.code, message, atMs: last.lastMs };
}

/** Of the worker that is there now, not of the one before it. */
export function heartbeatOf({ slot: { heartbeat, workerId } }: Report): WorkerHeartbeat | null {
  return heartbeat?.workerId === workerId ? heartbeat : null;
}

function nameOf({ supervisorId, slot }: Report): string {
  return `${supervisorId}:${slot.port}`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
