/** When a daemon that ended is started again, and when that is given up. Pure. */

export interface RestartLimits {
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** Ends in a row, none of them after a healthy time, after which it is given up. */
  readonly maxEnds: number;
  /** A daemon that has been ready for this long has proved itself. */
  readonly healthyMs: number;
}

export const DEFAULT_RESTART_LIMITS: RestartLimits = {
  firstPauseMs: 50,
  longestPauseMs: 2000,
  maxEnds: 8,
  healthyMs: 5000,
};

export type RestartDecision =
  | { readonly kind: 'restart'; readonly pauseMs: number; readonly endsInARow: number }
  | { readonly kind: 'give-up'; readonly endsInARow: number };

/**
 * @param endsInARow as of the decision before; 0 at first
 * @param readyForMs how long the daemon that ended had been ready; undefined: it never was
 */
export function decideRestart(
  endsInARow: number,
  readyForMs: number | undefined,
  limits: RestartLimits = DEFAULT_RESTART_LIMITS,
): RestartDecision {
  const ends = readyForMs !== undefined && readyForMs >= limits.healthyMs ? 1 : endsInARow + 1;
  if (ends >= limits.maxEnds) return { kind: 'give-up', endsInARow: ends };
  return {
    kind: 'restart',
    pauseMs: Math.min(limits.longestPauseMs, limits.firstPauseMs * 2 ** (ends - 1)),
    endsInARow: ends,
  };
}
