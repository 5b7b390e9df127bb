/**
 * The slow side of checking an emitted row: what a value that failed its field's plain test becomes, or which error it
 * is. Called by generated code only (see codec.ts).
 */
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
  readonly fields: readonly ((value: unknown) => unknown)[];
  /** Throws: the row is not an object. */
  noRow(row: unknown): never;
}

export function createRepairs(fields: readonly FieldDescription[]): Repairs {
  return {
    fields: fields.map((field) => (value) => repair(field, value)),
    noRow(row) {
      throw new IsobarError('EMIT_TYPE_MISMATCH', `the row is ${describe(row)}, not an object`, {
        expected: 'an object with the declared fields',
        found: describe(row),
      });
    },
  };
}

function repair(field: FieldDescription, value: unknown): unknown {
  if (field.nullable && (value === null || value === undefined)) return null;
  const expected = EXPECTED[field.kind] + (field.nullable ? ', or null' : '');
  if (value === undefined) {
    throw new IsobarError('EMIT_FIELD_MISSING', `the field "${field.name}" is missing`, {
      expected,
      found: 'undefined',
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
      if (value === null) return 'null';
      if (Array.isArray(value)) return 'an array';
      return `an object (${Object.prototype.toString.call(value).slice(8, -1)})`;
  }
}
