/**
 * The one table of error codes and the one error class that reads it.
 *
 * A code is stable: programs branch on it, documentation lists it, messages may change. `docs/errors.md` is compared
 * with this table by a test. Branch on `code`, never on message text; across a process or thread, errors travel as
 * {@link ErrorRecord} and are rebuilt by {@link IsobarError.from}.
 */

interface ErrorFacts {
  /** One line for docs/errors.md: when this happens. */
  readonly when: string;
  /** What the reader should do next; printed under the message. */
  readonly action: string;
  /** May the same call succeed later without a change by the user? */
  readonly retryable?: true;
}

/** Every code Isobar can report, with what it means and what to do. */
export const ERROR_TABLE = {
  // ── definitions and the builder ──
  TOPOLOGY_NAME_ILLEGAL: {
    when: 'The topology name is empty or contains / . : or \\.',
    action: 'Choose a name without / . : and \\.',
  },
  COMPONENT_ID_ILLEGAL: {
    when: 'A component id is empty or starts with __ (reserved).',
    action: 'Choose another id.',
  },
  COMPONENT_ID_DUPLICATE: {
    when: 'Two components of one topology have the same id.',
    action: 'Give each spout and bolt its own id.',
  },
  STREAM_ID_ILLEGAL: {
    when: 'A stream name is empty or starts with __ (reserved).',
    action: 'Choose another stream name.',
  },
  STREAM_UNKNOWN: {
    when: 'A subscription names a stream that its source does not declare.',
    action: 'Declare the stream in `streams`, or correct the name.',
  },
  COMPONENT_UNKNOWN: {
    when: 'A subscription names a component that is not in this topology.',
    action: 'Use the handle that b.spout(…) or b.bolt(…) of this builder returned.',
  },
  FIELD_UNKNOWN: {
    when: 'A fields grouping names a field that the stream does not declare.',
    action: 'Use a declared field of the stream.',
  },
  FIELD_NAME_ILLEGAL: {
    when: 'A declared field has an empty name or the name __proto__.',
    action: 'Rename the field.',
  },
  FIELDS_GROUPING_EMPTY: {
    when: 'A fields grouping was given no key.',
    action: 'Name at least one field, or use global to send all rows to one task.',
  },
  FIELD_MISSING: {
    when: 'A bolt takes a field that the stream it subscribes to does not have.',
    action: 'Emit the field upstream, or subscribe to another stream.',
  },
  FIELD_KIND_MISMATCH: {
    when: 'A bolt takes a field as one kind and the stream declares it as another.',
    action: 'Declare the same kind on both sides.',
  },
  SPOUT_HAS_INPUT: {
    when: 'A spout was given an input.',
    action: 'Make it a bolt, or remove the input.',
  },
  BOLT_WITHOUT_INPUT: {
    when: 'A bolt, or one of its named inputs, has no subscription.',
    action: 'Connect it with a grouping such as .shuffle(source).',
  },
  SUBSCRIPTION_DUPLICATE: {
    when: 'An input of a bolt subscribes twice to the same stream.',
    action: 'Keep one grouping, or give the bolt a second named input.',
  },
  TOPOLOGY_WITHOUT_SPOUT: {
    when: 'A topology has no spout.',
    action: 'Add a spout with b.spout(…).',
  },
  PARALLELISM_ILLEGAL: {
    when: 'A parallelism hint or task count is not a positive whole number within the limit.',
    action: 'Use a whole number from 1 to 1000000.',
  },
  DEFINITION_ILLEGAL: {
    when: 'A spout or bolt definition lacks a part or has a part of the wrong type.',
    action: 'Compare the definition with docs/tutorial.md.',
  },
  BUILDER_THREW: {
    when: 'The function given to topology(…) threw.',
    action: 'Fix the error shown below; its stack points into your file.',
  },
  GRAPH_NOT_DETERMINISTIC: {
    when: 'Building the topology a second time gave another graph.',
    action: 'Build from constants and settings only: no clock, no chance, no environment that differs.',
  },
  DIRECT_EMIT_MISMATCH: {
    when: 'A direct stream was emitted to without a task, a task was named on a stream without direct subscribers, or a stream has direct subscribers and others.',
    action: 'Use out.direct(task, row) on streams with a direct grouping only.',
  },
  CUSTOM_GROUPING_ILLEGAL: {
    when: 'A custom grouping chose something that is not the index of a receiving task.',
    action: 'Return a whole number from 0 up to, not including, the task count, or an array of such numbers.',
  },
  CYCLE_NEEDS_ACKERS: {
    when: 'A bounded topology with a cycle was submitted with ackers = 0.',
    action: 'Leave acking on: only acked trees tell when a cycle has run dry.',
  },
  TOO_MANY_WORKERS: {
    when: 'topology.workers exceeds nimbus.slots-per-topology.',
    action: 'Lower topology.workers or raise the limit.',
  },
  TOO_MANY_EXECUTORS: {
    when: 'The sum of parallelism hints exceeds nimbus.executors-per-topology.',
    action: 'Lower the parallelism or raise the limit.',
  },
  // ── settings ──
  SETTINGS_INVALID: {
    when: 'One or more settings are unknown, of the wrong type, out of range or contradict each other.',
    action: 'Correct every line listed; `docs/settings.md` has the table.',
  },
  // ── run time, user code ──
  EMIT_FIELD_MISSING: {
    when: 'An emitted row lacks a declared field.',
    action: 'Set every declared field; use t.nullable(…) for one that may be absent.',
  },
  EMIT_FIELD_UNDECLARED: {
    when: 'An emitted row has a key that its stream does not declare.',
    action: 'Declare the field in emits (or in the stream), or leave it out of the row.',
  },
  EMIT_TYPE_MISMATCH: {
    when: 'An emitted value does not fit the declared kind of its field (a fraction or NaN in an integer field and an int64 beyond the safe range included).',
    action: 'Emit a value of the declared kind, or declare the kind that you emit.',
  },
  EMIT_OUTSIDE_PROCESS: {
    when: '`out` was used after the call that it was given to had ended.',
    action: 'Return the promise from process, so that the call ends when your work ends.',
  },
  ANCHOR_MISUSED: {
    when: 'An anchor was acked or failed twice, or a manual bolt dropped one.',
    action: 'Ack or fail each anchor exactly once.',
  },
  CYCLE_OVERFLOW: {
    when: 'A cycle of bolts multiplies rows faster than they leave it, and its reserve is used up.',
    action: 'Send back at most one row per row, or break the cycle.',
  },
  ROW_TOO_LARGE: {
    when: 'One row is larger than messaging.max-frame-bytes.',
    action: 'Split the row, or raise messaging.max-frame-bytes.',
  },
  USER_CODE_FAILED: {
    when: 'A function of a component threw or rejected.',
    action: 'Fix the error shown below; its stack points into your file.',
  },
  SPOUT_POSITION_ILLEGAL: {
    when: 'A row position would not come back from the disk as it was (a Map, a Date, a bigint, NaN, a function, or a cyclic value).',
    action: 'Use numbers, strings, booleans, null, arrays and plain objects as positions.',
  },
  DEAD_LETTER_WRITE_FAILED: {
    when: 'A dead letter could not be written; the source does not move past its row.',
    action: 'Free space or fix the rights of the directory named, the write is tried again.',
    retryable: true,
  },
  CLOSE_TIMED_OUT: {
    when: "The promise of a task's `close` did not settle within a third of supervisor.worker-stop-timeout (less 500 ms); nobody waits for it any longer.",
    action: 'Bound what close waits for, or raise supervisor.worker-stop-timeout.',
  },
  // ── run and submission ──
  FILE_NOT_FOUND: { when: 'The file to run does not exist or cannot be read.', action: 'Check the path.' },
  TYPE_CHECK_FAILED: {
    when: 'The file does not pass the type check.',
    action: 'Fix the errors listed, or run with --no-check.',
  },
  BUNDLE_FAILED: {
    when: 'The file could not be bundled (syntax error, import that cannot be resolved).',
    action: 'Fix the errors listed; for packages that must stay outside the bundle see docs/packages.md.',
  },
  NO_DEFAULT_EXPORT: {
    when: 'The file has no default export.',
    action: "End it with: export default topology('name', (b) => { … });",
  },
  NOT_A_TOPOLOGY: {
    when: 'The default export is not the result of topology(…).',
    action: "Export the value that topology('name', (b) => { … }) returns.",
  },
  EVALUATION_TIMEOUT: {
    when: 'Evaluating the file or building its graph took longer than submit.evaluation-timeout.',
    action: 'Keep top-level code and the builder free of waiting; open connections in prepare or read.',
  },
  EVALUATION_FAILED: {
    when: 'Evaluating the file threw, or ended the process.',
    action: 'Fix the error shown below; its stack points into your file.',
  },
  DESCRIPTION_INVALID: {
    when: 'Nimbus refused a topology description that breaks a rule.',
    action: 'Correct every line listed.',
  },
  CLUSTER_INVALID: {
    when: 'A file that describes a cluster, or what runs on it, has faults.',
    action: 'Correct every line listed; docs/plan.md describes the shape.',
  },
  TOPOLOGY_ALREADY_ALIVE: {
    when: 'A topology of this name is alive.',
    action: 'Kill it first, or choose another name.',
  },
  TOPOLOGY_NOT_ALIVE: {
    when: 'No topology of this name is alive.',
    action: 'Check the name; `isobar list` shows those that are there.',
  },
  TRANSITION_ILLEGAL: {
    when: 'A topology cannot do what was asked in the status that it is in, such as a rebalance of one that is killed.',
    action:
      'See `isobar describe NAME`, and wait until its status has changed. A kill cannot be taken back, and what is FINISHED, FAILED or STOPPED does not go on: kill it, and submit it again.',
  },
  RESOURCES_NOT_HEEDED: {
    when: 'A rebalance gives resources of components that nobody would look at: the strategy of the cluster does not place by resources, or a resource is not known.',
    action: 'Use `scheduling.strategy` `resource-aware` and one of the resources listed, or leave `-r` out.',
  },
  COMPONENT_NOT_FOUND: {
    when: 'A command names a component that the topology does not have.',
    action: 'Use one of the components listed.',
  },
  BUNDLE_DAMAGED: {
    when: 'The code that Nimbus received is not what was sent.',
    action: 'Submit again; if it lasts, look for what changes data between the two.',
    retryable: true,
  },
  BUNDLE_TOO_LARGE: {
    when: 'The bundle of a topology is larger than submit.max-bundle-bytes.',
    action:
      'Import less, keep data in files that are read at run time, or raise submit.max-bundle-bytes of the daemons.',
  },
  TOPOLOGY_CODE_LOST: {
    when: 'The stored code of a topology is missing or damaged.',
    action: 'Submit the topology again; other topologies are not affected.',
  },
  TEST_NOT_ENDED: {
    when: 'In a test with isobar/testing, what was waited for did not come about before nothing was left to do.',
    action:
      'End or resume the sources, and look at the errors and the pending rows that the message names; raise `limit` if it only takes longer.',
  },
  GRAPH_MISMATCH: {
    when: 'The graph that a worker rebuilt differs from the submitted description.',
    action: 'Build from constants and settings only, so that every worker builds the same graph.',
  },
  MODULE_MISSING_IN_WORKER: {
    when: 'A worker cannot load a module that the topology imports.',
    action: 'Install the package beside the file that you run; see docs/packages.md.',
  },
  // ── daemons ──
  STATE_DIRECTORY_UNUSABLE: {
    when: 'The state directory cannot be created, read or written (rights, full disk, not a directory).',
    action:
      'Fix the rights or free space, or choose another directory with --state, with --directory of `isobar dev`, or with ISOBAR_HOME.',
  },
  STATE_DIRECTORY_OWNED: {
    when: 'Another running process (a coordinator, a supervisor, a keeper) owns the directory.',
    action: 'Stop that one, or choose another directory.',
  },
  STATE_VERSION_UNKNOWN: {
    when: "The state directory or the coordinator's data were written by another version of the format.",
    action: 'Use the version that wrote it, or choose another directory or chroot.',
  },
  STATE_DAMAGED: {
    when: 'A record in the middle of the state is damaged (a torn last record is tolerated).',
    action: 'Restore the directory from a copy, or choose another one; the damaged file is left as it is.',
  },
  SOCKET_PATH_TOO_LONG: {
    when: 'A Unix socket path is longer than 107 bytes, which Node would cut silently.',
    action: 'Choose a shorter directory for sockets.',
  },
  COORDINATOR_UNAVAILABLE: {
    when: 'The coordinator does not answer.',
    action:
      'Look whether it runs and the address is right. What runs goes on without it and tries again by itself.',
    retryable: true,
  },
  COORDINATOR_ADDRESS_INVALID: {
    when: 'The address of the coordinator is neither the path of a socket nor a well-formed ZooKeeper address.',
    action: 'Write it as zookeeper://HOST:PORT,HOST:PORT/CHROOT.',
  },
  COORDINATOR_CREDENTIALS_INVALID: {
    when: 'The file with the credentials for the coordinator is missing, unreadable or not of the form user:password.',
    action: 'Correct the file that coordinator.credentials-file names.',
  },
  COORDINATOR_ACCESS_DENIED: {
    when: "The coordinator's access rules refuse this process: credentials are missing or wrong.",
    action: 'Give all daemons the credentials that the cluster was made with (coordinator.credentials-file).',
  },
  COORDINATOR_DATA_FOREIGN: {
    when: "The place in the coordinator holds data of something else, or of another Isobar cluster than this daemon's.",
    action: 'Choose another chroot, or another directory for this daemon.',
  },
  COORDINATOR_DATA_LOST: {
    when: 'The coordinator answers, but no longer holds the data of this cluster.',
    action:
      "Restore the coordinator's data: workers go on meanwhile. docs/coordinator.md says how to give it up.",
  },
  SESSION_EXPIRED: {
    when: 'The coordinator ended this session after its time-out.',
    action: 'A new session is opened by itself.',
    retryable: true,
  },
  NODE_EXISTS: { when: 'A coordinator node to be created exists.', action: 'Read it and decide again.' },
  NODE_MISSING: { when: 'A coordinator node to be read or changed does not exist.', action: 'Read again.' },
  NODE_TOO_LARGE: {
    when: 'A value is larger than one coordinator node can hold.',
    action: 'Keep large data in files; the coordinator is for decisions.',
  },
  VERSION_CONFLICT: {
    when: 'A coordinator node changed between reading and writing it.',
    action: 'Read again and decide on the new value.',
    retryable: true,
  },
  GENERATION_OUTDATED: {
    when: 'A message or write carries a generation older than one that was seen.',
    action: 'Nothing: it comes from a process that has been replaced.',
  },
  ASSIGNMENT_INVALID: {
    when: 'A scheduling strategy returned an assignment that breaks a rule.',
    action: 'Report it with the output shown; the topology keeps its previous assignment.',
  },
  STRATEGY_FAILED: {
    when: 'A scheduling strategy threw, did not answer within scheduling.deadline, or returned something that is no placement.',
    action:
      'Its topologies keep what they have, and no other is affected. Correct the module of an installed strategy (docs/own-strategy.md), try it with `isobar plan --strategy NAME`, or raise scheduling.deadline.',
  },
  NO_FREE_SLOT: {
    when: 'Executors of a topology have no slot.',
    action:
      'Add a supervisor, raise supervisor.slots, or kill another topology; it is placed as soon as there are slots.',
    retryable: true,
  },
  SLOT_OCCUPIED: { when: 'A slot is already held by a topology.', action: 'Choose a free slot.' },
  EXECUTOR_ALREADY_ASSIGNED: { when: 'An executor already has a slot.', action: 'Free its slot first.' },
  WORKER_START_FAILED: {
    when: 'A worker process ended before it was ready.',
    action: 'See the worker log named in the message.',
    retryable: true,
  },
  TASK_NOT_SAVED: {
    when: 'A task could not be saved for a planned move (its save took too long, or its state could not be stored).',
    action:
      'Nothing is lost: the task stays where it is. Look at `save` of that bolt, or free space, and rebalance again.',
    retryable: true,
  },
  TASK_STATE_MISSING: {
    when: 'The stored state of a task that moves is missing or damaged.',
    action:
      'Nothing can bring it back: the task starts without it, and the state is named as lost. Check the disk.',
  },
  MOVE_CANCELLED: {
    when: 'A planned move was called off: its workers were not ready in time, or another one came in its place.',
    action:
      'Nothing is lost: all tasks run where they were. Rebalance again; the log of the new worker may say what kept it.',
    retryable: true,
  },
  WORKER_LOST: {
    when: 'A running worker process ended, or stopped answering.',
    action: 'Nothing: it is started again; the message names the log that may say why.',
    retryable: true,
  },
  WORKER_SILENT: {
    when: 'A worker process is there, and nothing has been heard of it for several heartbeats: it stands still, or its supervisor does.',
    action:
      'Look at the process (its pid is in `isobar describe NAME`): stopped, or without processor time? After topology.worker-timeout it is replaced.',
    retryable: true,
  },
  THREAD_STUCK: {
    when: 'An executor thread has been inside one call of user code for longer than worker.stuck-warning.',
    action:
      'See `isobar why NAME`. Set worker.stuck-timeout to have such threads ended, or end the worker process: it is started again, and rows are replayed.',
    retryable: true,
  },
  WORKER_MEMORY_EXCEEDED: {
    when: 'A worker took more memory than its executors have asked for, and more than the machine could spare; it was stopped and is started again.',
    action:
      'Ask for more (`topology.component-heap` and `topology.component-off-heap`, or `isobar rebalance -r`), or find out what grows; docs/operating.md#memory says how limits are made.',
    retryable: true,
  },
  NOT_LEADER: {
    when: 'A request that changes the cluster reached a Nimbus that does not lead.',
    action: 'Try again: the request is answered once a Nimbus leads.',
    retryable: true,
  },
  PEER_PROTOCOL_ERROR: {
    when: 'The other side of a connection sent what is no valid frame, handshake or control message, or did not read what it was sent; it was disconnected.',
    action: 'Look for a process that connects to the wrong socket, or that has been stopped.',
  },
  MESSAGE_TOO_LARGE: {
    when: 'A control message, such as a submission with its bundle, is larger than 256 MiB.',
    action: 'Make the bundle smaller: read large data when the topology runs instead of importing it.',
  },
  PEER_REFUSED: {
    when: 'A peer failed the handshake (version, topology, secret or generation).',
    action: 'Check that both ends run the same version and belong to the same topology.',
  },
  DAEMON_LOST: {
    when: 'The local daemon ended and could not be restarted.',
    action: 'See the daemon log named in the message.',
  },
  DAEMON_NOT_RUNNING: {
    when: 'A command found no daemon in the directory of the cluster.',
    action: 'Start one with `isobar dev`, or name the directory of another with --directory.',
    retryable: true,
  },
  DAEMON_VERSION_MISMATCH: {
    when: 'The daemon speaks another version of the control contract than the command.',
    action: 'Use the `isobar` that started the daemon, or restart the daemon with this one.',
  },
  DEV_ALREADY_RUNNING: {
    when: '`isobar dev` was given options other than those that the running cluster, or supervisor, was started with.',
    action:
      'For other settings run `isobar dev stop --keep-workers` (workers go on) and then `isobar dev` with all that is to hold; add a supervisor with `isobar dev supervisor start`.',
  },
  SUPERVISOR_UNKNOWN: {
    when: 'A command names a supervisor that the cluster does not have.',
    action: 'Use one of the names listed; `isobar dev status` shows them.',
  },
  REQUEST_TIMEOUT: {
    when: 'A daemon did not answer a request in time.',
    action: 'Try again; if it lasts, look into the daemon log.',
    retryable: true,
  },
  CONNECTION_LOST: {
    when: 'The connection to a daemon broke while a request was under way.',
    action: 'Try again.',
    retryable: true,
  },
  USAGE: {
    when: 'The command line is not understood.',
    action: 'See isobar --help, and --help of the command.',
  },
  OUTPUT_LOST: {
    when: "Lines that a topology's code printed were lost: more was printed than its log keeps before `isobar run` had shown it, or the log could not be written.",
    action:
      'Print less, or raise `log.max-file-bytes` and `log.files`; free space if the disk is full. Results belong into a bolt that writes them.',
  },
  OUTPUT_UNWRITABLE: {
    when: 'What the command printed could not be written, for another reason than a closed pipe.',
    action: 'Free space, or send the output elsewhere; the topology itself was drained.',
  },
  INTERNAL: {
    when: 'A promise that Isobar makes to itself was broken.',
    action: 'Please report it with the stack shown.',
  },
} as const satisfies Record<string, ErrorFacts>;

/** A stable error code. */
export type ErrorCode = keyof typeof ERROR_TABLE;

/** Facts that belong to one occurrence: what was expected, what was found and where, and anything else worth showing. */
export interface ErrorDetails {
  readonly expected?: string;
  readonly found?: string;
  readonly where?: string;
  readonly [name: string]: unknown;
}

/** An error as it travels between processes and threads. */
export interface ErrorRecord {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
  readonly stack?: string;
  readonly cause?: ErrorRecord;
}

/** The error that every part of Isobar throws. */
export class IsobarError extends Error {
  override readonly name = 'IsobarError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  /** What the reader should do next. */
  get action(): string {
    return ERROR_TABLE[this.code].action;
  }

  get retryable(): boolean {
    const facts: ErrorFacts = ERROR_TABLE[this.code];
    return facts.retryable ?? false;
  }

  /**
   * Rebuilds an error that came from another process or thread; its stack is the one of the origin. What is no record of
   * this version becomes an error all the same.
   */
  static from(record: ErrorRecord): IsobarError {
    return rebuild(record, MAX_CAUSES) ?? new IsobarError('INTERNAL', 'an error came that cannot be read');
  }
}

/** Is this an {@link IsobarError} with the given code? */
export function hasCode(error: unknown, code: ErrorCode): error is IsobarError {
  return error instanceof IsobarError && error.code === code;
}

/** What the system says of a disk that takes nothing more, or never did. */
const DISK_REFUSALS: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EROFS']);

/**
 * Turns anything thrown into an {@link IsobarError}; unknown errors get `code`. Without one it is `INTERNAL`, or
 * `STATE_DIRECTORY_UNUSABLE` where the disk is full or read-only. An error of another copy of this package (a bundle may
 * hold one) keeps its code.
 */
export function toIsobarError(thrown: unknown, code?: ErrorCode, details: ErrorDetails = {}): IsobarError {
  if (!isError(thrown)) return new IsobarError(code ?? 'INTERNAL', describe(thrown), details, thrown);
  if (thrown instanceof IsobarError) return thrown;
  const known = foreignError(thrown) ?? (code === undefined ? diskRefusal(thrown) : undefined);
  const cause = known === undefined ? thrown : known.cause;
  const error = new IsobarError(
    known?.code ?? code ?? 'INTERNAL',
    textOf(thrown, 'message') ?? 'an error without a message was thrown',
    { ...details, ...known?.details },
    cause,
  );
  const stack = textOf(thrown, 'stack');
  if (stack !== undefined) error.stack = stack;
  return error;
}

/** Proxies may throw whatever they are asked. */
function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error;
  } catch {
    return false;
  }
}

/** A property of a thrown object, which need not be what its type says; undefined unless it is text. */
function textOf(thrown: Error, name: 'message' | 'stack'): string | undefined {
  try {
    const text: unknown = thrown[name];
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

function causeOf(thrown: Error): unknown {
  try {
    return thrown.cause;
  } catch {
    return undefined;
  }
}

interface KnownError {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly cause: unknown;
}

/** Of a write of Isobar's own that nobody has named the place of: user code's errors come with a code. */
function diskRefusal(thrown: Error): KnownError | undefined {
  const { code, path } = thrown as NodeJS.ErrnoException;
  if (!DISK_REFUSALS.has(code)) return undefined;
  const where = typeof path === 'string' ? { where: path } : {};
  return {
    code: 'STATE_DIRECTORY_UNUSABLE',
    details: { expected: 'a directory that can be written', ...where },
    cause: thrown,
  };
}

function foreignError(thrown: Error): KnownError | undefined {
  try {
    if (thrown.name !== 'IsobarError' || !('code' in thrown)) return undefined;
    const { code } = thrown;
    if (!isErrorCode(code)) return undefined;
    const details = 'details' in thrown && typeof thrown.details === 'object' ? thrown.details : null;
    return { code, details: { ...details }, cause: thrown.cause };
  } catch {
    return undefined;
  }
}

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code);
}

/** Longer chains of causes, and so all that run in circles, are cut. */
const MAX_CAUSES = 8;

/** The form in which an error crosses a process or thread: text, and details that can be cloned. */
export function toErrorRecord(thrown: unknown): ErrorRecord {
  return recordOf(thrown, MAX_CAUSES);
}

function recordOf(thrown: unknown, maxCauses: number): ErrorRecord {
  const error = toIsobarError(thrown);
  // An error that was wrapped just now has itself as its cause: what matters is the cause behind it.
  const cause = error === thrown ? error.cause : isError(thrown) ? causeOf(thrown) : undefined;
  return {
    code: error.code,
    message: error.message,
    details: cloneable(error.details),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(maxCauses > 0 && isError(cause) && cause !== thrown ? { cause: recordOf(cause, maxCauses - 1) } : {}),
  };
}

/** Details without what cannot be sent: an error must arrive whatever it carries. */
function cloneable(details: ErrorDetails): ErrorDetails {
  return Object.fromEntries(Object.entries(details).filter(([, value]) => isCloneable(value)));
}

function isCloneable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null)
    return typeof value !== 'function' && typeof value !== 'symbol';
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

/** Undefined for what is no record at all. */
function rebuild(record: unknown, maxCauses: number): IsobarError | undefined {
  if (typeof record !== 'object' || record === null) return undefined;
  const { code, message, details, stack, cause } = record as Readonly<Record<string, unknown>>;
  const error = new IsobarError(
    isErrorCode(code) ? code : 'INTERNAL',
    typeof message === 'string' ? message : describe(message),
    typeof details === 'object' ? { ...details } : {},
    maxCauses === 0 ? undefined : rebuild(cause, maxCauses - 1),
  );
  if (typeof stack === 'string') error.stack = stack;
  return error;
}

function describe(value: unknown): string {
  try {
    return typeof value === 'string' ? value : `thrown value: ${String(value)}`;
  } catch {
    return 'a value that cannot be printed was thrown';
  }
}
