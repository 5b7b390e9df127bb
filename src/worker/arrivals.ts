/**
 * Tasks that come to this worker as planned, from another slot: each waits until it has been released, is started with the
 * state that it has left behind, and takes rows once the record says that the state is this worker's to answer for.
 *
 *     waiting ──► fetching ──► starting ──► taking ──► (runs)
 *        ▲           │            │ failed: another place may try, or this one again
 *        └───────────┴────────────┘ its thread has ended
 *
 * Invariants
 * A1  Nothing is started before the record says `released`.
 * A2  Until the record says `taken` the task has processed nothing here, so that the stored state is still all there is. After
 *     that a crash loses it, as it loses any state, and says so.
 */
import { hasCode, type Clock, type ErrorRecord } from '../base/index.js';
import {
  handoverState,
  type Handover,
  type HandoverStep,
  type ReleasedState,
} from '../coordination/index.js';
import type { TaskStart } from './thread-messages.js';

export interface ExpectedTask {
  readonly task: number;
  readonly component: string;
  /** Name of the move in handovers. */
  readonly move: number;
  /** It comes back to where it left from. */
  readonly isReturn: boolean;
}

export interface ArrivalsOptions {
  readonly clock: Clock;
  readonly retryMs: number;
  readonly slot: { readonly supervisor: string; readonly port: number };
  /** May a task be started now? A thread for it has to be there. */
  canStart(task: ExpectedTask): boolean;
  /** Resolves to the path of a file with that state. */
  fetch(task: number, hash: string): Promise<string>;
  /** Resolves to the generation of the new life. */
  start(task: ExpectedTask, saved: TaskStart['saved']): Promise<number>;
  /** A prepared task takes rows from now on. */
  go(task: number): void;
  /** Durable when it resolves. */
  handOver(task: number, move: number, step: HandoverStep): Promise<void>;
  onLostState(task: ExpectedTask): void;
  onFailed(task: ExpectedTask, error: ErrorRecord): void;
  /** Its state could not be had; that is tried again. */
  onNotFetched(task: ExpectedTask, error: unknown): void;
}

interface Arrival {
  expected: ExpectedTask;
  step: 'waiting' | 'fetching' | 'starting' | 'taking' | 'failed';
  state: ReleasedState;
  generation: number;
  /** The record says `taken` by this very start, which has processed nothing. */
  hasTaken: boolean;
}

export class Arrivals {
  readonly #options: ArrivalsOptions;
  readonly #arrivals = new Map<number, Arrival>();
  #handovers: readonly Handover[] = [];

  constructor(options: ArrivalsOptions) {
    this.#options = options;
  }

  has(task: number): boolean {
    return this.#arrivals.has(task);
  }

  get count(): number {
    return this.#arrivals.size;
  }

  get handovers(): readonly Handover[] {
    return this.#handovers;
  }

  expect(expected: ExpectedTask): void {
    const known = this.#arrivals.get(expected.task);
    if (known?.expected.move === expected.move) {
      known.expected = expected;
      return;
    }
    this.#arrivals.set(expected.task, {
      expected,
      step: 'waiting',
      state: { kind: 'none' },
      generation: 0,
      hasTaken: false,
    });
  }

  /** It goes elsewhere. */
  abandon(task: number): void {
    this.#arrivals.delete(task);
  }

  /** A new assignment wants it here again although it could not be started. */
  retryFailed(): void {
    for (const arrival of this.#arrivals.values()) if (arrival.step === 'failed') arrival.step = 'waiting';
  }

  learn(handovers: readonly Handover[]): void {
    this.#handovers = handovers;
  }

  /** Starts what can be started. */
  advance(): void {
    for (const arrival of this.#arrivals.values()) if (arrival.step === 'waiting') this.#begin(arrival);
  }

  onPrepared(task: number): void {
    const arrival = this.#arrivals.get(task);
    if (arrival?.step !== 'starting') return;
    // Nimbus knows one that has come back by this.
    if (arrival.state.kind === 'saved' || arrival.expected.isReturn) void this.#take(arrival);
    else this.#arrive(arrival);
  }

  onStartFailed(task: number, error: ErrorRecord): void {
    const arrival = this.#arrivals.get(task);
    if (arrival?.step !== 'starting') return;
    const { expected } = arrival;
    arrival.step = 'failed';
    this.#options.onFailed(expected, error);
    if (expected.isReturn) {
      // There is no other place to go to.
      this.#retryLater(arrival, 'failed');
      return;
    }
    // From here on it may be started elsewhere: only a newer assignment can ask for it here again.
    void this.#options.handOver(task, expected.move, { kind: 'failed', ...this.#options.slot, error });
  }

  /** The thread of a task has ended before it took rows. */
  onThreadGone(task: number): void {
    const arrival = this.#arrivals.get(task);
    if (arrival !== undefined && arrival.step !== 'failed') arrival.step = 'waiting';
  }

  #begin(arrival: Arrival): void {
    const { expected } = arrival;
    const { released, kept, taken } = handoverState(this.#handovers, expected.task, expected.move);
    if (released === undefined || (kept !== undefined && !expected.isReturn)) return;
    if (!this.#options.canStart(expected)) return;
    // Taken by a former life of this worker: what it knew went with that.
    const isLost =
      released.state.kind === 'lost' ||
      (taken !== undefined && !arrival.hasTaken && released.state.kind === 'saved');
    arrival.state = isLost ? { kind: 'lost' } : released.state;
    arrival.step = 'fetching';
    void this.#start(arrival);
  }

  async #start(arrival: Arrival): Promise<void> {
    const { expected, state } = arrival;
    let saved: TaskStart['saved'] = null;
    try {
      if (state.kind === 'saved')
        saved = { kind: 'file', path: await this.#options.fetch(expected.task, state.hash) };
    } catch (error) {
      this.#options.onNotFetched(expected, error);
      // Waiting would not bring it back; anything else may pass.
      if (!hasCode(error, 'TASK_STATE_MISSING')) {
        this.#retryLater(arrival, 'fetching');
        return;
      }
      arrival.state = { kind: 'lost' };
    }
    if (!this.#isAt(arrival, 'fetching')) return;
    arrival.step = 'starting';
    if (arrival.state.kind === 'lost') this.#options.onLostState(expected);
    arrival.generation = await this.#options.start(expected, saved);
  }

  #retryLater(arrival: Arrival, from: Arrival['step']): void {
    this.#options.clock.after(this.#options.retryMs, () => {
      if (!this.#isAt(arrival, from)) return;
      arrival.step = 'waiting';
      this.#begin(arrival);
    });
  }

  async #take(arrival: Arrival): Promise<void> {
    const { task, move } = arrival.expected;
    arrival.step = 'taking';
    arrival.hasTaken = true;
    await this.#options.handOver(task, move, { kind: 'taken', generation: arrival.generation });
    if (this.#isAt(arrival, 'taking')) this.#arrive(arrival);
  }

  #arrive({ expected }: Arrival): void {
    this.#arrivals.delete(expected.task);
    this.#options.go(expected.task);
  }

  /** Still, after a wait. */
  #isAt(arrival: Arrival, step: Arrival['step']): boolean {
    return this.#arrivals.get(arrival.expected.task) === arrival && arrival.step === step;
  }
}
