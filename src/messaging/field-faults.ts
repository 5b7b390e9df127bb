/**
 * The slow side of checking an emitted row: what a value that failed its field's plain test becomes, which keys are not
 * declared, and which error it is. Called by generated code only (see codec.ts).
 */
import { closest, distance } from 'fastest-levenshtein';
import { isUint8Array } from 'node:util/types';
import { IsobarError } from '../base/index.js';
import type { FieldDescription, FieldKind } from '../topology/index.js';
import { copyValue } from './value-codec.js';

const EXPECTED: Readonly<Record<FieldKind, string>> = {
  string: 'a string',
  bool: 'a boolean',
  int32: 'a whole number from -2147483648 to 2147483647',
  int64: 'a whole number from -9007199254740991 to 9007199254740991',
  float64: 'a number',
  bytes: 'a Uint8Array',
  timestamp: 'a finite number of milliseconds since the epoch',
  bigint: 'a bigint',
  json: 'a value that structured clone can copy',
};

export interface Repairs {
  /** By place of the field: returns the value to use, or throws. */
  readonly fields: readonly ((value: unknown, row: object) => unknown)[];
  /** Declared fields in declared order. */
  readonly names: readonly string[];
  /**
   * The keys of a row did not come in the order given. Throws EMIT_FIELD_UNDECLARED if one of them is not declared, else
   * returns the order to expect of the next row.
   */
  checkKeys(row: object, order: readonly string[]): readonly string[];
  /** Throws: the row is not an object. */
  noRow(row: unknown): never;
}

/** As often a stream's rows may change the order of their keys; after that each other order costs a look-up per key. */
const MAX_ORDERS = 64;

export function createRepairs(fields: readonly FieldDescription[]): Repairs {
  const names = fields.map(({ name }) => name);
  const declared: ReadonlySet<string> = new Set(names);
  let orders = 0;
  return {
    fields: fields.map((field) => (value, row) => repair(field, value, row, declared)),
    names,
    checkKeys(row, order) {
      const [undeclared] = undeclaredKeys(row, declared);
      if (undeclared !== undefined) throw undeclaredFault(undeclared, names);
      return ++orders > MAX_ORDERS ? order : Object.keys(row);
    },
    noRow(row) {
      throw new IsobarError('EMIT_TYPE_MISMATCH', `the row is ${describe(row)}, not an object`, {
        expected: 'an object with the declared fields',
        found: describe(row),
      });
    },
  };
}

/** Bytes in memory of their own; null for what is no Uint8Array, or cannot be read (its memory was transferred, a proxy). */
export function copyBytes(value: unknown): Uint8Array | null {
  try {
    return value instanceof Uint8Array ? new Uint8Array(value) : null;
  } catch {
    return null;
  }
}

function undeclaredKeys(row: object, declared: ReadonlySet<string>): readonly string[] {
  return Object.keys(row).filter((key) => !declared.has(key));
}

function undeclaredFault(key: string, names: readonly string[]): IsobarError {
  const shown = JSON.stringify(key.length > MAX_SHOWN ? `${key.slice(0, MAX_SHOWN)}…` : key);
  const near = nearest(key, names);
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  return new IsobarError(
    'EMIT_FIELD_UNDECLARED',
    `the row has ${shown}, which is not a field of the stream${hint}`,
    {
      expected: names.length === 0 ? 'a row without fields' : `only the declared fields: ${names.join(', ')}`,
      found: shown,
      field: key,
      ...(near === undefined ? {} : { closest: near }),
    },
  );
}

/** The name that is spelt much like `key`, if there is one. */
function nearest(key: string, names: readonly string[]): string | undefined {
  if (key.length > MAX_SHOWN) return undefined;
  const isNear = (edits: number, name: string): boolean => edits * 2 <= Math.max(key.length, name.length);
  const candidates = names.filter((name) => isNear(Math.abs(name.length - key.length), name));
  if (candidates.length === 0) return undefined;
  const name = closest(key, candidates);
  return isNear(distance(key.toLowerCase(), name.toLowerCase()), name) ? name : undefined;
}

function repair(
  field: FieldDescription,
  value: unknown,
  row: object,
  declared: ReadonlySet<string>,
): unknown {
  if (field.nullable && (value === null || value === undefined)) return null;
  const expected = EXPECTED[field.kind] + (field.nullable ? ', or null' : '');
  if (value === undefined) {
    // A key that is spelt wrong is missing under its right name.
    const near = nearest(field.name, undeclaredKeys(row, declared));
    const hint = near === undefined ? '' : `; the row has "${near}" instead`;
    throw new IsobarError('EMIT_FIELD_MISSING', `the field "${field.name}" is missing${hint}`, {
      expected,
      found: near === undefined ? 'undefined' : `"${near}"`,
      field: field.name,
    });
  }
  if (field.kind === 'json' && typeof value === 'object') {
    try {
      return copyValue(value);
    } catch (error) {
      throw mismatch(field, expected, error instanceof Error ? error.message : describe(value), error);
    }
  }
  throw mismatch(field, expected, describe(value));
}

function mismatch(field: FieldDescription, expected: string, found: string, cause?: unknown): IsobarError {
  return new IsobarError(
    'EMIT_TYPE_MISMATCH',
    `the field "${field.name}" (${field.kind}) takes ${expected}; found ${found}`,
    { expected, found, field: field.name },
    cause,
  );
}

/** Longest key that a message shows whole. */
const MAX_SHOWN = 100;

/** A value in a few words. */
function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `the string ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
    case 'number':
      return `the number ${Object.is(value, -0) ? '-0' : value}`;
    case 'boolean':
      return `the boolean ${value}`;
    case 'bigint':
      return 'a bigint';
    case 'function':
      return 'a function';
    case 'symbol':
      return 'a symbol';
    case 'undefined':
      return 'undefined';
    case 'object':
      return value === null ? 'null' : describeObject(value);
  }
}

function describeObject(value: object): string {
  try {
    if (isUint8Array(value) && copyBytes(value) === null) return 'a Uint8Array whose memory was transferred';
    return Array.isArray(value)
      ? 'an array'
      : `an object (${Object.prototype.toString.call(value).slice(8, -1)})`;
  } catch {
    return 'an object that cannot be looked at';
  }
}
