/** A bolt that keeps what it is given, to stand in for one that writes to the outside. */
import { bolt, type BoltDefinition, type Fields, type NoNames, type RowOf } from '../topology/index.js';

export interface RecordingSink<T extends Fields> {
  readonly definition: BoltDefinition<T, undefined, undefined, NoNames>;
  /** In the order in which they came, over all its tasks. */
  readonly rows: readonly RowOf<T>[];
}

/** @throws FIELD_NAME_ILLEGAL */
export function recordingSink<T extends Fields>(takes: T): RecordingSink<T> {
  const rows: RowOf<T>[] = [];
  const definition = bolt({
    takes,
    process(row: RowOf<T>) {
      rows.push(row);
    },
  } as never) as unknown as BoltDefinition<T, undefined, undefined, NoNames>;
  return { definition, rows };
}
