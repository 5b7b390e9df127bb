/** What the builder gives to a topology's file: handles of components, their streams, and the groupings. Types only. */
import type { BoltDefinition } from './bolt.js';
import type { Fields, FieldsByName, RowOf } from './fields.js';
import type { AtLeastOne, FieldNameOf, FieldsOf, Fit, StreamHandle, StreamSource } from './fit.js';
import type { CustomGrouping } from './runtime.js';
import type { SpoutDefinition } from './spout.js';

/**
 * The ways to subscribe to a stream. Each adds one subscription and returns the bolt's handle, so that calls chain; each
 * can be called later too, so that cycles can be written.
 */
export interface Groupings<Takes, Handle> {
  /** Evenly over the tasks. */
  shuffle<Source extends StreamSource>(source: Fit<Source, Takes>): Handle;
  /** As `shuffle`, among the tasks in the sender's worker where there are any. */
  localOrShuffle<Source extends StreamSource>(source: Fit<Source, Takes>): Handle;
  /** Rows with equal values in the key fields go to the same task. */
  fields<Source extends StreamSource, const Keys extends readonly FieldNameOf<Source>[]>(
    source: Fit<Source, Takes>,
    keys: Keys & AtLeastOne<Keys>,
  ): Handle;
  /** As `fields`, but each key has two tasks and the sender takes the one that it has used less. */
  partialKey<Source extends StreamSource, const Keys extends readonly FieldNameOf<Source>[]>(
    source: Fit<Source, Takes>,
    keys: Keys & AtLeastOne<Keys>,
  ): Handle;
  /** Every row to every task. */
  all<Source extends StreamSource>(source: Fit<Source, Takes>): Handle;
  /** Every row to the task with the lowest number. */
  global<Source extends StreamSource>(source: Fit<Source, Takes>): Handle;
  /** No wish: a task by chance. */
  none<Source extends StreamSource>(source: Fit<Source, Takes>): Handle;
  /** The sender names the task: `out.direct(taskIndex, row)`. */
  direct<Source extends StreamSource>(source: Fit<Source, Takes>): Handle;
  /** Your own choice of tasks; `create` is called once in each sending task. */
  custom<Source extends StreamSource>(
    source: Fit<Source, Takes>,
    create: () => CustomGrouping<RowOf<FieldsOf<Source>>>,
  ): Handle;
}

/** A spout of the topology, and at the same time its main stream. */
export interface SpoutHandle<E extends Fields | undefined, S extends FieldsByName> extends StreamHandle<E> {
  /** The further streams, by name. */
  readonly streams: { readonly [N in keyof S]: StreamHandle<S[N]> };
}

/** A bolt with one input. */
export interface BoltHandle<T, E extends Fields | undefined, S extends FieldsByName>
  extends SpoutHandle<E, S>,
    Groupings<T, BoltHandle<T, E, S>> {}

/** A bolt with named inputs. */
export interface JoinHandle<I, E extends Fields | undefined, S extends FieldsByName>
  extends SpoutHandle<E, S> {
  /** Subscribes one input: `.on.order.fields(orders, ['id'])`. */
  readonly on: { readonly [N in keyof I]: Groupings<I[N], JoinHandle<I, E, S>> };
}

/** Options of a component. */
export interface ComponentOptions {
  /** Executors; default 1. */
  readonly parallelism?: number;
  /** Tasks, fixed while the topology lives; default: setting `topology.tasks`, else as many as executors. */
  readonly tasks?: number;
  /** Tasks may be moved while the topology runs, although state stays behind; default: what the definition says. */
  readonly movable?: boolean;
  /** Components of one group may share a worker, those of different groups never do; default: all share. */
  readonly slotSharingGroup?: string;
  /** The i-th executors of all components of one group share a worker; they have the same parallelism. */
  readonly coLocationGroup?: string;
  /** What one executor weighs when load is balanced, from 0; default 1. */
  readonly load?: number;
}

/** Adds components. Valid only inside the function given to `topology`. */
export interface TopologyBuilder {
  spout<E extends Fields | undefined, S extends FieldsByName>(
    id: string,
    definition: SpoutDefinition<E, S>,
    options?: ComponentOptions,
  ): SpoutHandle<E, S>;
  bolt<
    T extends Fields | undefined,
    I extends FieldsByName | undefined,
    E extends Fields | undefined,
    S extends FieldsByName,
  >(
    id: string,
    definition: BoltDefinition<T, I, E, S>,
    options?: ComponentOptions,
  ): [I] extends [undefined] ? BoltHandle<T, E, S> : JoinHandle<I, E, S>;
}
