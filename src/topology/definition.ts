/**
 * What `spout(…)` and `bolt(…)` return, and the checks that both need. A definition is data for the graph (its shape) and
 * functions for the worker (its runtime); it has no id yet and can be used under several.
 */
import {
  DEFAULT_STREAM,
  type ComponentDescription,
  type FieldDescription,
  type StreamDescription,
} from './description.js';
import { show, type TopologyFault } from './faults.js';
import { describeFields, isFieldType, type Fields } from './fields.js';
import {
  fieldNameFault,
  inputNameFault,
  MAX_FIELDS,
  MAX_STREAMS,
  streamNameFault,
  type NameFault,
} from './names.js';
import type { RuntimeBolt, RuntimeSpout } from './runtime.js';

/** Marks definitions; the same symbol in every copy of this module. */
export const COMPONENT = Symbol.for('isobar.component');

/** What of a component's description follows from its definition alone. */
export type ComponentShape = Pick<
  ComponentDescription,
  'kind' | 'streams' | 'inputs' | 'stateful' | 'movable' | 'tickMs' | 'manual' | 'unordered'
>;

export interface Definition<R extends RuntimeSpout | RuntimeBolt = RuntimeSpout | RuntimeBolt> {
  readonly [COMPONENT]: 1;
  readonly shape: ComponentShape;
  readonly runtime: R;
}

/** Is this the result of `spout(…)` or `bolt(…)`? */
export function isDefinition(value: unknown): value is Definition {
  return typeof value === 'object' && value !== null && COMPONENT in value && value[COMPONENT] === 1;
}

/** A spout of streams that are described already, without checks. */
export function describedSpout(
  streams: readonly StreamDescription[],
  runtime: RuntimeSpout,
): Definition<RuntimeSpout> {
  const shape: ComponentShape = {
    kind: 'spout',
    streams: [...streams],
    inputs: [],
    stateful: false,
    movable: false,
    tickMs: null,
    manual: false,
    unordered: false,
  };
  return { [COMPONENT]: 1, shape, runtime };
}

/** A definition under inspection: the object that the user wrote, and what is wrong with it. */
export class Inspection {
  readonly faults: TopologyFault[] = [];
  readonly #where: string;

  constructor(where: string) {
    this.#where = where;
  }

  add(fault: NameFault, part?: string): void {
    this.faults.push({ ...fault, where: part === undefined ? this.#where : `${this.#where}, ${part}` });
  }

  illegal(message: string, expected: string, found: unknown): void {
    this.add({ code: 'DEFINITION_ILLEGAL', message, expected, found: show(found) });
  }

  /** The parts of a definition; none if it is not an object. Parts with unknown names are faults. */
  parts(definition: unknown, known: readonly string[]): ReadonlyMap<string, unknown> {
    if (!isRecord(definition)) {
      this.illegal('the definition is not an object', 'an object', definition);
      return new Map();
    }
    // Read one by one, so that inherited parts count and `undefined` is the same as absent.
    const parts = new Map<string, unknown>();
    for (const name of known) if (definition[name] !== undefined) parts.set(name, definition[name]);
    for (const name of Object.keys(definition)) {
      if (!known.includes(name)) this.illegal(`the part ${show(name)} is unknown`, known.join(', '), name);
    }
    return parts;
  }

  flag(parts: ReadonlyMap<string, unknown>, name: string): boolean {
    const value = parts.get(name) ?? false;
    if (typeof value === 'boolean') return value;
    this.illegal(`${name} is not a boolean`, 'true or false', value);
    return false;
  }

  optionalFunction(value: unknown, name: string): void {
    if (value !== undefined && typeof value !== 'function') {
      this.illegal(`${name} is not a function`, 'a function', value);
    }
  }

  /** The fields of one stream or input. */
  fields(value: unknown, part: string): readonly FieldDescription[] {
    if (!isRecord(value)) {
      this.add(
        {
          code: 'DEFINITION_ILLEGAL',
          message: 'the fields are not an object',
          expected: 'an object such as { word: t.string }',
          found: show(value),
        },
        part,
      );
      return [];
    }
    const names = Object.keys(value);
    if (names.length > MAX_FIELDS) {
      this.add(
        {
          code: 'DEFINITION_ILLEGAL',
          message: `there are ${names.length} fields`,
          expected: `at most ${MAX_FIELDS} fields`,
          found: `${names.length}`,
        },
        part,
      );
      return [];
    }
    let isSound = true;
    for (const name of names) {
      const fault = fieldNameFault(name) ?? fieldTypeFault(name, value[name]);
      if (fault === undefined) continue;
      isSound = false;
      this.add(fault, part);
    }
    // Every value was checked to be a field type.
    return isSound ? describeFields(value as Fields) : [];
  }

  /** Main stream first, then the named ones. */
  streams(parts: ReadonlyMap<string, unknown>): readonly StreamDescription[] {
    const streams: StreamDescription[] = [];
    if (parts.has('emits')) {
      streams.push({ name: DEFAULT_STREAM, fields: this.fields(parts.get('emits'), 'emits') });
    }
    for (const [name, fields] of this.#named(parts, 'streams')) {
      const fault = streamNameFault(name);
      if (fault !== undefined) this.add(fault, 'streams');
      streams.push({ name, fields: this.fields(fields, `stream ${show(name)}`) });
    }
    return streams;
  }

  namedInputs(parts: ReadonlyMap<string, unknown>): ComponentShape['inputs'] {
    const entries = this.#named(parts, 'inputs');
    if (entries.length === 0)
      this.illegal('inputs names no input', 'at least one input', parts.get('inputs'));
    return entries.map(([name, fields]) => {
      const fault = inputNameFault(name);
      if (fault !== undefined) this.add(fault, 'inputs');
      return { name, fields: this.fields(fields, `input ${show(name)}`) };
    });
  }

  #named(parts: ReadonlyMap<string, unknown>, part: string): readonly (readonly [string, unknown])[] {
    const value = parts.get(part);
    if (value === undefined) return [];
    if (!isRecord(value)) {
      this.illegal(`${part} is not an object`, 'an object of fields by name', value);
      return [];
    }
    const entries = Object.entries(value);
    if (entries.length <= MAX_STREAMS) return entries;
    this.illegal(`${part} has ${entries.length} entries`, `at most ${MAX_STREAMS}`, value);
    return [];
  }
}

function fieldTypeFault(name: string, value: unknown): NameFault | undefined {
  if (isFieldType(value)) return undefined;
  return {
    code: 'DEFINITION_ILLEGAL',
    message: `field ${show(name)} has no field type`,
    expected: 'a field type such as t.string',
    found: typeof value === 'function' ? 'a function; is it t.json<…>() without its call?' : show(value),
  };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
