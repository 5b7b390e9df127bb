/**
 * The record of tasks on their way from one slot to another: what their old and their new place have done so far. A task
 * may start at its new place only once it has been released, so that it is never alive in two places. Plain data.
 *
 *     ─► released ─► taken                 the new place is answerable for the state from here on
 *     ─► kept                              the old place goes on with it
 *        released ─► failed (at a slot)    it could not be started there; what was released is still there for another
 */
import type { ErrorRecord } from '../base/index.js';

/** State of a task that was released. */
export type ReleasedState =
  /** It has none, or none that travels. */
  | { readonly kind: 'none' }
  /** A blob: structured-clone data. */
  | { readonly kind: 'saved'; readonly hash: string; readonly bytes: number }
  /** It went with its worker, or had to be left behind. */
  | { readonly kind: 'lost' };

export type HandoverStep =
  | { readonly kind: 'released'; readonly state: ReleasedState }
  | { readonly kind: 'kept'; readonly error: ErrorRecord }
  | { readonly kind: 'taken'; readonly generation: number }
  | {
      readonly kind: 'failed';
      readonly supervisor: string;
      readonly port: number;
      readonly error: ErrorRecord;
    };

/** One step of one task's move. */
export interface Handover {
  readonly task: number;
  /** The move's name: see TaskMove. */
  readonly move: number;
  readonly step: HandoverStep;
}

/** What one machine (or Nimbus, for one that is gone) has written about one topology. */
export interface HandoverNode {
  readonly topologyId: string;
  readonly writer: string;
  readonly handovers: readonly Handover[];
}

type StepOf<K extends HandoverStep['kind']> = Extract<HandoverStep, { readonly kind: K }>;

/** All that is known of one task's move. */
export interface HandoverState {
  readonly released: StepOf<'released'> | undefined;
  readonly kept: StepOf<'kept'> | undefined;
  readonly taken: StepOf<'taken'> | undefined;
  readonly failures: readonly StepOf<'failed'>[];
}

const NOTHING: HandoverState = { released: undefined, kept: undefined, taken: undefined, failures: [] };

/** Steps of the move of a task; what other moves have left behind does not count. */
export function handoverState(handovers: readonly Handover[], task: number, move: number): HandoverState {
  let state = NOTHING;
  for (const { task: other, move: name, step } of handovers) {
    if (other !== task || name !== move) continue;
    switch (step.kind) {
      case 'released':
        // Of two, that of the old place itself: it has the state, where another can only say that it is lost.
        if (state.released === undefined || step.state.kind !== 'lost') state = { ...state, released: step };
        break;
      case 'kept':
        state = { ...state, kept: step };
        break;
      case 'taken':
        state = { ...state, taken: step };
        break;
      case 'failed':
        state = { ...state, failures: [...state.failures, step] };
        break;
    }
  }
  return state;
}
