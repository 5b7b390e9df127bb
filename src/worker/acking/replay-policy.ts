/**
 * Decides what happens to a spout's row whose tree has failed. Pure; the spout carries the row's history along.
 *
 * Only failures that user code caused count (a throw, a rejection, `fail`, a cycle that multiplies rows); time-outs,
 * losses and moves are replayed without counting. But a row can also end the process: one that was pending in three
 * crashes is suspect and from then on replayed alone, so that nothing else is pending beside it. If the process is lost
 * with the suspect again, the row is the likely cause, and this loss counts as a failure.
 */

/**
 * Why a tree failed. `user`: user code threw, rejected or called `fail`; `timeout`: in user code for too long; `lost`:
 * a worker, thread or peer went with rows of it; `moved`: left over when an executor moved; `overflow`: a cycle's reserve.
 */
export type FailureReason = 'user' | 'timeout' | 'lost' | 'moved' | 'overflow';

export interface RowHistory {
  /** Failures that count. */
  readonly failures: number;
  /** Losses in a row during which the row was pending, of the same executor where that is known. */
  readonly crashes: number;
  /** The executor whose loss was counted last (any stable name or number of it); absent: not known. */
  readonly crashedExecutor?: string | number;
}

export interface FailureDecision {
  readonly action: 'replay' | 'replay-alone' | 'dead-letter';
  readonly history: RowHistory;
}

/** Losses after which a row is replayed alone. */
export const SUSPECT_AFTER_CRASHES = 3;

/**
 * What to do with a row after a failure, and its history from now on.
 *
 * @param settings `maxFailures`: counted failures at which the row becomes a dead letter; `isCrash` false: with `lost`, only
 *   a session between workers was lost, and nothing has ended that a row could be behind.
 * @param lostExecutor With `lost`: the executor that was lost, if it is known. Losses of different executors do not add
 *   up; losses of unknown ones add up to whatever was there.
 */
export function decideAfterFailure(
  history: RowHistory,
  reason: FailureReason,
  settings: { readonly maxFailures: number; readonly isCrash?: boolean },
  lostExecutor?: string | number,
): FailureDecision {
  switch (reason) {
    case 'user':
    case 'overflow':
      return decide({ ...history, failures: history.failures + 1 }, settings.maxFailures);
    case 'lost':
      return decide(
        settings.isCrash === false ? history : withCrash(history, lostExecutor),
        settings.maxFailures,
      );
    case 'timeout':
    case 'moved':
      return decide(history, settings.maxFailures);
  }
}

function withCrash(history: RowHistory, lostExecutor: string | number | undefined): RowHistory {
  const { failures, crashes, crashedExecutor } = history;
  const isSame =
    lostExecutor === undefined || crashedExecutor === undefined || lostExecutor === crashedExecutor;
  if (!isSame) return { failures, crashes: 1, crashedExecutor: lostExecutor };
  const executor = lostExecutor ?? crashedExecutor;
  return {
    // A suspect was out alone: nothing else can have caused this.
    failures: crashes >= SUSPECT_AFTER_CRASHES ? failures + 1 : failures,
    crashes: crashes + 1,
    ...(executor === undefined ? {} : { crashedExecutor: executor }),
  };
}

function decide(history: RowHistory, maxFailures: number): FailureDecision {
  if (history.failures >= maxFailures) return { action: 'dead-letter', history };
  return { action: history.crashes >= SUSPECT_AFTER_CRASHES ? 'replay-alone' : 'replay', history };
}
