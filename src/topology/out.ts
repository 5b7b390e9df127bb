/**
 * `out` as user code sees it: typed by the declared streams, and a thin layer over the worker's {@link RuntimeOut}.
 *
 * Its cost matters, since every row passes through it: the layer is built once for each RuntimeOut (once per task, as
 * long as the task is synchronous), and an emit through it is one more call and no allocation. Its functions are bound:
 * `const { emit } = out` works.
 */
import { DEFAULT_STREAM } from './description.js';
import type { EmitRow, Fields, NoNames } from './fields.js';
import type { EmitOptions, Row, RuntimeOut } from './runtime.js';

/** Emits a row to every subscriber of a stream. */
export type Emit<F, Options = never> = [Options] extends [never]
  ? (row: EmitRow<F>) => void
  : (row: EmitRow<F>, options?: Options) => void;

/** Emits a row to one task of each direct subscriber of a stream; tasks of a component are counted from 0. */
export type EmitDirect<F, Options = never> = [Options] extends [never]
  ? (taskIndex: number, row: EmitRow<F>) => void
  : (taskIndex: number, row: EmitRow<F>, options?: Options) => void;

interface MainStreamOut<F, Options> {
  /** Emits to the main stream. */
  readonly emit: Emit<F, Options>;
  /** Emits to the main stream's direct subscribers: the task with this index (from 0) among the receiving component's. */
  readonly direct: EmitDirect<F, Options>;
}

interface NamedStreamsOut<S, Options> {
  /** Emits to a further stream: `out.to.rejects(row)`. */
  readonly to: { readonly [N in keyof S]: Emit<S[N], Options> };
  /** Emits to the direct subscribers of a further stream: `out.directTo.rejects(taskIndex, row)`. */
  readonly directTo: { readonly [N in keyof S]: EmitDirect<S[N], Options> };
}

/** The collector of a component with main stream `E` and further streams `S`. Valid only in the call it was given to. */
export type Out<E, S, Options = never> = ([E] extends [Fields] ? MainStreamOut<E, Options> : NoNames) &
  ([keyof S] extends [never] ? NoNames : NamedStreamsOut<S, Options>);

type UntypedEmit = (row: Row, options?: EmitOptions) => void;
type UntypedEmitDirect = (taskIndex: number, row: Row, options?: EmitOptions) => void;

/** The one implementation behind every {@link Out}. */
export class TaskOut {
  readonly emit: UntypedEmit;
  readonly direct: UntypedEmitDirect;
  readonly #runtime: RuntimeOut;
  readonly #streams: readonly string[];
  #to: Readonly<Record<string, UntypedEmit>> | undefined;
  #directTo: Readonly<Record<string, UntypedEmitDirect>> | undefined;

  constructor(runtime: RuntimeOut, streams: readonly string[]) {
    this.#runtime = runtime;
    this.#streams = streams;
    this.emit = (row, options) => runtime.emit(DEFAULT_STREAM, row, options);
    this.direct = (taskIndex, row, options) => runtime.emit(DEFAULT_STREAM, row, options, taskIndex);
  }

  get to(): Readonly<Record<string, UntypedEmit>> {
    return (this.#to ??= byName(
      this.#streams,
      (name): UntypedEmit =>
        (row, options) =>
          this.#runtime.emit(name, row, options),
    ));
  }

  get directTo(): Readonly<Record<string, UntypedEmitDirect>> {
    return (this.#directTo ??= byName(
      this.#streams,
      (name): UntypedEmitDirect =>
        (taskIndex, row, options) =>
          this.#runtime.emit(name, row, options, taskIndex),
    ));
  }
}

/**
 * Makes one task's binder: it gives the same {@link TaskOut} as long as it is asked with the same RuntimeOut, and a new
 * one for a new one (an asynchronous call has a RuntimeOut of its own).
 */
export function createOutBinder(streams: readonly string[]): (runtime: RuntimeOut) => TaskOut {
  let lastRuntime: RuntimeOut | undefined;
  let lastOut: TaskOut | undefined;
  return (runtime) => {
    if (runtime === lastRuntime && lastOut !== undefined) return lastOut;
    lastRuntime = runtime;
    lastOut = new TaskOut(runtime, streams);
    return lastOut;
  };
}

function byName<T>(names: readonly string[], make: (name: string) => T): Readonly<Record<string, T>> {
  const made = Object.create(null) as Record<string, T>; // no prototype: a stream may be called `toString`
  for (const name of names) made[name] = make(name);
  return made;
}
