/**
 * The one table of settings: name, kind, unit, default, bounds, meaning, and the names that Storm and Flink use for the
 * same thing. `docs/settings.md` is compared with it by a test.
 *
 * People write durations as `10s`, `250ms`, `2m`, `1h` and sizes as `64KB`, `1MB`; compiled values are numbers in the
 * unit of the kind: milliseconds, bytes.
 */

/** The unit of a plain number written under another system's name. */
type AliasUnit = 'ms' | 's' | 'MB' | 'plain';

export interface SettingDefinition {
  readonly kind:
    | 'duration'
    | 'integer'
    | 'number'
    | 'boolean'
    | 'string'
    | 'choice'
    | 'bytes'
    | 'count-or-auto'
    | 'strings';
  /** In the compiled unit; null means not set. */
  readonly default: number | string | boolean | null | readonly string[];
  readonly nullable?: true;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly choices?: readonly string[];
  /** `topology`: the file and `--set` may give it. `cluster`: the daemons' configuration only. */
  readonly scope: 'topology' | 'cluster';
  readonly what: string;
  readonly storm?: readonly Alias[];
  readonly flink?: readonly Alias[];
}

/** The name of a setting in another system. */
interface Alias {
  readonly name: string;
  readonly unit: AliasUnit;
  /** Values there that have another name here. */
  readonly values?: Readonly<Record<string, string>>;
}

export const SETTINGS_TABLE = {
  'topology.workers': {
    kind: 'count-or-auto',
    default: 1,
    minimum: 1,
    maximum: 100_000,
    scope: 'topology',
    what: 'Worker processes of the topology: a number, or `max-parallelism` for as many as the largest parallelism (of each slot sharing group), as Flink counts slots.',
    choices: ['max-parallelism'],
  },
  'scheduling.strategy': {
    kind: 'choice',
    default: 'balanced',
    scope: 'cluster',
    what: 'Who decides which executors run where: `balanced` (by `load-balance.mode`), or as Storm `even` (round robin over slots; what runs stays) or `default` (workers of uneven size give way first).',
    choices: ['balanced', 'even', 'default'],
  },
  'load-balance.mode': {
    kind: 'choice',
    default: 'tasks',
    scope: 'topology',
    what: 'What the strategy `balanced` spreads: `tasks` (load over slots and machines), `slots` (slots in use over machines), `none` (a machine is filled before the next), `min-resources` (as few machines as possible).',
    choices: ['tasks', 'slots', 'none', 'min-resources'],
    flink: [
      { name: 'taskmanager.load-balance.mode', unit: 'plain' },
      { name: 'cluster.evenly-spread-out-slots', unit: 'plain', values: { true: 'slots', false: 'none' } },
    ],
  },
  'scheduling.slot-sharing': {
    kind: 'choice',
    default: 'by-mode',
    scope: 'topology',
    what: 'Which executors share a slot: `task-balanced` (equal numbers), `local-input-preferred` (with those that they read from), or what the mode stands for: the first under `tasks`, else the second.',
    choices: ['by-mode', 'task-balanced', 'local-input-preferred'],
    flink: [
      {
        name: 'slot.sharing-strategy',
        unit: 'plain',
        values: { LOCAL_INPUT_PREFERRED: 'local-input-preferred', TASK_BALANCED_PREFERRED: 'task-balanced' },
      },
    ],
  },
  'scheduling.moves-per-round': {
    kind: 'integer',
    default: 4,
    minimum: 0,
    maximum: 100_000,
    scope: 'cluster',
    what: 'Running workers that one scheduling round may move to restore balance under `load-balance.mode` `tasks`; 0: none ever moves by itself.',
  },
  'topology.tasks': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 0,
    maximum: 1_000_000,
    scope: 'topology',
    what: 'Tasks of every component that does not set its own; not set: as many as its parallelism.',
  },
  'topology.max-task-parallelism': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 1,
    maximum: 1_000_000,
    scope: 'topology',
    what: 'Upper limit of tasks of one component.',
    storm: [{ name: 'topology.max.task.parallelism', unit: 'plain' }],
  },
  'topology.ackers': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 0,
    maximum: 1_000_000,
    scope: 'topology',
    what: 'Acker executors; not set: one per worker; 0 turns acking off.',
    storm: [{ name: 'topology.acker.executors', unit: 'plain' }],
  },
  'topology.executor-threads': {
    kind: 'count-or-auto',
    default: 'auto',
    minimum: 1,
    maximum: 1024,
    scope: 'topology',
    what: "Executor threads of a worker: `auto` (its share of the machine's cores), a number, or `per-executor`.",
    choices: ['auto', 'per-executor'],
  },
  'topology.message-timeout': {
    kind: 'duration',
    default: 30_000,
    minimum: 1,
    maximum: 86_400_000,
    scope: 'topology',
    what: 'Longest time that a row may spend in user code, or may be overtaken and held by nobody, before its tree fails.',
    storm: [{ name: 'topology.message.timeout.secs', unit: 's' }],
  },
  'topology.max-spout-pending': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 1,
    maximum: 1_000_000,
    scope: 'topology',
    what: 'Most pending trees of one spout task; not set: only credit and `spout.pending-limit` bound it.',
    storm: [{ name: 'topology.max.spout.pending', unit: 'plain' }],
  },
  'topology.worker-timeout': {
    kind: 'duration',
    default: 30_000,
    minimum: 100,
    maximum: 600_000,
    scope: 'topology',
    what: 'A running worker whose heartbeat is older counts as dead.',
    storm: [
      { name: 'topology.worker.timeout.secs', unit: 's' },
      { name: 'nimbus.task.timeout.secs', unit: 's' },
    ],
    flink: [{ name: 'heartbeat.timeout', unit: 'ms' }],
  },
  'topology.worker-launch-timeout': {
    kind: 'duration',
    default: 120_000,
    minimum: 100,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'Time in which executors that have just been placed count as alive without a heartbeat.',
    storm: [{ name: 'nimbus.task.launch.secs', unit: 's' }],
  },
  'spout.pending-limit': {
    kind: 'integer',
    default: 1_000_000,
    minimum: 1,
    maximum: 16_777_216,
    scope: 'topology',
    what: 'Pending trees at which a spout task waits, and says for which row.',
  },
  'spout.position-interval': {
    kind: 'duration',
    default: 1000,
    minimum: 1,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'Shortest time between two stored positions of one spout task.',
  },
  'spout.idle-backoff-max': {
    kind: 'duration',
    default: 50,
    minimum: 1,
    maximum: 60_000,
    scope: 'topology',
    what: 'Longest pause before a source that had nothing is asked again; begins at 1 ms, doubles, and is over with the first row.',
    storm: [{ name: 'topology.sleep.spout.wait.strategy.time.ms', unit: 'ms' }],
  },
  'bolt.max-in-flight': {
    kind: 'integer',
    default: 64,
    minimum: 1,
    maximum: 1_000_000,
    scope: 'topology',
    what: 'Rows of one task of an async bolt that are in flight at once.',
  },
  'replay.quiet-time': {
    kind: 'duration',
    default: 5000,
    minimum: 1,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'After a loss, a tree that was pending is replayed once it has made no progress for this long.',
  },
  'replay.max-failures': {
    kind: 'integer',
    default: 3,
    minimum: 1,
    maximum: 1_000_000,
    scope: 'topology',
    what: 'Failures by user code after which a row goes to the dead-letter file.',
  },
  'messaging.credit': {
    kind: 'integer',
    default: 8192,
    minimum: 1,
    maximum: 1_048_576,
    scope: 'topology',
    what: 'Rows that one thread may have under way to one component in another thread.',
  },
  'messaging.batch-rows': {
    kind: 'integer',
    default: 512,
    minimum: 1,
    maximum: 65_536,
    scope: 'topology',
    what: 'Rows at which an out-batch leaves even if its thread is busy.',
    storm: [
      { name: 'topology.producer.batch.size', unit: 'plain' },
      { name: 'topology.transfer.batch.size', unit: 'plain' },
    ],
  },
  'messaging.flush-interval': {
    kind: 'duration',
    default: 1,
    minimum: 0,
    maximum: 10_000,
    scope: 'topology',
    what: 'Longest time that a row waits in an out-batch.',
    storm: [{ name: 'topology.batch.flush.interval.millis', unit: 'ms' }],
    flink: [{ name: 'execution.buffer-timeout', unit: 'ms' }],
  },
  'messaging.max-frame-bytes': {
    kind: 'bytes',
    default: 67_108_864,
    minimum: 65_536,
    maximum: 1_073_741_824,
    scope: 'topology',
    what: 'Largest frame, and so the largest row, that a link carries.',
  },
  'messaging.ring-bytes': {
    kind: 'bytes',
    default: 1_048_576,
    minimum: 4096,
    maximum: 268_435_456,
    scope: 'topology',
    what: 'Shared-memory ring between two threads of a worker.',
  },
  'messaging.reconnect-timeout': {
    kind: 'duration',
    default: 10_000,
    minimum: 1,
    maximum: 600_000,
    scope: 'topology',
    what: 'Time after which a peer that cannot be reached again counts as lost.',
  },
  'cycle.reserve': {
    kind: 'integer',
    default: 65_536,
    minimum: 1,
    maximum: 16_777_216,
    scope: 'topology',
    what: 'Rows sent back beyond one per row that may wait in one place of a cycle before CYCLE_OVERFLOW.',
  },
  'worker.stuck-warning': {
    kind: 'duration',
    default: 5000,
    minimum: 10,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'An executor thread inside one call of user code for longer is reported as stuck.',
  },
  'worker.stuck-timeout': {
    kind: 'duration',
    default: null,
    nullable: true,
    minimum: 10,
    maximum: 86_400_000,
    scope: 'topology',
    what: 'An executor thread stuck for longer is ended and restarted; not set: never.',
  },
  'worker.thread-heap-mb': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 16,
    maximum: 1_048_576,
    scope: 'topology',
    what: 'Heap limit of one executor thread in MB; not set: that of Node.',
  },
  'worker.restart-backoff': {
    kind: 'duration',
    default: 100,
    minimum: 1,
    maximum: 600_000,
    scope: 'topology',
    what: 'First pause before a crashed executor thread or worker is restarted; doubles up to `worker.restart-backoff-max`.',
  },
  'worker.restart-backoff-max': {
    kind: 'duration',
    default: 10_000,
    minimum: 1,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'Longest pause before a restart.',
  },
  'rebalance.prepare-timeout': {
    kind: 'duration',
    default: 60_000,
    minimum: 100,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'Time that new workers have to get ready for a planned move before it is given up; everything runs on meanwhile.',
  },
  'rebalance.drain-timeout': {
    kind: 'duration',
    default: 30_000,
    minimum: 0,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'Time that a task has for its queued rows, calls and trees before it moves; what is left then fails as moved, and is replayed.',
  },
  'rebalance.save-timeout': {
    kind: 'duration',
    default: 10_000,
    minimum: 10,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'Time that `save` may take before a task moves; after it the task stays where it is.',
  },
  'dead-letters.directory': {
    kind: 'string',
    default: null,
    nullable: true,
    scope: 'topology',
    what: 'Directory of the dead-letter files; not set: `dead-letters` in the state directory.',
  },
  'submit.evaluation-timeout': {
    kind: 'duration',
    default: 10_000,
    minimum: 100,
    maximum: 600_000,
    scope: 'topology',
    what: 'Time that evaluating the file and building its graph may take.',
  },
  'drain.timeout': {
    kind: 'duration',
    default: 30_000,
    minimum: 0,
    maximum: 3_600_000,
    scope: 'topology',
    what: 'After Ctrl-C, time for pending trees to complete before the topology is stopped.',
  },
  'submit.max-bundle-bytes': {
    kind: 'bytes',
    default: 67_108_864,
    minimum: 1024,
    maximum: 134_217_728,
    scope: 'cluster',
    what: 'Largest bundle of a topology, its source map not counted.',
  },
  'nimbus.slots-per-topology': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 0,
    maximum: 1_000_000,
    scope: 'cluster',
    what: 'Most workers that one topology may ask for.',
    storm: [{ name: 'nimbus.slots.perTopology', unit: 'plain' }],
  },
  'nimbus.executors-per-topology': {
    kind: 'integer',
    default: null,
    nullable: true,
    minimum: 0,
    maximum: 10_000_000,
    scope: 'cluster',
    what: 'Most executors (sum of hints) that one topology may ask for.',
    storm: [{ name: 'nimbus.executors.perTopology', unit: 'plain' }],
  },
  'nimbus.round-interval': {
    kind: 'duration',
    default: 10_000,
    minimum: 10,
    maximum: 600_000,
    scope: 'cluster',
    what: 'Period of scheduling rounds; a change starts one at once.',
    storm: [{ name: 'nimbus.monitor.freq.secs', unit: 's' }],
  },
  'supervisor.slots': {
    kind: 'integer',
    default: 4,
    minimum: 1,
    maximum: 10_000,
    scope: 'cluster',
    what: 'Slots of a supervisor; their ports count up from `supervisor.first-port`.',
    storm: [{ name: 'supervisor.slots.count', unit: 'plain' }],
    flink: [{ name: 'taskmanager.numberOfTaskSlots', unit: 'plain' }],
  },
  'supervisor.first-port': {
    kind: 'integer',
    default: 6700,
    minimum: 1,
    maximum: 65_535,
    scope: 'cluster',
    what: 'Name of the first slot.',
  },
  'supervisor.heartbeat-interval': {
    kind: 'duration',
    default: 1000,
    minimum: 10,
    maximum: 60_000,
    scope: 'cluster',
    what: 'Period at which a supervisor writes the folded heartbeat of its workers.',
    storm: [{ name: 'worker.heartbeat.frequency.secs', unit: 's' }],
    flink: [{ name: 'heartbeat.interval', unit: 'ms' }],
  },
  'supervisor.gone-grace': {
    kind: 'duration',
    default: 300,
    minimum: 0,
    maximum: 600_000,
    scope: 'cluster',
    what: 'Time after the loss of a supervisor in which its workers may announce themselves before the machine counts as gone.',
  },
  'supervisor.worker-start-timeout': {
    kind: 'duration',
    default: 120_000,
    minimum: 100,
    maximum: 3_600_000,
    scope: 'cluster',
    what: 'Time from the launch of a worker to its first heartbeat; a topology whose `topology.worker-launch-timeout` is longer has that.',
    storm: [{ name: 'supervisor.worker.start.timeout.secs', unit: 's' }],
  },
  'supervisor.worker-stop-timeout': {
    kind: 'duration',
    default: 3000,
    minimum: 0,
    maximum: 600_000,
    scope: 'cluster',
    what: 'Time between asking a worker to stop and killing it.',
    storm: [{ name: 'supervisor.worker.shutdown.sleep.secs', unit: 's' }],
  },
  'coordinator.session-timeout': {
    kind: 'duration',
    default: 10_000,
    minimum: 100,
    maximum: 600_000,
    scope: 'cluster',
    what: 'A session that is silent for longer ends, and its ephemeral nodes with it.',
    storm: [{ name: 'storm.zookeeper.session.timeout', unit: 'ms' }],
  },
  'coordinator.credentials-file': {
    kind: 'string',
    default: null,
    nullable: true,
    scope: 'cluster',
    what: 'File with the credentials for ZooKeeper in one line, `user:password`; not set: none, and everybody may write.',
  },
  'log.level': {
    kind: 'choice',
    default: 'info',
    scope: 'topology',
    what: 'The least that is logged of what Isobar and `context.logger` say; what your code prints is always kept.',
    choices: ['debug', 'info', 'warn', 'error'],
  },
  'log.max-file-bytes': {
    kind: 'bytes',
    default: 16_777_216,
    minimum: 4096,
    maximum: 1_073_741_824,
    scope: 'topology',
    what: 'Size at which the log of a worker or daemon is renamed and a new file begun.',
  },
  'log.files': {
    kind: 'integer',
    default: 4,
    minimum: 1,
    maximum: 1000,
    scope: 'topology',
    what: 'Log files kept of each worker and daemon, the one being written included; the oldest is removed.',
  },
  'log.rate-limit': {
    kind: 'integer',
    default: 10_000,
    nullable: true,
    minimum: 1,
    maximum: 10_000_000,
    scope: 'topology',
    what: 'Records that one thread of a worker, or a daemon, may log in a second; more are dropped and counted. No bound in `isobar run`.',
  },
  'run.orphan-timeout': {
    kind: 'duration',
    default: 5000,
    minimum: 100,
    maximum: 600_000,
    scope: 'cluster',
    what: 'What a killed `isobar run` leaves behind ends itself after this time.',
  },
} as const satisfies Record<string, SettingDefinition>;
