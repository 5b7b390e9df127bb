/** `bolt(…)`: what rows pass through, without state (`process`) or with state (`prepare`). */
import { IsobarError, parseDurationMs } from '../base/index.js';
import type { BoltParts } from './bolt-parts.js';
import {
  COMPONENT,
  Inspection,
  isPromiseLike,
  isRecord,
  type ComponentShape,
  type Definition,
} from './definition.js';
import { DEFAULT_STREAM } from './description.js';
import { show, throwFaults } from './faults.js';
import type { Fields, FieldsByName, NoNames } from './fields.js';
import { MAX_TICK_MS } from './names.js';
import { createOutBinder, type TaskOut } from './out.js';
import type { Anchor, BoltTask, Row, RuntimeBolt, TaskContext } from './runtime.js';

declare const TYPES: unique symbol;

/** A bolt without an id; give it one with `b.bolt(id, definition)`. `I` is undefined for a bolt with one input. */
export interface BoltDefinition<
  T extends Fields | undefined,
  I extends FieldsByName | undefined,
  E extends Fields | undefined,
  S extends FieldsByName,
> extends Definition<RuntimeBolt> {
  /** Exists for the compiler only. */
  readonly [TYPES]?: () => readonly [T, I, E, S];
}

/**
 * Defines a bolt. All calls of one task run on one thread, one at a time.
 *
 * **`process(row, out)`** — called for each row. What it emits is anchored to that row. When it returns, the row is acked;
 * when it throws, the row's tree fails and its source may replay it. `row` has the fields that the input takes and no others;
 * `out` refuses a row with a field that the stream does not declare (EMIT_FIELD_UNDECLARED). A returned promise makes the bolt asynchronous: the
 * row is acked when the promise settles, several rows are in flight at once (setting `bolt.max-in-flight`), and rows of one
 * grouping key (without keys: of one sender) stay in order unless `unordered` is set. `out` is valid until the call ends, or its
 * promise settles; a later use is EMIT_OUTSIDE_PROCESS.
 *
 * **`prepare(context, saved?)`** instead of `process` — the task has state. Called once per task before its first row, may
 * return a promise, and returns `{ process, tick?, end?, save?, close? }`. `saved` is what `save` returned before the task was moved;
 * annotate it (`saved?: Map<string, number>`), `save` is checked against it. Without `save` a task is moved only if `movable`
 * is set; state that is lost is named in the summary.
 *
 * **`tick(out)`** — each `every`, at the earliest: after a long call, periods that have passed make one tick. **`end(out)`** —
 * once, when all inputs of a bounded topology have ended and their trees are complete; components go in topological order. What
 * the two emit has no row as its cause: it is tracked, and a failure is reported, not replayed. **`close()`** — last.
 *
 * **`inputs`** instead of `takes` — several inputs, each with fields of its own; `process` is then an object with one function per
 * input. **`manual: true`** — `process` gets an `anchor` as its third argument: call `ack()` or `fail()` exactly once, whenever
 * you like; emits take `{ anchors }`.
 *
 * **How long a call may run:** it holds up the other executors of its thread, and the clock of the row's message time-out runs.
 * Milliseconds are fine; for waiting return a promise, for long computing raise the number of executor threads.
 *
 * @throws DEFINITION_ILLEGAL, FIELD_NAME_ILLEGAL or STREAM_ID_ILLEGAL, with every fault in `details.faults`
 */
export function bolt<
  T extends Fields | undefined = undefined,
  I extends FieldsByName | undefined = undefined,
  E extends Fields | undefined = undefined,
  S extends FieldsByName = NoNames,
  Manual extends boolean = false,
  Saved = unknown,
>(parts: BoltParts<T, I, E, S, Manual, Saved>): BoltDefinition<T, I, E, S> {
  return defineBolt(parts);
}

const MOMENTS = ['tick', 'end', 'close'] as const;
const PARTS = [
  'takes',
  'inputs',
  'emits',
  'streams',
  'process',
  'prepare',
  ...MOMENTS,
  'every',
  'manual',
  'unordered',
  'movable',
];

type Prepare = (context: TaskContext, saved: unknown) => unknown;

function defineBolt(definition: unknown): Definition<RuntimeBolt> {
  const inspection = new Inspection('bolt({ … })');
  const parts = inspection.parts(definition, PARTS);
  const inputs = readInputs(inspection, parts);
  const streams = inspection.streams(parts);
  const tickMs = readPeriod(inspection, parts.get('every'));
  checkWork(inspection, parts, inputs);
  const shape: ComponentShape = {
    kind: 'bolt',
    streams,
    inputs,
    stateful: parts.has('prepare'),
    movable: inspection.flag(parts, 'movable'),
    tickMs,
    manual: inspection.flag(parts, 'manual'),
    unordered: inspection.flag(parts, 'unordered'),
  };
  throwFaults(inspection.faults);
  const prepare = parts.get('prepare') as Prepare | undefined; // checked to be a function
  const bind = (handlers: unknown, context: TaskContext, part: string): BoltTask =>
    bindTask(handlers, shape, `bolt "${context.component}", ${part}`);
  const runtime: RuntimeBolt = {
    kind: 'bolt',
    create(context, saved) {
      if (prepare === undefined) return bind(definition, context, 'its definition');
      const prepared = prepare.call(definition, context, saved);
      const part = 'what prepare returned';
      return isPromiseLike(prepared)
        ? Promise.resolve(prepared).then((handlers) => bind(handlers, context, part))
        : bind(prepared, context, part);
    },
  };
  return Object.freeze({ [COMPONENT]: 1 as const, shape, runtime });
}

function readInputs(inspection: Inspection, parts: ReadonlyMap<string, unknown>): ComponentShape['inputs'] {
  const [one, several] = [parts.has('takes'), parts.has('inputs')];
  if (one === several) {
    const found = one ? 'both' : 'neither';
    inspection.illegal(`the bolt has ${found} of takes and inputs`, 'exactly one of takes and inputs', found);
    return [];
  }
  if (several) return inspection.namedInputs(parts);
  return [{ name: DEFAULT_STREAM, fields: inspection.fields(parts.get('takes'), 'takes') }];
}

function readPeriod(inspection: Inspection, every: unknown): number | null {
  if (every === undefined) return null;
  const periodMs = parseDurationMs(every);
  if (periodMs !== undefined && periodMs > 0 && periodMs <= MAX_TICK_MS) return periodMs;
  inspection.illegal('every is not a period', 'a period such as "1s" or "250ms", up to 24 days', every);
  return null;
}

function checkWork(
  inspection: Inspection,
  parts: ReadonlyMap<string, unknown>,
  inputs: ComponentShape['inputs'],
): void {
  if (parts.has('process') === parts.has('prepare')) {
    const found = parts.has('process') ? 'both' : 'neither';
    inspection.illegal(
      `the bolt has ${found} of process and prepare`,
      'exactly one of process and prepare',
      found,
    );
    return;
  }
  if (parts.has('prepare')) {
    inspection.optionalFunction(parts.get('prepare'), 'prepare');
    for (const name of MOMENTS) {
      if (!parts.has(name)) continue;
      inspection.illegal(`${name} stands beside prepare`, `${name} in what prepare returns`, parts.get(name));
    }
    return;
  }
  for (const fault of handlerFaults(Object.fromEntries(parts), inputs, parts.has('every'))) {
    inspection.illegal(fault.message, fault.expected, fault.found);
  }
}

interface HandlerFault {
  readonly message: string;
  readonly expected: string;
  readonly found: unknown;
}

/** What is wrong with the functions of a task. */
function handlerFaults(
  handlers: Readonly<Record<string, unknown>>,
  inputs: ComponentShape['inputs'],
  hasPeriod: boolean,
): readonly HandlerFault[] {
  const faults: HandlerFault[] = [];
  const { process: work } = handlers;
  if (isSingle(inputs)) {
    if (typeof work !== 'function') {
      faults.push({ message: 'process is not a function', expected: 'a function', found: work });
    }
  } else if (!isRecord(work)) {
    faults.push({
      message: 'process is not an object of functions',
      expected: 'a function for each input',
      found: work,
    });
  } else {
    for (const { name } of inputs) {
      if (typeof work[name] === 'function') continue;
      faults.push({
        message: `process has no function for input ${show(name)}`,
        expected: 'a function',
        found: work[name],
      });
    }
    for (const name of Object.keys(work)) {
      if (inputs.some((input) => input.name === name)) continue;
      const expected = inputs.map((input) => input.name).join(', ');
      faults.push({
        message: `process has a function for ${show(name)}, which is not an input`,
        expected,
        found: name,
      });
    }
  }
  for (const name of [...MOMENTS, 'save']) {
    const value = handlers[name];
    if (value === undefined || typeof value === 'function') continue;
    faults.push({ message: `${name} is not a function`, expected: 'a function', found: value });
  }
  if ((handlers['tick'] !== undefined) !== hasPeriod) {
    faults.push(
      hasPeriod
        ? { message: 'there is every, but no tick', expected: 'a function tick', found: undefined }
        : { message: 'there is tick, but no every', expected: 'a period in every', found: undefined },
    );
  }
  return faults;
}

function isSingle(inputs: ComponentShape['inputs']): boolean {
  return inputs.length === 1 && inputs[0]!.name === DEFAULT_STREAM;
}

type Handler = (row: Row, out: TaskOut, anchor: Anchor | undefined) => unknown;
type Moment = (out: TaskOut) => unknown;

/** Turns the functions of one task into what a worker runs. */
function bindTask(handlers: unknown, shape: ComponentShape, where: string): BoltTask {
  if (!isRecord(handlers)) {
    throw new IsobarError('DEFINITION_ILLEGAL', `${where}: there are no functions`, {
      expected: 'an object with process',
      found: show(handlers),
      where,
    });
  }
  throwFaults(
    handlerFaults(handlers, shape.inputs, shape.tickMs !== null).map((fault) => ({
      code: 'DEFINITION_ILLEGAL' as const,
      message: fault.message,
      expected: fault.expected,
      found: show(fault.found),
      where,
    })),
  );
  const bindOut = createOutBinder(
    shape.streams.map(({ name }) => name).filter((name) => name !== DEFAULT_STREAM),
  );
  // The checks above hold for every cast below.
  const bindHandler =
    (owner: unknown, handler: Handler): BoltTask['process'][string] =>
    (row, out, anchor) =>
      handler.call(owner, row, bindOut(out), anchor);
  const work = handlers['process'];
  const process: BoltTask['process'] = isSingle(shape.inputs)
    ? { [DEFAULT_STREAM]: bindHandler(handlers, work as Handler) }
    : Object.fromEntries(
        shape.inputs.map(({ name }) => [name, bindHandler(work, (work as Record<string, Handler>)[name]!)]),
      );
  const { tick, end, save, close } = handlers as Record<string, unknown> as {
    readonly tick?: Moment;
    readonly end?: Moment;
    readonly save?: () => unknown;
    readonly close?: () => unknown;
  };
  return {
    process,
    ...(tick === undefined ? {} : { tick: (out) => tick.call(handlers, bindOut(out)) }),
    ...(end === undefined ? {} : { end: (out) => end.call(handlers, bindOut(out)) }),
    ...(save === undefined ? {} : { save: () => save.call(handlers) }),
    ...(close === undefined ? {} : { close: () => close.call(handlers) }),
  };
}
