/** The types of a bolt's parts: what the compiler checks of `bolt({ … })`. */
import type { Fields, FieldsByName, RowOf } from './fields.js';
import type { Out } from './out.js';
import type { Anchor, TaskContext } from './runtime.js';

/** A period such as `'1s'`, `'250ms'`, `'2m'`; a plain number is milliseconds. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/** Options of an emit of a bolt that acks its rows itself. */
export interface ManualEmitOptions {
  /** The held rows that caused this one; default: the row being processed. */
  readonly anchors?: readonly Anchor[];
}

/** The collector of a bolt. */
export type BoltOut<E, S, Manual> = Out<E, S, Manual extends true ? ManualEmitOptions : never>;

/** A bolt's work on one row. */
export type Process<Row, E, S, Manual> = Manual extends true
  ? (row: Row, out: BoltOut<E, S, Manual>, anchor: Anchor) => unknown
  : (row: Row, out: BoltOut<E, S, Manual>) => unknown;

/** One function per named input. */
export type ProcessByInput<I, E, S, Manual> = {
  readonly [N in keyof I]: Process<RowOf<I[N]>, E, S, Manual>;
};

interface Moments<E, S, Manual> {
  /** Once per period of `every`. What it emits is rooted at this task; a failed tick is reported, not repeated. */
  tick?(out: BoltOut<E, S, Manual>): unknown;
  /** All inputs have ended (bounded topologies only). May be called again after a restart. */
  end?(out: BoltOut<E, S, Manual>): unknown;
  /** The last call: release what the task holds. Not called when the process is killed. */
  close?(): unknown;
}

/** What `prepare` returns: one task with its state. */
export interface BoltHandlers<Work, E, S, Manual, Saved> extends Moments<E, S, Manual> {
  readonly process: Work;
  /** The state as plain data, when the task is about to be moved; it comes back as `saved`. */
  save?(): Saved;
}

type Stateless<Work, E, S, Manual> = Moments<E, S, Manual> & {
  readonly process: Work;
  readonly prepare?: undefined;
};

interface Stateful<Work, E, S, Manual, Saved> {
  readonly process?: undefined;
  readonly tick?: undefined;
  readonly end?: undefined;
  readonly close?: undefined;
  prepare(
    context: TaskContext,
    saved: Saved | undefined,
  ): BoltHandlers<Work, E, S, Manual, Saved> | Promise<BoltHandlers<Work, E, S, Manual, Saved>>;
}

type Working<Work, E, S, Manual, Saved> = Stateless<Work, E, S, Manual> | Stateful<Work, E, S, Manual, Saved>;

/** The parts of a bolt. */
export type BoltParts<
  T extends Fields | undefined,
  I extends FieldsByName | undefined,
  E extends Fields | undefined,
  S extends FieldsByName,
  Manual extends boolean,
  Saved,
> = {
  /** Fields of the main stream; a bolt without streams is a sink. */
  readonly emits?: E;
  /** Fields of further streams, by name. */
  readonly streams?: S;
  /** Period of `tick`. */
  readonly every?: Duration;
  /** Rows are acked by user code through the third argument of `process`. */
  readonly manual?: Manual;
  /** Asynchronous bolts: rows of one key may overtake each other. */
  readonly unordered?: boolean;
  /** Tasks may be moved although they have state that stays behind. */
  readonly movable?: boolean;
} & (
  | ({ readonly takes: T; readonly inputs?: undefined } & Working<
      Process<RowOf<T>, E, S, Manual>,
      E,
      S,
      Manual,
      Saved
    >)
  | ({ readonly inputs: I; readonly takes?: undefined } & Working<
      ProcessByInput<I, E, S, Manual>,
      E,
      S,
      Manual,
      Saved
    >)
);
