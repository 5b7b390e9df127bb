/** Reported errors by kind, and what they mean for the claims of a report. Pure. */
import { errorKind } from '../../base/index.js';
import type { TopologyStatus } from '../../api/index.js';

export type ReportedError = TopologyStatus['errors'][number];

/** Rows may be acked although what should have been emitted for them never was. */
const LOSES_OUTPUT: readonly string[] = ['EMIT_OUTSIDE_PROCESS', 'ANCHOR_MISUSED'];
/** A spout that was throwing this shortly before the drain, ms, was still throwing. */
const STILL_MS = 15_000;
const SPOUT_CALL = /, (?:read|next|open)$/;

/** One entry a kind, with all of its occurrences; the task and the text are of the newest. In order of the last occurrence. */
export function errorKinds(errors: readonly ReportedError[]): readonly ReportedError[] {
  const kinds = new Map<string, ReportedError>();
  for (const error of errors.toSorted((a, b) => a.lastMs - b.lastMs)) {
    const key = errorKind(error.component, error.error);
    const other = kinds.get(key);
    kinds.delete(key);
    kinds.set(key, {
      ...error,
      count: error.count + (other?.count ?? 0),
      firstMs: Math.min(error.firstMs, other?.firstMs ?? Infinity),
    });
  }
  return [...kinds.values()];
}

/** Components whose output may be incomplete, whatever was acked. */
export function componentsWithLostOutput({ errors }: Pick<TopologyStatus, 'errors'>): readonly string[] {
  const found = errors.filter(({ error }) => LOSES_OUTPUT.includes(error.code));
  return [...new Set(found.map(({ component }) => component))];
}

/**
 * Spouts that threw more than once and until the drain: they have not read what lies behind the place.
 *
 * @param atMs when the drain was asked for, in the clock of the errors
 */
export function spoutsStillThrowing(
  { errors, components }: Pick<TopologyStatus, 'errors' | 'components'>,
  atMs: number,
): readonly string[] {
  const spouts = components.filter(({ kind }) => kind === 'spout').map(({ component }) => component);
  return spouts.filter((spout) => {
    const own = errors.filter(
      ({ component, error }) => component === spout && SPOUT_CALL.test(error.details.where ?? ''),
    );
    const count = own.reduce((sum, error) => sum + error.count, 0);
    return count > 1 && Math.max(...own.map(({ lastMs }) => lastMs)) >= atMs - STILL_MS;
  });
}
