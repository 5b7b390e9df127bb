/** What the cluster's status says, as samples; rates need an earlier look. Pure. */
import { bucketMicros, type SketchPairs } from '../../base/index.js';
import type {
  ClusterStatus,
  ComponentStatus,
  NimbusCounts,
  TopologyStatus,
  WorkerStatus,
} from '../../nimbus/index.js';
import { statusOf } from '../../nimbus/index.js';
import type { Sample } from './exposition.js';
import type { MetricName } from './metrics-table.js';

/** One look at everything that metrics tell. */
export interface MetricsLook {
  /** Milliseconds that never jump. */
  readonly nowMs: number;
  readonly process: {
    readonly cpuMicros: number;
    readonly residentBytes: number;
    readonly activeMs: number;
  };
  /** null: this Nimbus does not lead. */
  readonly cluster: { readonly status: ClusterStatus; readonly counts: NimbusCounts } | null;
}

const QUANTILES = [0.5, 0.99, 0.999];

type Labels = Readonly<Record<string, string>>;
type Put = (metric: MetricName, labels: Labels, value: Sample['value']) => void;

/** @param before an earlier look, for rates */
export function collectMetrics(now: MetricsLook, before: MetricsLook | undefined): readonly Sample[] {
  const samples: Sample[] = [];
  const put: Put = (metric, labels, value) => void samples.push({ metric, labels, value });
  const { cpuMicros, residentBytes, activeMs } = now.process;
  put('isobar_nimbus_leader', {}, now.cluster === null ? 0 : 1);
  put('isobar_process_cpu_seconds_total', {}, cpuMicros / 1e6);
  put('isobar_process_resident_bytes', {}, residentBytes);
  put('isobar_process_event_loop_active_seconds_total', {}, activeMs / 1000);
  if (now.cluster === null) return samples;
  const { status, counts } = now.cluster;
  putCluster(put, status, counts);
  const former = new Map(before?.cluster?.status.topologies.map((topology) => [topology.id, topology]));
  const elapsedMs = before === undefined ? 0 : now.nowMs - before.nowMs;
  // Of several of one name at most one is alive; of those that have ended the last one counts.
  const byName = new Map(status.topologies.map((topology) => [topology.name, topology]));
  for (const topology of status.topologies) {
    const isShown = topology.isSettled ? byName.get(topology.name) === topology : true;
    if (isShown) putTopology(put, topology, former.get(topology.id), elapsedMs);
  }
  return samples;
}

function putCluster(
  put: Put,
  { supervisors, coordinatorProblem }: ClusterStatus,
  counts: NimbusCounts,
): void {
  put('isobar_coordinator_answers', {}, coordinatorProblem === null ? 1 : 0);
  const present = supervisors.filter(({ isPresent }) => isPresent);
  const slots = present.flatMap((supervisor) => supervisor.slots);
  const used = slots.filter(({ topologyId }) => topologyId !== null).length;
  put('isobar_supervisors', {}, present.length);
  put('isobar_slots', { state: 'used' }, used);
  put('isobar_slots', { state: 'free' }, slots.length - used);
  put('isobar_scheduling_rounds_total', {}, counts.rounds);
  put('isobar_scheduling_round_seconds_total', {}, counts.roundMs / 1000);
  put('isobar_assignments_total', {}, counts.assignments);
  put('isobar_moved_tasks_total', {}, counts.movedTasks);
  put('isobar_placed_workers_total', {}, counts.startedWorkers);
}

function putTopology(
  put: Put,
  topology: TopologyStatus,
  before: TopologyStatus | undefined,
  elapsedMs: number,
): void {
  const labels = { topology: topology.name };
  put('isobar_topology_status', { ...labels, status: statusOf(topology.phase) }, 1);
  if (topology.isSettled) return;
  const { workers, components, errors } = topology;
  put('isobar_topology_ready', labels, topology.isReady ? 1 : 0);
  put('isobar_topology_workers', { ...labels, state: 'desired' }, topology.workersAsked);
  put('isobar_topology_workers', { ...labels, state: 'actual' }, workers.filter((one) => one.isReady).length);
  put('isobar_topology_executors', { ...labels, state: 'desired' }, topology.executors);
  put('isobar_topology_executors', { ...labels, state: 'unplaced' }, topology.unplacedExecutors);
  for (const [code, count] of countsBy(topology.problems, ({ code: one }) => one))
    put('isobar_topology_problems', { ...labels, code }, count);
  put('isobar_topology_lost_states_total', labels, topology.lostStates.length);
  put('isobar_topology_oldest_pending_seconds', labels, (topology.oldestPending?.ageMs ?? 0) / 1000);
  const former = new Map(before?.components.map((component) => [component.component, component]));
  for (const component of components)
    putComponent(put, labels, component, former.get(component.component), elapsedMs);
  const byCode = countsBy(
    errors,
    ({ component, error }) => `${component}\n${error.code}`,
    ({ count }) => count,
  );
  for (const [key, count] of byCode) {
    const [component = '', code = ''] = key.split('\n');
    put('isobar_component_errors_total', { ...labels, component, code }, count);
  }
  for (const worker of workers) putWorker(put, labels, worker);
}

function putComponent(
  put: Put,
  topology: Labels,
  component: ComponentStatus,
  before: ComponentStatus | undefined,
  elapsedMs: number,
): void {
  const labels = { ...topology, component: component.component };
  const { kind, executors, executed, queued, perTask } = component;
  put('isobar_component_executors', labels, executors);
  put('isobar_component_tasks', labels, component.tasks);
  put('isobar_component_emitted_rows_total', labels, component.emitted);
  put('isobar_component_transferred_rows_total', labels, component.transferred);
  if (kind === 'bolt') put('isobar_component_executed_rows_total', labels, executed);
  put('isobar_component_acked_rows_total', labels, component.acked);
  for (const [reason, count] of Object.entries(component.failures))
    put('isobar_component_failed_rows_total', { ...labels, reason }, count);
  for (const [reason, count] of Object.entries(component.replays))
    put('isobar_component_replayed_rows_total', { ...labels, reason }, count);
  put('isobar_component_dead_letters_total', labels, component.deadLetters);
  put('isobar_component_unreplayable_rows_total', labels, component.unreplayable);
  for (const [name, count] of Object.entries(component.counters))
    put('isobar_component_user_total', { ...labels, name }, count);
  const sketch = kind === 'bolt' ? component.executeMicros : component.completeMicros;
  put(
    kind === 'bolt' ? 'isobar_component_execute_seconds' : 'isobar_component_complete_seconds',
    labels,
    sketch,
  );
  const quantiles = quantilesOf(sketch);
  QUANTILES.forEach((quantile, place) => {
    const micros = quantiles[place];
    if (micros === undefined) return;
    put('isobar_component_latency_seconds', { ...labels, quantile: String(quantile) }, micros / 1e6);
  });
  put('isobar_component_busy_seconds_total', labels, component.busyMs / 1000);
  put('isobar_component_blocked_seconds_total', labels, component.blockedMs / 1000);
  put('isobar_component_queued_rows', labels, queued);
  put('isobar_component_pending_rows', labels, component.pending);
  const lag = lagOf(component);
  if (lag !== null) put('isobar_component_source_lag_rows', labels, lag);
  putRates(put, labels, component, before, elapsedMs);
  for (const task of perTask) {
    const own = { ...labels, task: String(task.task) };
    if (kind === 'bolt') put('isobar_task_executed_rows_total', own, task.executed);
    put('isobar_task_emitted_rows_total', own, task.emitted);
    put('isobar_task_queued_rows', own, task.queued);
  }
}

function putRates(
  put: Put,
  labels: Labels,
  now: ComponentStatus,
  before: ComponentStatus | undefined,
  elapsedMs: number,
): void {
  if (before === undefined || elapsedMs <= 0) return;
  if (now.executors > 0)
    put(
      'isobar_component_capacity',
      labels,
      Math.max(0, now.busyMs - before.busyMs) / elapsedMs / now.executors,
    );
  const executedPerSecond = Math.max(0, now.executed - before.executed) / (elapsedMs / 1000);
  if (now.kind === 'bolt' && (executedPerSecond > 0 || now.queued === 0))
    put('isobar_component_queue_wait_seconds', labels, now.queued === 0 ? 0 : now.queued / executedPerSecond);
  const [lag, formerLag] = [lagOf(now), lagOf(before)];
  if (lag !== null && formerLag !== null)
    put('isobar_component_source_lag_change', labels, (lag - formerLag) / (elapsedMs / 1000));
}

function putWorker(put: Put, topology: Labels, worker: WorkerStatus): void {
  const labels = { ...topology, worker: `${worker.supervisorId}:${worker.port}` };
  put('isobar_worker_ready', labels, worker.isReady ? 1 : 0);
  put('isobar_worker_cpu_seconds_total', labels, worker.cpuMicros / 1e6);
  put('isobar_worker_resident_bytes', labels, worker.rssBytes);
  put('isobar_worker_restarts_total', labels, worker.restarts);
  if (worker.heartbeatAgeMs !== null)
    put('isobar_worker_heartbeat_age_seconds', labels, worker.heartbeatAgeMs / 1000);
  put('isobar_worker_dropped_log_records_total', labels, worker.droppedLogRecords);
  for (const thread of worker.threads) {
    const own = { ...labels, thread: String(thread.index) };
    put('isobar_thread_event_loop_lag_seconds', own, thread.lagMs / 1000);
    put('isobar_thread_call_seconds', own, thread.inCallMs / 1000);
    put('isobar_thread_restarts_total', own, thread.restarts);
    if (thread.activeMs !== undefined) put('isobar_thread_active_seconds_total', own, thread.activeMs / 1000);
    if (thread.collections !== undefined) put('isobar_thread_collections_total', own, thread.collections);
    if (thread.collectionMs !== undefined)
      put('isobar_thread_collection_seconds_total', own, thread.collectionMs / 1000);
  }
}

/** Rows that its sources have yet to give; null: none of them says. */
export function lagOf({ perTask }: ComponentStatus): number | null {
  const lags = perTask.flatMap(({ lag }) => (lag === undefined ? [] : [lag]));
  return lags.length === 0 ? null : lags.reduce((sum, lag) => sum + lag, 0);
}

/** As `sketchQuantile` gives them, in one pass over a sketch that is merged already; empty: nothing was counted. */
function quantilesOf(sketch: SketchPairs): readonly number[] {
  const total = sketch.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return [];
  const found: number[] = [];
  let seen = 0;
  for (const [bucket, count] of sketch) {
    seen += count;
    while (
      found.length < QUANTILES.length &&
      seen >= Math.max(1, Math.ceil(QUANTILES[found.length]! * total))
    )
      found.push(bucketMicros(bucket));
  }
  return found;
}

function countsBy<T>(
  all: readonly T[],
  key: (one: T) => string,
  count: (one: T) => number = () => 1,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(key(one), (counts.get(key(one)) ?? 0) + count(one));
  return counts;
}
