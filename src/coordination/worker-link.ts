/**
 * The protocol between a supervisor and its workers (they never import each other). It runs over a control channel on
 * the supervisor's Unix socket; the worker connects and reconnects.
 *
 * Worker → supervisor requests: `hello` ({@link WorkerHello} → {@link WorkerWelcome}), `next-generation` (null →
 * number), `read-positions` (null → StoredPosition[]), `store-positions` (StoredPosition[] → null), `store-state`
 * ({@link StateFile} → its hash: the state of a task that leaves, kept as a blob), `fetch-state` ({@link StateCopy} → null, once
 * the file is there), `hand-over` (Handover[] → null, once they are stored).
 * Worker → supervisor events: `heartbeat` (WorkerHeartbeat), `unusable` (ErrorRecord: this topology cannot run in any
 * worker, e.g. GRAPH_MISMATCH or MODULE_MISSING_IN_WORKER).
 * Supervisor → worker requests: `tap` (TapRequest → TapReport, see tap.ts), `find-row` ({@link SlotSearch} → words
 * or null: where a row of that tree is); another process of the same user asks the
 * supervisor for them (`tap` with {@link SlotTap}).
 * Supervisor → worker events: `assignment` ({@link Assignment}), `handovers` (Handover[]: all that is known of the moves
 * of this topology), `phase` ({@link TopologyPhase}), `stop` (null: close
 * tasks, store positions, end within `supervisor.worker-stop-timeout`).
 */
import type { ProcessIdentity, RawSettings } from '../base/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { Handover } from './handover.js';
import type { TopologyPhase } from './topology-phase.js';

/** Written as JSON to a file whose path is the worker's only argument. */
export interface WorkerLaunch {
  readonly workerId: string;
  readonly generation: number;
  readonly topologyId: string;
  readonly topologyName: string;
  readonly supervisorId: string;
  readonly port: number;
  /** Localised blobs. */
  readonly codePath: string;
  readonly descriptionPath: string;
  /** Layers as `compileSettings` takes them: cluster first, then the topology's. */
  readonly settings: readonly RawSettings[];
  /** Secret of the topology, hex. */
  readonly secret: string;
  readonly supervisorSocket: string;
  /** Directory of the peers' sockets, shared by all supervisors of the machine; see `peerSocketPath`. */
  readonly socketDirectory: string;
  /** The worker's own directory: logs and local files. */
  readonly directory: string;
  readonly deadLetterDirectory: string;
  /** Address of the coordinator (see `connectCoordination`), for a worker without supervisor. */
  readonly coordinatorAddress: string;
  /** Executor threads that `auto` means here: this worker's part of its supervisor's cores. */
  readonly threadShare: number;
  /** Heap that one executor has asked for, MB, by component; one that is absent has asked for nothing in particular. */
  readonly executorHeapMb: Readonly<Record<string, number>>;
  /** `run`: the worker ends itself when this process and the supervisor are gone. */
  readonly keeper: ProcessIdentity | null;
}

/** In the worker's directory: its last heartbeat, which it writes when it ends, whether or not its supervisor is there. */
export const LAST_REPORT_FILE = 'last-report.json';

export interface WorkerHello {
  readonly workerId: string;
  readonly topologyId: string;
  readonly port: number;
  readonly generation: number;
  readonly process: ProcessIdentity;
}

/** Refused (GENERATION_OUTDATED) when the slot belongs to another worker now: the worker then ends itself. */
export interface WorkerWelcome {
  readonly assignment: Assignment;
  readonly handovers: readonly Handover[];
  readonly phase: TopologyPhase;
}

/** State of a task that leaves, in a file of its worker that the supervisor takes over. */
export interface StateFile {
  readonly task: number;
  readonly move: number;
  readonly path: string;
}

/** State of a task that arrives, to be placed in a file. */
export interface StateCopy {
  readonly hash: string;
  readonly path: string;
}
