/** What this Nimbus has decided since it started: counts for operators, which only rise. */
import type { PlacementChanges } from './placement-changes.js';

export interface NimbusCounts {
  /** Scheduling rounds, and the time that they took, ms. */
  readonly rounds: number;
  readonly roundMs: number;
  /** Assignments written. */
  readonly assignments: number;
  /** Tasks that an assignment has given another slot, while they had one. */
  readonly movedTasks: number;
  /** Slots that were given to a topology which did not have them. */
  readonly startedWorkers: number;
}

export class WorkCounts {
  #counts: NimbusCounts = { rounds: 0, roundMs: 0, assignments: 0, movedTasks: 0, startedWorkers: 0 };

  get counts(): NimbusCounts {
    return this.#counts;
  }

  noteRound(tookMs: number): void {
    const { rounds, roundMs } = this.#counts;
    this.#counts = { ...this.#counts, rounds: rounds + 1, roundMs: roundMs + tookMs };
  }

  noteAssignment({ moves, startedWorkers }: PlacementChanges): void {
    const moved = moves.reduce(
      (sum, { from, to, firstTask, lastTask }) =>
        from === null || to === null ? sum : sum + lastTask - firstTask + 1,
      0,
    );
    const counts = this.#counts;
    this.#counts = {
      ...counts,
      assignments: counts.assignments + 1,
      movedTasks: counts.movedTasks + moved,
      startedWorkers: counts.startedWorkers + startedWorkers.length,
    };
  }
}
