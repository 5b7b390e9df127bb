/**
 * Whether a stream fits what a bolt takes: once for the compiler, once for run time, in the same words.
 *
 * A stream fits if it has every field that the bolt takes, of the same kind, and not null where the bolt takes no null.
 * Further fields of the stream do no harm.
 */
import type { FieldDescription, FieldKind } from './description.js';
import type { TopologyFault } from './faults.js';
import type { Fields, FieldType } from './fields.js';

declare const FIELDS: unique symbol;

/** A stream to subscribe to: a component's handle (its main stream) or one of its `streams`. */
export interface StreamSource {
  readonly component: string;
  readonly stream: string;
  /** Exists for the compiler only. */
  readonly [FIELDS]?: unknown;
}

/** A source whose fields are known; `undefined`: the component has no main stream. */
export interface StreamHandle<F extends Fields | undefined = Fields> extends StreamSource {
  readonly [FIELDS]?: () => F;
}

export type FieldsOf<Source> = Source extends { readonly [FIELDS]?: () => infer F } ? F : never;

/** Names of the fields of a source. */
export type FieldNameOf<Source> = FieldsOf<Source> extends infer F ? keyof F & string : never;

type KindText<T> =
  T extends FieldType<infer K, unknown, infer N> ? (N extends true ? `nullable ${K}` : K) : never;

type KindMisfit<Name extends string, Has, Takes> =
  Has extends FieldType<infer HasKind, infer HasValue, infer HasNull>
    ? Takes extends FieldType<infer TakesKind, infer TakesValue, infer TakesNull>
      ? [HasKind, HasNull] extends [TakesKind, TakesNull | false]
        ? [HasValue] extends [TakesValue]
          ? never
          : `field "${Name}" is json of another type here than the bolt takes`
        : `field "${Name}" is ${KindText<Has>} here, the bolt takes ${KindText<Takes>}`
      : never
    : never;

type Misfit<Name extends string, F, Takes> = Name extends keyof F & keyof Takes
  ? KindMisfit<Name, F[Name], Takes[Name]>
  : `field "${Name}" is missing in this stream`;

/**
 * `Source` itself if it fits, else the sentences that say why not: the compiler then prints them as the type expected.
 */
export type Fit<Source, Takes> =
  FieldsOf<Source> extends infer F
    ? [F] extends [Fields]
      ? { [K in keyof Takes & string]: Misfit<K, F, Takes> }[keyof Takes & string] extends infer Sentences
        ? [Sentences] extends [never]
          ? Source
          : Sentences
        : never
      : 'this component has no main stream; subscribe to one of its streams'
    : never;

/** Refuses an empty list of keys with a sentence. */
export type AtLeastOne<Keys extends readonly string[]> = Keys extends readonly []
  ? 'name at least one field, or use global to send all rows to one task'
  : unknown;

/** Says in one word or two what a field holds. */
export function kindText(field: { readonly kind: FieldKind; readonly nullable: boolean }): string {
  return field.nullable ? `nullable ${field.kind}` : field.kind;
}

/** Why a stream's field does not fit the one that a bolt takes; undefined if it does. */
export function misfit(
  has: FieldDescription | undefined,
  takes: FieldDescription,
): Omit<TopologyFault, 'where'> | undefined {
  if (has === undefined) {
    return {
      code: 'FIELD_MISSING',
      message: `field "${takes.name}" is missing in this stream`,
      expected: `a field "${takes.name}" of kind ${kindText(takes)}`,
      found: 'no such field',
    };
  }
  if (has.kind === takes.kind && (takes.nullable || !has.nullable)) return undefined;
  return {
    code: 'FIELD_KIND_MISMATCH',
    message: `field "${takes.name}" is ${kindText(has)} here, the bolt takes ${kindText(takes)}`,
    expected: kindText(takes),
    found: kindText(has),
  };
}
