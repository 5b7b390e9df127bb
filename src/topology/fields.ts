/**
 * Field types as values, and the types of rows that follow from them.
 *
 * One declaration such as `{ word: t.string }` is read by the compiler (row types), the codec, the check of the graph and
 * the dashboard. Kinds are compared as well as TypeScript types: `int32` and `float64` are both numbers and do not fit.
 */
import type { FieldDescription, FieldKind } from './description.js';

declare const VALUE: unique symbol;

/** A field's kind, whether it may be null, and (for the compiler only) the type of its values. */
export interface FieldType<K extends FieldKind = FieldKind, V = unknown, N extends boolean = boolean> {
  readonly kind: K;
  readonly nullable: N;
  /** Exists for the compiler only. */
  readonly [VALUE]?: V;
}

/** The declared fields of a stream or an input, by name. */
export type Fields = Readonly<Record<string, FieldType>>;

/** Named streams (or named inputs) and their fields. */
export type FieldsByName = Readonly<Record<string, Fields>>;

/** No named streams, no named inputs. */
// The empty object type is meant: `keyof` gives never.
// eslint-disable-next-line @typescript-eslint/no-generated-empty-object-type
export type NoNames = Readonly<Record<never, never>>;

/** Values of a field. */
export type ValueOf<T> = T extends FieldType<FieldKind, infer V> ? V : never;

/** A row as user code reads it: every declared field is there, nullable ones may be null. */
export type RowOf<F> = { readonly [K in keyof F]: ValueOf<F[K]> };

type NullableNames<F> = {
  [K in keyof F]: F[K] extends FieldType<FieldKind, unknown, true> ? K : never;
}[keyof F];

type Flat<T> = { [K in keyof T]: T[K] };

/** A row as user code emits it: nullable fields may be left out and are then null. */
export type EmitRow<F> = [NullableNames<F>] extends [never]
  ? RowOf<F>
  : Flat<
      { readonly [K in Exclude<keyof F, NullableNames<F>>]: ValueOf<F[K]> } & {
        readonly [K in NullableNames<F>]?: ValueOf<F[K]> | undefined;
      }
    >;

function fieldType<K extends FieldKind, V>(kind: K): FieldType<K, V, false> {
  return Object.freeze({ kind, nullable: false });
}

/** The field types. */
export const t = Object.freeze({
  string: fieldType<'string', string>('string'),
  bool: fieldType<'bool', boolean>('bool'),
  /** A whole number from −2³¹ to 2³¹ − 1. */
  int32: fieldType<'int32', number>('int32'),
  /** A safe integer: a whole number from −(2⁵³ − 1) to 2⁵³ − 1. */
  int64: fieldType<'int64', number>('int64'),
  float64: fieldType<'float64', number>('float64'),
  bytes: fieldType<'bytes', Uint8Array>('bytes'),
  /** Milliseconds since the Unix epoch, as a number. */
  timestamp: fieldType<'timestamp', number>('timestamp'),
  /** A whole number of any size. */
  bigint: fieldType<'bigint', bigint>('bigint'),
  /** The same kind, or null. A row that leaves the field out has null there. */
  nullable<K extends FieldKind, V>(field: FieldType<K, V>): FieldType<K, V | null, true> {
    return Object.freeze({ kind: field.kind, nullable: true });
  },
  /** Any other value made of plain data. `T` is what you promise that it is; values are not checked against it. */
  json<T>(): FieldType<'json', T, false> {
    return fieldType<'json', T>('json');
  },
});

const KINDS: ReadonlySet<unknown> = new Set<FieldKind>([
  'string',
  'bool',
  'int32',
  'int64',
  'float64',
  'bytes',
  'timestamp',
  'bigint',
  'json',
]);

/** Is this the name of a field kind? */
export function isFieldKind(value: unknown): value is FieldKind {
  return KINDS.has(value);
}

/** Is this a field type of {@link t}, be it of another copy of this module? */
export function isFieldType(value: unknown): value is FieldType {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    isFieldKind(value.kind) &&
    'nullable' in value &&
    typeof value.nullable === 'boolean'
  );
}

/** The fields in declared order, as data. */
export function describeFields(fields: Fields): readonly FieldDescription[] {
  return Object.entries(fields).map(([name, { kind, nullable }]) => ({ name, kind, nullable }));
}
