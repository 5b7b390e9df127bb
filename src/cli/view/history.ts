/**
 * The statuses of the last seconds, kept so that rates and latencies can be told of a window. Pure.
 *
 * Totals move when workers report, about once a second, while a status can be asked for at any time; so a sample counts
 * when reports are newer, and its time is the mean time of the reports, not that of the question.
 */
import type { ClusterStatus, TopologyStatus } from '../../api/index.js';

export interface Sample {
  /** Mean time of the workers' reports, ms since the epoch. */
  readonly reportedMs: number;
  readonly status: TopologyStatus;
}

/** Oldest first; the newest is the one to show. */
export interface History {
  readonly samples: readonly Sample[];
  /** When the newest status was put together, ms since the epoch. */
  readonly atMs: number;
}

export const EMPTY_HISTORY: History = { samples: [], atMs: 0 };

const WINDOW_MS = 3500;
const NEWER_MS = 300;

/** Takes in a status of the topology; a cluster that does not name it changes nothing. */
export function addStatus(history: History, cluster: ClusterStatus, topologyId: string): History {
  const status = cluster.topologies.find(({ id }) => id === topologyId);
  if (status === undefined) return history;
  const sample: Sample = { reportedMs: reportTime(status, cluster.atMs), status };
  const last = history.samples.at(-1);
  const isNews = last === undefined || Math.abs(sample.reportedMs - last.reportedMs) >= NEWER_MS;
  const kept = isNews ? history.samples : history.samples.slice(0, -1);
  // The time of the first of two that tell the same: the second one only repeats it.
  const shown = isNews ? sample : { ...sample, reportedMs: last.reportedMs };
  const samples = [...kept, shown].filter(
    ({ reportedMs }) => sample.reportedMs - reportedMs <= WINDOW_MS && sample.reportedMs >= reportedMs,
  );
  return { samples, atMs: cluster.atMs };
}

export interface Window {
  readonly from: Sample;
  readonly to: Sample;
  readonly seconds: number;
}

/** Newest and oldest sample of the window; undefined as long as there is just one. */
export function windowOf(history: History): Window | undefined {
  const from = history.samples[0];
  const to = history.samples.at(-1);
  if (from === undefined || to === undefined || to.reportedMs <= from.reportedMs) return undefined;
  return { from, to, seconds: (to.reportedMs - from.reportedMs) / 1000 };
}

function reportTime({ workers }: TopologyStatus, atMs: number): number {
  const ages = workers.flatMap(({ heartbeatAgeMs }) => (heartbeatAgeMs === null ? [] : [heartbeatAgeMs]));
  return ages.length === 0 ? atMs : atMs - ages.reduce((sum, age) => sum + age, 0) / ages.length;
}
