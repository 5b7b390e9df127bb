/**
 * The one table of metrics: name, type, labels and meaning. `docs/metrics.md` is written from it, and a test compares the two;
 * names are stable. Times are seconds, sizes bytes, as Prometheus has it. Pure.
 */

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly what: string;
}

const COMPONENT = ['topology', 'component'] as const;
const TASK = ['topology', 'component', 'task'] as const;
const WORKER = ['topology', 'worker'] as const;
const THREAD = ['topology', 'worker', 'thread'] as const;

export const METRICS_TABLE = {
  isobar_nimbus_leader: {
    type: 'gauge',
    labels: [],
    what: '1 where this Nimbus leads. One that does not has nothing but this and the metrics of its own process.',
  },
  isobar_coordinator_answers: {
    type: 'gauge',
    labels: [],
    what: 'Whether the coordinator answers Nimbus: 1 or 0. While it does not, nothing is started, moved or changed, and what runs goes on.',
  },
  isobar_supervisors: { type: 'gauge', labels: [], what: 'Supervisors that are there.' },
  isobar_slots: {
    type: 'gauge',
    labels: ['state'],
    what: 'Slots of supervisors that are there: `used`, `free`.',
  },
  isobar_scheduling_rounds_total: { type: 'counter', labels: [], what: 'Scheduling rounds of this Nimbus.' },
  isobar_scheduling_round_seconds_total: { type: 'counter', labels: [], what: 'Time that they took.' },
  isobar_assignments_total: {
    type: 'counter',
    labels: [],
    what: 'Assignments that this Nimbus has written: placements that changed.',
  },
  isobar_moved_tasks_total: {
    type: 'counter',
    labels: [],
    what: 'Tasks that were given another slot while they had one.',
  },
  isobar_placed_workers_total: {
    type: 'counter',
    labels: [],
    what: 'Slots that were given to a topology which did not have them.',
  },
  isobar_topology_status: {
    type: 'gauge',
    labels: ['topology', 'status'],
    what: '1 for the status that the topology has, as in `isobar list`. Topologies that have ended have this metric alone.',
  },
  isobar_topology_ready: {
    type: 'gauge',
    labels: ['topology'],
    what: '1 where every executor runs in a worker that is ready.',
  },
  isobar_topology_workers: {
    type: 'gauge',
    labels: ['topology', 'state'],
    what: 'Workers: `desired`, `actual` (ready).',
  },
  isobar_topology_executors: {
    type: 'gauge',
    labels: ['topology', 'state'],
    what: 'Executors: `desired`, `unplaced` (without a slot).',
  },
  isobar_topology_problems: {
    type: 'gauge',
    labels: ['topology', 'code'],
    what: 'What keeps it from running as it should, by error code.',
  },
  isobar_topology_lost_states_total: {
    type: 'counter',
    labels: ['topology'],
    what: 'Tasks whose state was lost in a crash.',
  },
  isobar_topology_oldest_pending_seconds: {
    type: 'gauge',
    labels: ['topology'],
    what: 'Age of the oldest row that is pending; 0: none is.',
  },
  isobar_component_executors: { type: 'gauge', labels: COMPONENT, what: 'Executors of the component.' },
  isobar_component_tasks: { type: 'gauge', labels: COMPONENT, what: 'Tasks of the component.' },
  isobar_component_emitted_rows_total: { type: 'counter', labels: COMPONENT, what: 'Rows that it emitted.' },
  isobar_component_transferred_rows_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Rows that it sent, each receiver counted.',
  },
  isobar_component_executed_rows_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Rows that bolts were given.',
  },
  isobar_component_acked_rows_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Spouts: trees completed; bolts: rows acked.',
  },
  isobar_component_failed_rows_total: {
    type: 'counter',
    labels: [...COMPONENT, 'reason'],
    what: 'Spouts: trees failed; bolts: rows failed. Reasons: `user`, `timeout`, `lost`, `moved`, `overflow`.',
  },
  isobar_component_replayed_rows_total: {
    type: 'counter',
    labels: [...COMPONENT, 'reason'],
    what: 'Rows that a spout emitted again, by what had happened to them.',
  },
  isobar_component_dead_letters_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Rows that were put aside into the dead-letter file.',
  },
  isobar_component_unreplayable_rows_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Rows of a spout that nothing would replay.',
  },
  isobar_component_errors_total: {
    type: 'counter',
    labels: [...COMPONENT, 'code'],
    what: 'Errors that were reported, by code; component `` is the worker itself.',
  },
  isobar_component_user_total: {
    type: 'counter',
    labels: [...COMPONENT, 'name'],
    what: 'Your own counters (`context.metrics.count`).',
  },
  isobar_component_execute_seconds: {
    type: 'histogram',
    labels: COMPONENT,
    what: 'Bolts: time of one `process` call, until its promise settled; of a synchronous bolt one call in 32 is measured. Merged over all tasks.',
  },
  isobar_component_complete_seconds: {
    type: 'histogram',
    labels: COMPONENT,
    what: 'Spouts: time from emit to the completion of the tree; one in 16 is measured. Merged over all tasks.',
  },
  isobar_component_latency_seconds: {
    type: 'gauge',
    labels: [...COMPONENT, 'quantile'],
    what: 'Quantiles 0.5, 0.99 and 0.999 of the two above since the submission, exact to 1.6 %.',
  },
  isobar_component_busy_seconds_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Time in which its executors ran rows. What follows an `await` is not in it.',
  },
  isobar_component_blocked_seconds_total: {
    type: 'counter',
    labels: COMPONENT,
    what: 'Time in which its executors had rows and could not send on, since receivers took none; looked at four times a second.',
  },
  isobar_component_capacity: {
    type: 'gauge',
    labels: COMPONENT,
    what: 'Share of its time that an executor ran rows, on average over executors, since an earlier scrape (at least 5 s); 1: its threads do nothing else.',
  },
  isobar_component_queued_rows: {
    type: 'gauge',
    labels: COMPONENT,
    what: 'Rows that wait in queues of the component or are under way in it.',
  },
  isobar_component_queue_wait_seconds: {
    type: 'gauge',
    labels: COMPONENT,
    what: "Time that a row waits: rows queued by rows executed a second since an earlier scrape (Little's law).",
  },
  isobar_component_pending_rows: {
    type: 'gauge',
    labels: COMPONENT,
    what: 'Trees rooted at the component that are not complete.',
  },
  isobar_component_source_lag_rows: {
    type: 'gauge',
    labels: COMPONENT,
    what: 'Spouts: rows that the source has yet to give, where it says so.',
  },
  isobar_component_source_lag_change: {
    type: 'gauge',
    labels: COMPONENT,
    what: 'Rows by which that lag grows a second, since an earlier scrape; negative: it is catching up.',
  },
  isobar_task_executed_rows_total: {
    type: 'counter',
    labels: TASK,
    what: 'Rows that the task was given since its worker started.',
  },
  isobar_task_emitted_rows_total: {
    type: 'counter',
    labels: TASK,
    what: 'Rows that the task emitted since its worker started.',
  },
  isobar_task_queued_rows: {
    type: 'gauge',
    labels: TASK,
    what: 'Rows that wait for the task; those of an executor with several tasks stand at its first.',
  },
  isobar_worker_ready: { type: 'gauge', labels: WORKER, what: '1 where the worker is ready.' },
  isobar_worker_cpu_seconds_total: { type: 'counter', labels: WORKER, what: 'Processor time of the worker.' },
  isobar_worker_resident_bytes: { type: 'gauge', labels: WORKER, what: 'Memory of the worker (resident).' },
  isobar_worker_restarts_total: {
    type: 'counter',
    labels: WORKER,
    what: 'Workers of that slot that had to be started again.',
  },
  isobar_worker_heartbeat_age_seconds: {
    type: 'gauge',
    labels: WORKER,
    what: 'Age of its last heartbeat; an idle worker sends few.',
  },
  isobar_worker_dropped_log_records_total: {
    type: 'counter',
    labels: WORKER,
    what: 'Log records that were dropped: too fast, or not writable.',
  },
  isobar_thread_active_seconds_total: {
    type: 'counter',
    labels: THREAD,
    what: "Time in which an executor thread's event loop was not idle; its rate is the share of a core.",
  },
  isobar_thread_event_loop_lag_seconds: {
    type: 'gauge',
    labels: THREAD,
    what: 'How long the event loop was away at its last turn.',
  },
  isobar_thread_collections_total: { type: 'counter', labels: THREAD, what: 'Collections of garbage.' },
  isobar_thread_collection_seconds_total: { type: 'counter', labels: THREAD, what: 'Time that they took.' },
  isobar_thread_call_seconds: {
    type: 'gauge',
    labels: THREAD,
    what: 'How long the call of user code lasts that the thread is in; 0: in none.',
  },
  isobar_thread_restarts_total: { type: 'counter', labels: THREAD, what: 'Restarts of the thread.' },
  isobar_process_cpu_seconds_total: {
    type: 'counter',
    labels: [],
    what: 'Processor time of the daemon that answers.',
  },
  isobar_process_resident_bytes: { type: 'gauge', labels: [], what: 'Its memory (resident).' },
  isobar_process_event_loop_active_seconds_total: {
    type: 'counter',
    labels: [],
    what: 'Time in which its event loop was not idle.',
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS_TABLE;
