/**
 * What all executors of one thread share: where tasks are, the links to other threads, edge ids, and the three moves of
 * the data path (send a row, ack, fail), each by reference within the thread and through a link otherwise.
 */
import { IsobarError, type Clock, type ErrorRecord, type Logger, type Settings } from '../base/index.js';
import {
  cycleComponents,
  type BuiltTopology,
  type ComponentDescription,
  type Row,
} from '../topology/index.js';
import { EXTRA_MARK, MOVE_PASSED } from '../messaging/index.js';
import type { EdgeIds } from './acking/edge-ids.js';
import { OverflownRoots } from './acking/overflown-roots.js';
import type { FailureReason } from './acking/replay-policy.js';
import { FAILURE_REASONS } from './counters.js';
import { CyclePressure } from './cycle-pressure.js';
import type { AloneMarks } from './crash-record.js';
import { Gate, type Link } from './link.js';
import type { Edge, EmitCause, StreamOutputs } from './outputs.js';
import type { RowTap } from './row-tap.js';
import type { FromThread } from './thread-messages.js';

/** Words of one anchor in a `several` list: root task, generation, sequence, edge high, edge low. */
export const SEVERAL_WORDS = 5;
/** Root task of a row with several anchors. */
export const SEVERAL = -1;
/**
 * Rows of this thread that wait in a queue before their senders pause. Crossing costs nothing here, so a short queue is
 * enough, and keeps rows in the cache and out of the garbage collector's way.
 */
export const LOCAL_QUEUE_ROWS = 2048;

/** A task of this thread that takes rows. */
export interface LocalTarget {
  /** For rows from outside this component's cycle, and for rows of the cycle. */
  readonly gate: Gate;
  readonly cycleGate: Gate;
  /** Takes a row of this thread. */
  accept(
    row: Row | null,
    several: Int32Array | null,
    edge: Edge,
    subscription: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    edgeHigh: number,
    edgeLow: number,
  ): void;
}

/** A task of this thread in whose ledger trees are rooted. */
export interface LocalRoot {
  readonly generation: number;
  onAck(sequence: number, high: number, low: number): void;
  onFail(sequence: number, reason: FailureReason, failingTask: number): void;
}

export interface ThreadContextOptions {
  readonly topology: BuiltTopology;
  readonly topologyId: string;
  readonly settings: Settings;
  readonly generation: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly edgeIds: EdgeIds;
  readonly random: () => number;
  readonly deadLetterDirectory: string;
  readonly acking: boolean;
  readonly post: (message: FromThread) => void;
  readonly wake: () => void;
  readonly aloneMarks: AloneMarks;
  /** Progress words of the thread (see counters.ts). */
  readonly progress: Int32Array;
}

export class ThreadContext {
  readonly options: ThreadContextOptions;
  readonly componentIndex: ReadonlyMap<string, number>;
  /** By component index: blocked while a task of it is nowhere. */
  readonly reachable: readonly Gate[];
  /** By number of the cycle in the graph. */
  readonly cycles: readonly CyclePressure[];
  /** By task number. */
  readonly localTargets: (LocalTarget | undefined)[] = [];
  readonly localRoots: (LocalRoot | undefined)[] = [];
  /** Targets that stand in for tasks on their way, in `localTargets`, and what stands there without them. */
  readonly #standIns = new Map<number, LocalTarget>();
  readonly #ownTargets = new Map<number, LocalTarget>();
  /** Link by task number; undefined for tasks of this thread and for tasks that are nowhere. */
  linkOfTask: (Link | undefined)[] = [];
  /** By endpoint id. */
  readonly links = new Map<number, Link>();
  /** A process or thread ended since the trees that are marked were: one of their rows may be behind it. */
  isLossSuspicious = false;
  /** All tasks that this thread sends to are somewhere. */
  routesStand = false;
  /** Highest endpoint id that routes have named. */
  newestEndpoint = -1;
  /** Credit for rows of endpoints that routes have not named yet, by endpoint and credit class. */
  readonly #earlyGrants = new Map<number, Map<number, number>>();
  /** Senders that wait to hear that rows have passed, by endpoint. */
  readonly #earlyPasses = new Map<number, readonly (readonly [task: number, id: number])[]>();
  /**
   * Acks and failures for roots that are nowhere now: rows can be here before the routes that say where their roots are. And
   * failures of rows whose receivers are nowhere. Bounded by the rows that were received, and by those that sources push; a
   * root that comes back is another generation and ignores them.
   */
  #homeless: (() => void)[] = [];
  /** Their rows are sent into no cycle any more. */
  readonly overflown = new OverflownRoots();
  /** Spout task whose row is out alone, so that a crash tells which row is behind it; 0: none. One at a time per thread. */
  aloneTask = 0;
  /** Somebody wants to see rows; null: nobody does. */
  tap: RowTap | null = null;
  /** What user code of each task of this thread has thrown last. */
  readonly userErrors = new Map<number, ErrorRecord>();
  /** Milliseconds of the running turn; refreshed by the loop. */
  turnMs = 0;

  constructor(options: ThreadContextOptions) {
    this.options = options;
    const components = options.topology.description.components;
    this.componentIndex = new Map(components.map((component, index) => [component.id, index]));
    const { settings } = options;
    const cycleRows = Math.min(LOCAL_QUEUE_ROWS, settings['messaging.credit']);
    this.cycles = [...new Set(cycleComponents(options.topology.description).values())].map(
      () => new CyclePressure(cycleRows),
    );
    this.reachable = components.map(() => {
      const gate = new Gate();
      gate.blocked = true;
      return gate;
    });
  }

  /** How many credit classes there are: two for each component (see Edge.creditClass). */
  get creditClasses(): number {
    return 2 * this.reachable.length;
  }

  get acking(): boolean {
    return this.options.acking;
  }

  component(id: string): ComponentDescription {
    return this.options.topology.description.components[this.componentIndex.get(id)!]!;
  }

  /** A task of this thread takes rows, or (undefined) does not any more. */
  setTarget(task: number, target: LocalTarget | undefined): void {
    if (target === undefined) this.#ownTargets.delete(task);
    else this.#ownTargets.set(task, target);
    this.localTargets[task] = this.#standIns.get(task) ?? target;
  }

  /** Rows for a task go to `standIn`, wherever the task is; undefined: to the task again. */
  setStandIn(task: number, standIn: LocalTarget | undefined): void {
    if (standIn === undefined) this.#standIns.delete(task);
    else this.#standIns.set(task, standIn);
    this.localTargets[task] = standIn ?? this.#ownTargets.get(task);
  }

  addLink(link: Link): void {
    this.links.set(link.id, link);
    this.newestEndpoint = Math.max(this.newestEndpoint, link.id);
    for (const [number, cycle] of this.cycles.entries()) if (cycle.isPressed) link.setPressure(number, true);
    const early = this.#earlyGrants.get(link.id);
    this.#earlyGrants.delete(link.id);
    for (const [creditClass, cost] of early ?? []) link.grant(creditClass, cost);
    const asked = this.#earlyPasses.get(link.id);
    this.#earlyPasses.delete(link.id);
    for (const [task, id] of asked ?? []) link.mark(MOVE_PASSED, task, id);
  }

  /** Tells a sender that the rows of a moving task have passed; a sender that routes do not name yet hears it later. */
  answerPass(origin: number, task: number, id: number): void {
    const link = this.links.get(origin);
    if (link !== undefined) link.mark(MOVE_PASSED, task, id);
    else if (origin > this.newestEndpoint)
      this.#earlyPasses.set(origin, [...(this.#earlyPasses.get(origin) ?? []), [task, id]]);
  }

  /**
   * Gives credit back for a row that came from `origin`. A frame can be here before the routes that name its sender, so
   * credit for an endpoint that is not known yet is kept; for one that is gone it means nothing.
   */
  grant(origin: number, creditClass: number, cost: number): void {
    if (origin < 0) return;
    const link = this.links.get(origin);
    if (link !== undefined) link.grant(creditClass, cost);
    else if (origin > this.newestEndpoint) {
      const early = this.#earlyGrants.get(origin) ?? new Map<number, number>();
      early.set(creditClass, (early.get(creditClass) ?? 0) + cost);
      this.#earlyGrants.set(origin, early);
    }
  }

  /** Emits a canonical row to every task that the outputs choose, anchored to `cause`. Returns how many rows were sent. */
  emit(
    stream: StreamOutputs,
    row: Row,
    sourceTask: number,
    cause: EmitCause,
    direct: number | undefined,
  ): number {
    const outputs = stream.outputs;
    if (this.tap !== null) this.tap.onEmitted(sourceTask, stream.name, row, this.turnMs);
    let sent = 0;
    for (let i = 0; i < outputs.length; i++) {
      const { router, edge } = outputs[i]!;
      const count = router.route(row, direct);
      for (let k = 0; k < count; k++) {
        this.#sendAnchored(edge, edge.firstTask + router.chosen[k]!, row, sourceTask, cause);
      }
      sent += count;
    }
    return sent;
  }

  #sendAnchored(edge: Edge, targetTask: number, row: Row, sourceTask: number, cause: EmitCause): void {
    const mark = edge.inCycle && !cause.hasCycleToken ? EXTRA_MARK : 0;
    const { rootTask } = cause;
    if (rootTask === 0) {
      this.send(edge, mark, targetTask, sourceTask, 0, 0, 0, 0, 0, null, row);
    } else if (cause.weave === undefined && cause.several === null) {
      const { rootGeneration, rootSequence } = cause;
      if (edge.inCycle && this.overflown.has(rootTask, rootGeneration, rootSequence)) {
        this.fail(rootTask, rootGeneration, rootSequence, 'overflow', sourceTask);
        return;
      }
      const ids = this.options.edgeIds;
      ids.next();
      const { high, low } = ids;
      this.send(
        edge,
        mark,
        targetTask,
        sourceTask,
        rootTask,
        rootGeneration,
        rootSequence,
        high,
        low,
        null,
        row,
      );
      // After the send: a send that throws (CYCLE_OVERFLOW) leaves no edge behind.
      cause.edgesHigh ^= high;
      cause.edgesLow ^= low;
    } else {
      this.#sendToSeveral(edge, mark, targetTask, row, sourceTask, cause);
    }
    if (edge.inCycle && mark === 0) cause.hasCycleToken = false;
  }

  /** A row that has several roots. */
  #sendToSeveral(
    edge: Edge,
    mark: number,
    targetTask: number,
    row: Row,
    sourceTask: number,
    cause: EmitCause,
  ): void {
    const ids = this.options.edgeIds;
    if (cause.weave !== undefined) {
      const woven = cause.weave(ids);
      if (edge.inCycle && this.#failIfOverflown(woven, sourceTask)) return;
      this.send(edge, mark, targetTask, sourceTask, SEVERAL, 0, 0, 0, 0, woven, row);
      cause.onWovenSent?.();
      return;
    }
    if (edge.inCycle && this.#failIfOverflown(cause.several!, sourceTask)) return;
    ids.next();
    const { high, low } = ids;
    const several = cause.several!.slice();
    for (let at = 0; at < several.length; at += SEVERAL_WORDS) {
      several[at + 3] = high;
      several[at + 4] = low;
    }
    this.send(edge, mark, targetTask, sourceTask, SEVERAL, 0, 0, 0, 0, several, row);
    cause.edgesHigh ^= high;
    cause.edgesLow ^= low;
  }

  /** The cycle has failed one of these trees: a row that belongs to it goes no further, so all of them fail. */
  #failIfOverflown(several: Int32Array, failingTask: number): boolean {
    if (this.overflown.size === 0) return false;
    for (let at = 0; at < several.length; at += SEVERAL_WORDS) {
      if (!this.overflown.has(several[at]!, several[at + 1]!, several[at + 2]!)) continue;
      this.failSeveral(several, 'overflow', failingTask);
      return true;
    }
    return false;
  }

  /** Sends one row (or, with row null, an end mark) to one task. `mark`: EXTRA_MARK or 0. */
  send(
    edge: Edge,
    mark: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    high: number,
    low: number,
    several: Int32Array | null,
    row: Row | null,
  ): void {
    const local = this.localTargets[targetTask];
    if (local !== undefined) {
      local.accept(
        row === null || edge.narrow === null ? row : edge.narrow(row),
        several,
        edge,
        edge.subscription | mark,
        targetTask,
        sourceTask,
        rootTask,
        rootGeneration,
        rootSequence,
        high,
        low,
      );
      return;
    }
    const link = this.linkOfTask[targetTask];
    if (link === undefined) {
      // Emitted by a call under way, or pushed by a source: its tree fails when routes change, and not within user code.
      if (several !== null) this.#homeless.push(() => this.failSeveral(several, 'lost', 0));
      else if (rootTask !== 0)
        this.#homeless.push(() => this.fail(rootTask, rootGeneration, rootSequence, 'lost', 0));
      return;
    }
    if (mark !== 0 && link.heldExtra(edge.creditClass) >= this.options.settings['cycle.reserve'])
      throw cycleOverflow(edge);
    link.send(
      edge.creditClass,
      edge.subscription | mark,
      targetTask,
      sourceTask,
      rootTask,
      rootGeneration,
      rootSequence,
      high,
      low,
      several,
      row,
    );
  }

  /** Acks with the XOR of the row's own edge and of those of the rows that it caused. */
  ack(rootTask: number, rootGeneration: number, rootSequence: number, high: number, low: number): void {
    const root = this.localRoots[rootTask];
    if (root !== undefined) {
      if (root.generation === rootGeneration) root.onAck(rootSequence, high, low);
      return;
    }
    const link = this.linkOfTask[rootTask];
    if (link !== undefined) link.ack(rootTask, rootGeneration, rootSequence, high, low);
    else this.#homeless.push(() => this.ack(rootTask, rootGeneration, rootSequence, high, low));
  }

  fail(
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    reason: FailureReason,
    failingTask: number,
  ): void {
    if (reason === 'overflow') this.overflown.add(rootTask, rootGeneration, rootSequence);
    const root = this.localRoots[rootTask];
    if (root !== undefined) {
      if (root.generation === rootGeneration) root.onFail(rootSequence, reason, failingTask);
      return;
    }
    const link = this.linkOfTask[rootTask];
    if (link === undefined) {
      this.#homeless.push(() => this.fail(rootTask, rootGeneration, rootSequence, reason, failingTask));
      return;
    }
    link.fail(rootTask, rootGeneration, rootSequence, FAILURE_REASONS.indexOf(reason), failingTask);
  }

  /** Sends what waited for a root, or a receiver, to be somewhere; call it when routes have changed. */
  deliverHomeless(): void {
    for (const deliver of this.#homeless.splice(0)) deliver();
  }

  ackSeveral(several: Int32Array, edgesHigh: number, edgesLow: number): void {
    for (let at = 0; at < several.length; at += SEVERAL_WORDS) {
      this.ack(
        several[at]!,
        several[at + 1]!,
        several[at + 2]!,
        several[at + 3]! ^ edgesHigh,
        several[at + 4]! ^ edgesLow,
      );
    }
  }

  failSeveral(several: Int32Array, reason: FailureReason, failingTask: number): void {
    for (let at = 0; at < several.length; at += SEVERAL_WORDS) {
      this.fail(several[at]!, several[at + 1]!, several[at + 2]!, reason, failingTask);
    }
  }
}

export function cycleOverflow(edge: Edge): IsobarError {
  return new IsobarError(
    'CYCLE_OVERFLOW',
    `the cycle through "${edge.target}" multiplies rows: its reserve is used up`,
    {
      expected: 'at most one row sent back per row',
      found: 'more rows beyond that than cycle.reserve allows',
      where: `stream "${edge.stream}" of "${edge.source}" to "${edge.target}"`,
    },
  );
}
