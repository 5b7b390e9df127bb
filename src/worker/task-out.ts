/**
 * The collectors behind `out`.
 *
 * A synchronous bolt's task uses one BoltOut for all its calls; a call that returns a promise takes the BoltOut with it
 * and the task gets a new one, so `out` is open exactly while the call that it was given to lasts.
 */
import { IsobarError, toIsobarError } from '../base/index.js';
import {
  DEFAULT_STREAM,
  type Anchor,
  type EmitOptions,
  type Row,
  type RuntimeOut,
} from '../topology/index.js';
import type { EdgeIds } from './acking/edge-ids.js';
import { C_EMITTED, C_TRANSFERRED, P_IN_CALL } from './counters.js';
import type { EmitCause, StreamOutputs } from './outputs.js';
import { SEVERAL, SEVERAL_WORDS, type ThreadContext } from './thread-context.js';

/** What a collector needs of the task that emits. */
export interface EmittingTask {
  readonly number: number;
  readonly component: string;
  readonly context: ThreadContext;
  readonly streams: ReadonlyMap<string, StreamOutputs>;
  readonly defaultStream: StreamOutputs | undefined;
  readonly counters: Float64Array;
}

/** Finds a declared stream and checks the row against it. */
export function canonicalRow(task: EmittingTask, stream: StreamOutputs, row: Row): Row {
  try {
    return stream.codec.canonical(row);
  } catch (error) {
    const fault = toIsobarError(error);
    throw new IsobarError(
      fault.code,
      `${fault.message} (emitted by "${task.component}" to stream "${stream.name}")`,
      {
        ...fault.details,
        where: `component "${task.component}", stream "${stream.name}"`,
      },
    );
  }
}

export function streamOf(task: EmittingTask, name: string): StreamOutputs {
  const stream = name === DEFAULT_STREAM ? task.defaultStream : task.streams.get(name);
  if (stream === undefined) {
    throw new IsobarError(
      'STREAM_UNKNOWN',
      `"${task.component}" emits to stream "${name}", which it does not declare`,
      {
        expected: `one of ${[...task.streams.keys()].join(', ') || 'no stream at all'}`,
        found: name,
        where: `component "${task.component}"`,
      },
    );
  }
  return stream;
}

export class BoltOut implements RuntimeOut, EmitCause {
  rootTask = 0;
  rootGeneration = 0;
  rootSequence = 0;
  several: Int32Array | null = null;
  edgesHigh = 0;
  edgesLow = 0;
  hasCycleToken = false;
  open = false;
  /** The anchor of the row being processed, in manual bolts. */
  anchor: ManualAnchor | null = null;
  readonly #task: EmittingTask;

  constructor(task: EmittingTask) {
    this.#task = task;
  }

  /** Opens for a call caused by one row, or by nothing (rootTask 0). */
  begin(
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    several: Int32Array | null,
    hasCycleToken: boolean,
  ): void {
    this.hasCycleToken = hasCycleToken;
    this.rootTask = rootTask;
    this.rootGeneration = rootGeneration;
    this.rootSequence = rootSequence;
    this.several = several;
    this.edgesHigh = 0;
    this.edgesLow = 0;
    this.open = true;
  }

  emit(stream: string, row: Row, options?: EmitOptions, direct?: number): void {
    const task = this.#task;
    if (!this.open) {
      throw new IsobarError(
        'EMIT_OUTSIDE_PROCESS',
        `"${task.component}" emitted after the call that \`out\` belongs to had ended`,
        {
          expected: 'emit before process returns, or before its promise settles',
          found: 'a later emit',
          where: `component "${task.component}", task ${task.number}`,
        },
      );
    }
    const outputs = streamOf(task, stream);
    const canonical = canonicalRow(task, outputs, row);
    const cause = options?.anchors === undefined ? this.#ownCause() : joinAnchors(options.anchors);
    const sent = task.context.emit(outputs, canonical, task.number, cause, direct);
    task.counters[C_EMITTED]!++;
    task.counters[C_TRANSFERRED]! += sent;
    // Emitted by a call whose promise is open: the thread may be asleep.
    if (task.context.options.progress[P_IN_CALL] === 0) task.context.options.wake();
  }

  #ownCause(): EmitCause {
    const { anchor } = this;
    if (anchor === null) return this;
    if (!anchor.settled) return anchor;
    // Its ack has left without this row's edge: the tree could never come out even.
    throw new IsobarError(
      'ANCHOR_MISUSED',
      'a row was emitted after the row that caused it was acked or failed',
      {
        expected: 'emit first, then ack() or fail(); or name other anchors',
        found: 'an anchor that is settled',
        where: `component "${this.#task.component}", task ${this.#task.number}`,
      },
    );
  }
}

/** A row held by a manual bolt until user code acks or fails it. */
export class ManualAnchor implements Anchor, EmitCause {
  readonly rootTask: number;
  readonly rootGeneration: number;
  readonly rootSequence: number;
  readonly several: Int32Array | null;
  edgesHigh: number;
  edgesLow: number;
  hasCycleToken: boolean;
  settled = false;
  /** Held for longer than the message time-out: its tree has failed, and what user code still does with it means nothing. */
  expired = false;
  /** Milliseconds of the worker's clock at which user code got it. */
  readonly sinceMs: number;
  readonly #owner: { onSettled(anchor: ManualAnchor, failure: { error: unknown } | null): void };

  constructor(
    owner: { onSettled(anchor: ManualAnchor, failure: { error: unknown } | null): void },
    root: {
      rootTask: number;
      rootGeneration: number;
      rootSequence: number;
      several: Int32Array | null;
      edgeHigh: number;
      edgeLow: number;
      hasCycleToken: boolean;
    },
    sinceMs: number,
  ) {
    this.#owner = owner;
    this.rootTask = root.rootTask;
    this.rootGeneration = root.rootGeneration;
    this.rootSequence = root.rootSequence;
    this.several = root.several;
    this.edgesHigh = root.edgeHigh;
    this.edgesLow = root.edgeLow;
    this.hasCycleToken = root.hasCycleToken;
    this.sinceMs = sinceMs;
  }

  ack(): void {
    this.#settle(null);
  }

  fail(error?: unknown): void {
    this.#settle({ error });
  }

  #settle(failure: { error: unknown } | null): void {
    if (this.settled) {
      throw new IsobarError('ANCHOR_MISUSED', 'an anchor was acked or failed a second time', {
        expected: 'exactly one ack() or fail()',
        found: 'another one',
      });
    }
    this.settled = true;
    if (!this.expired) this.#owner.onSettled(this, failure);
  }
}

/**
 * The cause of a row that several held rows caused. Each held row gets an edge of its own, and where rows share a root
 * the new row carries the XOR of their edges at that root, so that every ledger comes out even (as Storm does it).
 */
class JoinedAnchors implements EmitCause {
  readonly rootTask: number;
  readonly rootGeneration = 0;
  readonly rootSequence = 0;
  readonly several = null;
  edgesHigh = 0;
  edgesLow = 0;
  readonly #anchors: readonly { readonly anchor: ManualAnchor; readonly places: readonly number[] }[];
  readonly #roots: Int32Array;
  /** Edge halves drawn last, two per anchor. */
  #woven: number[] = [];

  constructor(anchors: readonly ManualAnchor[]) {
    const placeOf = new Map<string, number>();
    const roots: number[] = [];
    this.#anchors = anchors.map((anchor) => ({
      anchor,
      places: rootsOf(anchor).map((root) => {
        const key = root.join('/');
        const known = placeOf.get(key);
        if (known !== undefined) return known;
        const place = roots.length;
        placeOf.set(key, place);
        roots.push(...root, 0, 0);
        return place;
      }),
    }));
    this.#roots = Int32Array.from(roots);
    this.rootTask = roots.length > 0 ? SEVERAL : 0;
  }

  get hasCycleToken(): boolean {
    return this.#anchors.some(({ anchor }) => anchor.hasCycleToken);
  }

  /** One row takes the place of one of those that caused it. */
  set hasCycleToken(hasToken: boolean) {
    const giver = this.#anchors.find(({ anchor }) => anchor.hasCycleToken);
    if (giver !== undefined) giver.anchor.hasCycleToken = hasToken;
  }

  weave(ids: EdgeIds): Int32Array {
    const several = this.#roots.slice();
    this.#woven = [];
    for (const { places } of this.#anchors) {
      ids.next();
      this.#woven.push(ids.high, ids.low);
      for (const place of places) {
        several[place + 3]! ^= ids.high;
        several[place + 4]! ^= ids.low;
      }
    }
    return several;
  }

  onWovenSent(): void {
    for (const [i, { anchor }] of this.#anchors.entries()) {
      anchor.edgesHigh ^= this.#woven[2 * i]!;
      anchor.edgesLow ^= this.#woven[2 * i + 1]!;
    }
  }
}

function joinAnchors(anchors: readonly Anchor[]): EmitCause {
  const held = anchors.map((anchor) => {
    if (!(anchor instanceof ManualAnchor) || anchor.settled) {
      throw new IsobarError('ANCHOR_MISUSED', 'a row was anchored to something that is not a held row', {
        expected: 'anchors that process was given and that are not acked or failed yet',
        found: anchor instanceof ManualAnchor ? 'an anchor that is settled' : typeof anchor,
      });
    }
    return anchor;
  });
  const [only] = held;
  if (held.length === 1) return only!;
  return new JoinedAnchors(held);
}

function rootsOf(anchor: ManualAnchor): number[][] {
  if (anchor.rootTask === 0) return [];
  if (anchor.several === null) return [[anchor.rootTask, anchor.rootGeneration, anchor.rootSequence]];
  const roots: number[][] = [];
  for (let at = 0; at < anchor.several.length; at += SEVERAL_WORDS) {
    roots.push([anchor.several[at]!, anchor.several[at + 1]!, anchor.several[at + 2]!]);
  }
  return roots;
}
