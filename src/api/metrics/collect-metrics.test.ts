import { describe, expect, it } from 'vitest';
import { sketchBucket } from '../../base/index.js';
import { cluster, component, topology, worker } from '../../cli/testing/statuses.js';
import type { ClusterStatus, ComponentStatus } from '../../nimbus/index.js';
import { collectMetrics, type MetricsLook } from './collect-metrics.js';
import { METRICS_TABLE } from './metrics-table.js';

const counts = { rounds: 4, roundMs: 250, assignments: 2, movedTasks: 7, startedWorkers: 3 };
const process = { cpuMicros: 2e6, residentBytes: 5, activeMs: 1500 };

function look(nowMs: number, status: ClusterStatus | null): MetricsLook {
  return { nowMs, process, cluster: status === null ? null : { status, counts } };
}

const task = (number: number, parts: object): ComponentStatus['perTask'][number] => ({
  ...{
    task: number,
    component: 'c',
    emitted: 1,
    transferred: 0,
    executed: 2,
    acked: 0,
    failed: 0,
    replayed: 0,
  },
  ...{ deadLetters: 0, unreplayable: 0, queued: 3, pending: 0, ended: false, stopped: false, generation: 1 },
  ...parts,
});

/** Values by metric and labels, as a query would name them. */
function valuesOf(now: MetricsLook, before?: MetricsLook): ReadonlyMap<string, unknown> {
  return new Map(
    collectMetrics(now, before).map(({ metric, labels, value }) => {
      expect(Object.keys(labels).sort(), metric).toEqual([...METRICS_TABLE[metric].labels].sort());
      return [`${metric} ${Object.values(labels).join(' ')}`.trim(), value];
    }),
  );
}

describe('metrics', () => {
  it('tell everything of a component: counts with reasons, depths, latencies, tasks', () => {
    const values = valuesOf(
      look(0, {
        ...cluster(
          0,
          topology({
            components: [
              component('split', 'bolt', {
                executed: 100,
                busyMs: 4000,
                blockedMs: 500,
                queued: 6,
                failures: { user: 2, lost: 1 },
                counters: { hits: 9 },
                executeMicros: [[sketchBucket(1000), 10]],
                perTask: [task(5, {}), task(6, { queued: 0 })],
              }),
              component('lines', 'spout', {
                replays: { lost: 4 },
                perTask: [task(1, { lag: 30 }), task(2, { lag: 12 })],
              }),
            ],
            errors: [
              {
                component: 'split',
                task: 5,
                error: { code: 'USER_CODE_FAILED', message: 'a', details: {} },
                count: 3,
                firstMs: 0,
                lastMs: 0,
              },
              {
                component: 'split',
                task: 6,
                error: { code: 'USER_CODE_FAILED', message: 'b', details: {} },
                count: 2,
                firstMs: 0,
                lastMs: 0,
              },
            ],
            oldestPending: { component: 'lines', task: 1, ageMs: 2500, row: 'position 4', heldBy: null },
          }),
        ),
        supervisors: [],
      }),
    );
    expect(Object.fromEntries(values)).toMatchObject({
      isobar_nimbus_leader: 1,
      isobar_coordinator_answers: 1,
      isobar_moved_tasks_total: 7,
      isobar_scheduling_round_seconds_total: 0.25,
      'isobar_topology_status words ACTIVE': 1,
      'isobar_topology_oldest_pending_seconds words': 2.5,
      'isobar_component_executed_rows_total words split': 100,
      'isobar_component_failed_rows_total words split user': 2,
      'isobar_component_failed_rows_total words split lost': 1,
      'isobar_component_replayed_rows_total words lines lost': 4,
      'isobar_component_user_total words split hits': 9,
      'isobar_component_errors_total words split USER_CODE_FAILED': 5,
      'isobar_component_busy_seconds_total words split': 4,
      'isobar_component_blocked_seconds_total words split': 0.5,
      'isobar_component_execute_seconds words split': [[sketchBucket(1000), 10]],
      'isobar_component_source_lag_rows words lines': 42,
      'isobar_task_queued_rows words split 5': 3,
      'isobar_task_executed_rows_total words split 6': 2,
      'isobar_worker_ready words local:6700': 1,
    });
    const p99 = Number(values.get('isobar_component_latency_seconds words split 0.99'));
    expect(p99).toBeGreaterThan(0.00098);
    expect(p99).toBeLessThan(0.00102);
    expect(values.has('isobar_component_source_lag_rows words split')).toBe(false);
    expect(values.has('isobar_component_capacity words split')).toBe(false);
  });

  it('have capacity, queue wait and the change of lag between two looks', () => {
    const at = (busyMs: number, executed: number, queued: number, lag: number): ClusterStatus =>
      cluster(
        0,
        topology({
          components: [
            component('split', 'bolt', { busyMs, executed, queued, executors: 2 }),
            component('lines', 'spout', { perTask: [task(1, { lag })] }),
          ],
        }),
      );
    const values = valuesOf(look(10_000, at(9000, 300, 50, 10)), look(0, at(1000, 100, 9, 110)));
    // 8 s of 2 executors in 10 s; 50 rows at 20 a second; 100 rows less in 10 s.
    expect(values.get('isobar_component_capacity words split')).toBeCloseTo(0.4);
    expect(values.get('isobar_component_queue_wait_seconds words split')).toBeCloseTo(2.5);
    expect(values.get('isobar_component_source_lag_change words lines')).toBeCloseTo(-10);
    const idle = valuesOf(look(10_000, at(9000, 300, 0, 0)), look(0, at(9000, 300, 0, 0)));
    expect(idle.get('isobar_component_queue_wait_seconds words split')).toBe(0);
    const stalled = valuesOf(look(10_000, at(9000, 300, 5, 0)), look(0, at(9000, 300, 5, 0)));
    expect(stalled.has('isobar_component_queue_wait_seconds words split')).toBe(false);
  });

  it('tell of threads and workers what their heartbeats say, and leave out what older ones do not say', () => {
    const thread = {
      ...{ index: 0, generation: 1, state: 'busy' as const, component: 'split', task: 5, inCallMs: 1500 },
      ...{ longCalls: [], lagMs: 12, executors: [], restarts: 1 },
    };
    const threads = [
      { ...thread, activeMs: 4000, collections: 8, collectionMs: 90 },
      { ...thread, index: 1 },
    ];
    const workers = [worker(6700, { threads, cpuMicros: 3e6, droppedLogRecords: 2, restarts: 4 })];
    const values = valuesOf(look(0, cluster(0, topology({ workers }))));
    expect(Object.fromEntries(values)).toMatchObject({
      'isobar_worker_cpu_seconds_total words local:6700': 3,
      'isobar_worker_dropped_log_records_total words local:6700': 2,
      'isobar_worker_restarts_total words local:6700': 4,
      'isobar_thread_active_seconds_total words local:6700 0': 4,
      'isobar_thread_collection_seconds_total words local:6700 0': 0.09,
      'isobar_thread_event_loop_lag_seconds words local:6700 1': 0.012,
      'isobar_thread_call_seconds words local:6700 1': 1.5,
    });
    expect(values.has('isobar_thread_active_seconds_total words local:6700 1')).toBe(false);
  });

  it('of a topology that has ended are its status alone, of a Nimbus that does not lead those of its process', () => {
    const ended = valuesOf(
      look(0, cluster(0, topology({ isSettled: true, phase: { kind: 'finished', drained: false } }))),
    );
    expect([...ended.keys()].filter((name) => name.includes('words'))).toEqual([
      'isobar_topology_status words FINISHED',
    ]);
    expect([...valuesOf(look(0, null)).keys()].sort()).toEqual([
      'isobar_nimbus_leader',
      'isobar_process_cpu_seconds_total',
      'isobar_process_event_loop_active_seconds_total',
      'isobar_process_resident_bytes',
    ]);
  });
});
