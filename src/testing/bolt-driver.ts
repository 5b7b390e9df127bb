/** One bolt in a test: rows go in by hand, and what it emits, acks and fails is looked at. */
import { IsobarError } from '../base/index.js';
import {
  type BoltDefinition,
  type BoltTask,
  DEFAULT_STREAM,
  type Definition,
  describedSpout,
  type Duration,
  type Fields,
  type FieldsByName,
  type Row,
  type RowOf,
  type RuntimeBolt,
  type RuntimeOut,
  topology,
  type TopologySettings,
} from '../topology/index.js';
import { recorder } from './record-rows.js';
import { type RunError, TopologyRun } from './topology-run.js';
import { wrappedBolt } from './wrapped-bolt.js';

export interface DriverOptions {
  /** What `save` returned at a former place. */
  readonly saved?: unknown;
  readonly settings?: TopologySettings;
  /** Rows are frozen before the bolt gets them; default true. */
  readonly freeze?: boolean;
}

export interface EmittedRow {
  readonly stream: string;
  readonly row: Row;
}

/** `pending`: the bolt holds the row. */
export interface RowOutcome {
  readonly outcome: 'acked' | 'failed' | 'pending';
  /** What the bolt emitted until then. */
  readonly emitted: readonly EmittedRow[];
  /** What it threw for the row; undefined: nothing. */
  readonly error: RunError | undefined;
}

type InputRow<T, I> = [T] extends [Fields]
  ? RowOf<T>
  : [I] extends [FieldsByName]
    ? { [N in keyof I]: RowOf<I[N]> }[keyof I]
    : Row;

/** A row on its way through an input. */
interface Sent {
  readonly row: Row;
  state: RowOutcome['outcome'];
}

const BOLT = 'bolt';

export class BoltDriver<T extends Fields | undefined, I extends FieldsByName | undefined> {
  readonly #run: TopologyRun;
  readonly #inputs = new Map<string, { readonly sent: Sent[]; next: number }>();
  readonly #emitted: EmittedRow[] = [];
  #task: BoltTask | undefined;
  #hasEnded = false;

  constructor(
    definition: BoltDefinition<T, I, Fields | undefined, FieldsByName>,
    options: DriverOptions = {},
  ) {
    const { shape, runtime } = definition as Definition<RuntimeBolt>;
    for (const { name } of shape.inputs) this.#inputs.set(name, { sent: [], next: 0 });
    const driven: Definition<RuntimeBolt> = {
      ...(definition as Definition<RuntimeBolt>),
      runtime: this.#observed(runtime, options.saved),
    };
    const app = topology('driven', (builder) => {
      // Its types follow from the description, which is known at run time only.
      const b = builder as unknown as UntypedBuilder;
      const handle = b.bolt(BOLT, driven);
      for (const { name, fields } of shape.inputs) {
        const source = describedSpout([{ name: DEFAULT_STREAM, fields }], {
          kind: 'spout',
          open: () => this.#source(name),
        });
        const input = shape.inputs.length === 1 && name === DEFAULT_STREAM ? handle : handle.on[name]!;
        input.global(b.spout(`to-${name}`, source));
      }
    });
    const { settings, freeze } = options;
    this.#run = new TopologyRun(app, {
      ...(settings === undefined ? {} : { settings }),
      ...(freeze === undefined ? {} : { freeze }),
    });
  }

  /** Everything that it has emitted, in order. */
  get emitted(): readonly EmittedRow[] {
    return this.#emitted;
  }

  /** What it has emitted to a stream. */
  rows(stream: string = DEFAULT_STREAM): readonly Row[] {
    return this.#emitted.filter((one) => one.stream === stream).map(({ row }) => row);
  }

  get errors(): readonly RunError[] {
    return this.#run.errors;
  }

  counters(): Readonly<Record<string, number>> {
    return this.#run.counters(BOLT);
  }

  /** Gives the bolt a row, and goes on until nothing is left to do at this moment of the clock. */
  async process(row: InputRow<T, I>, input: string = DEFAULT_STREAM): Promise<RowOutcome> {
    const errorsBefore = this.errors.length;
    const emittedBefore = this.#emitted.length;
    const sent = this.send(row, input);
    await this.#run.settle();
    return {
      outcome: sent.state,
      emitted: this.#emitted.slice(emittedBefore),
      error: this.errors[errorsBefore],
    };
  }

  /** Gives the bolt a row without waiting for anything; its `state` tells later what has become of it. */
  send(row: InputRow<T, I>, input: string = DEFAULT_STREAM): Readonly<Sent> {
    const queue = this.#inputs.get(input);
    if (queue === undefined) {
      throw new IsobarError('STREAM_UNKNOWN', `the bolt has no input "${input}"`, {
        expected: [...this.#inputs.keys()].join(', '),
        found: input,
        where: 'driveBolt',
      });
    }
    const sent: Sent = { row: row, state: 'pending' };
    queue.sent.push(sent);
    return sent;
  }

  /** Lets time pass on its clock: ticks and time-outs come. */
  advance(by: Duration): Promise<void> {
    return this.#run.advance(by);
  }

  /** All its inputs end: `end` runs. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#run.toEnd();
  }

  /** What `save` returns now, as it would arrive at another place. */
  async save(): Promise<unknown> {
    await this.#run.settle();
    const task = this.#task;
    if (task?.save === undefined) {
      throw new IsobarError('DEFINITION_ILLEGAL', 'the bolt has no save', {
        expected: 'save in what prepare returns',
        found: 'none',
        where: 'driveBolt',
      });
    }
    return structuredClone(await task.save());
  }

  close(): Promise<void> {
    return this.#run.close();
  }

  #source(input: string): { next(out: unknown): 'idle' | 'ended' | undefined } & SourceAnswers {
    const queue = this.#inputs.get(input)!;
    const settle = (id: unknown, state: Sent['state']): void => {
      queue.sent[id as number]!.state = state;
    };
    return {
      next: (out) => {
        const id = queue.next;
        const sent = queue.sent[id];
        if (sent === undefined) return this.#hasEnded ? 'ended' : 'idle';
        queue.next++;
        (out as RuntimeOut).emit(DEFAULT_STREAM, sent.row, { id });
        return undefined;
      },
      ack: (id) => settle(id, 'acked'),
      fail: (id) => settle(id, 'failed'),
    };
  }

  /** Keeps the task, and what it emits over all streams. */
  #observed(runtime: RuntimeBolt, saved: unknown): RuntimeBolt {
    const started: RuntimeBolt = {
      kind: 'bolt',
      create: (context, arrived) => runtime.create(context, saved ?? arrived),
    };
    return wrappedBolt(started, {
      out: recorder((stream, row) => this.#emitted.push({ stream, row })),
      created: (task) => (this.#task = task),
    });
  }
}

interface SourceAnswers {
  ack(id: unknown): void;
  fail(id: unknown): void;
}

interface UntypedInput {
  global(source: unknown): unknown;
}

interface UntypedBuilder {
  spout(id: string, definition: unknown): unknown;
  bolt(
    id: string,
    definition: unknown,
  ): UntypedInput & { readonly on: Readonly<Record<string, UntypedInput>> };
}

/** Drives one task of a bolt; nothing runs before the first row. */
export function driveBolt<T extends Fields | undefined, I extends FieldsByName | undefined>(
  definition: BoltDefinition<T, I, Fields | undefined, FieldsByName>,
  options: DriverOptions = {},
): BoltDriver<T, I> {
  return new BoltDriver(definition, options);
}
