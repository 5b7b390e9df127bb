/**
 * What a subscriber sees of a stream: the fields that it uses, in the stream's declared order, whichever link a row comes by.
 *
 * A row of the stream is written with the view's own codec, which passes over the other fields, so nothing is sent that
 * nobody reads; a row that stays in its thread is narrowed. Where the view has all fields, rows pass as they are.
 */
import type { FieldDescription, Row } from '../topology/index.js';
import { createRowCodec, type RowCodec } from './codec.js';

export interface RowView {
  /** Writes canonical rows of the stream, and reads them back as rows of the view. */
  readonly codec: RowCodec;
  /** Makes a row of the view from a canonical row of the stream; null: they are the same. */
  readonly narrow: ((row: Row) => Row) | null;
}

/** The view of a stream that has only the fields for which `isSeen` says so. */
export function createRowView(stream: RowCodec, isSeen: (field: string) => boolean): RowView {
  const fields = stream.fields.filter(({ name }) => isSeen(name));
  if (fields.length === stream.fields.length) return { codec: stream, narrow: null };
  return { codec: createRowCodec(fields), narrow: compileNarrowing(fields) };
}

/** One literal: its rows then have one hidden class, the same as those that the codec reads. */
function compileNarrowing(fields: readonly FieldDescription[]): (row: Row) => Row {
  const parts = fields.map(({ name }) => `${JSON.stringify(name)}: row[${JSON.stringify(name)}]`);
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- names are quoted; nothing else goes in
  return new Function('row', `return { ${parts.join(', ')} };`) as (row: Row) => Row;
}
