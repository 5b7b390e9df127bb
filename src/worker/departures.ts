/**
 * Tasks that leave their thread as planned, seen from the worker's main thread: to another slot, or to another thread here.
 *
 *     waiting ──► cutting ──► finishing ──► storing ──► closing ──► releasing ──► away
 *     (starts)    (senders    (thread:      (state as   (user's     (supervisor:  (until it is
 *        │         hold)       rows, save)   a blob)     close)      durable)      seen elsewhere)
 *        └───────────┴────────────┴─────────────┴──► kept
 *
 * Invariants
 * D1  Until `closing` the task can be kept, and is, when its state cannot be saved or stored, or it is wanted here again:
 *     it has lost nothing. From `closing` on there is no way back.
 * D2  It is released only when it is closed and its state is stored: nowhere is it alive twice.
 * D3  Each step but `releasing` ends in time, whatever user code and other threads do; releasing waits for the supervisor.
 * D4  A thread that ends takes the state of a task along that was not saved: it is released as lost.
 */
import { IsobarError, toErrorRecord, type CancelTimer, type Clock, type ErrorRecord } from '../base/index.js';
import type { HandoverStep, ReleasedState } from '../coordination/index.js';
import type { HostedTask, TaskBook } from './task-book.js';
import type { SavedTask, ToThread } from './thread-messages.js';

export type Destination =
  /** `move`: name of the move in handovers. */
  { readonly kind: 'slot'; readonly move: number } | { readonly kind: 'thread'; readonly thread: number };

export interface DeparturesOptions {
  readonly clock: Clock;
  readonly drainMs: number;
  readonly saveMs: number;
  readonly closeMs: number;
  readonly tasks: TaskBook;
  post(thread: number, message: ToThread): void;
  cut(task: number): number;
  uncut(task: number): void;
  isCutOff(task: number): boolean;
  isElsewhere(task: number): boolean;
  /** Stores a state where the new place can fetch it; resolves to its hash. */
  store(task: number, move: number, bytes: Uint8Array): Promise<string>;
  /** Durable when it resolves. */
  handOver(task: number, move: number, step: HandoverStep): Promise<void>;
  /** Durable when it resolves. */
  storePosition(hosted: HostedTask, position: unknown): Promise<void>;
  /** It takes no rows here any more. */
  onClosed(hosted: HostedTask, to: Destination): void;
  /** It has arrived in another thread of this worker. */
  onRelocated(): void;
  /** It goes on in another thread of this worker. */
  arriveAt(hosted: HostedTask, thread: number, saved: Uint8Array | null, position: unknown): void;
  onLostState(hosted: HostedTask): void;
  onKept(hosted: HostedTask, error: ErrorRecord): void;
}

type Step = 'waiting' | 'cutting' | 'finishing' | 'storing' | 'closing' | 'releasing' | 'away';

interface Departure {
  readonly hosted: HostedTask;
  readonly to: Destination;
  step: Step;
  id: number;
  sinceMs: number;
  timer: CancelTimer | undefined;
  state: SavedTask['state'];
  hash: string;
  position: unknown;
}

export class Departures {
  readonly #options: DeparturesOptions;
  readonly #departures = new Map<number, Departure>();

  constructor(options: DeparturesOptions) {
    this.#options = options;
  }

  /** It is about to leave, or has left and is not seen elsewhere yet. */
  has(task: number): boolean {
    return this.#departures.has(task);
  }

  /** It still runs here. */
  isHere(task: number): boolean {
    const step = this.#departures.get(task)?.step;
    return step !== undefined && step !== 'releasing' && step !== 'away';
  }

  /** Does any task still run in that thread that is about to leave it? */
  isAnyIn(thread: number): boolean {
    return [...this.#departures.values()].some(
      ({ hosted }) => hosted.thread === thread && this.isHere(hosted.task),
    );
  }

  /** The thread here that a task is on its way to. */
  destinationThread(task: number): number | undefined {
    const to = this.#departures.get(task)?.to;
    return to?.kind === 'thread' ? to.thread : undefined;
  }

  /** Tasks that have left this slot and are not seen elsewhere yet. */
  get away(): readonly number[] {
    return [...this.#departures.values()].flatMap(({ hosted, to, step }) =>
      to.kind === 'slot' && step === 'away' ? [hosted.task] : [],
    );
  }

  get count(): number {
    return this.#departures.size;
  }

  begin(hosted: HostedTask, to: Destination): void {
    const departure: Departure = {
      hosted,
      to,
      step: 'waiting',
      id: -1,
      sinceMs: 0,
      timer: undefined,
      state: { kind: 'none' },
      hash: '',
      position: undefined,
    };
    this.#departures.set(hosted.task, departure);
    const { drainMs, saveMs } = this.#options;
    this.#time(departure, drainMs + saveMs, () => {
      this.#keep(departure, notSaved(hosted.task, 'it has not started yet'));
    });
    this.#startCutting(departure);
  }

  /** It is to stay in this slot. Too late when it is closed: then it has to come back as any other. */
  cancel(task: number): void {
    const departure = this.#departures.get(task);
    if (departure?.to.kind !== 'slot' || !this.isHere(task) || departure.step === 'closing') return;
    const error = new IsobarError('MOVE_CANCELLED', `task ${task} stays where it is`, {
      where: `task ${task}`,
    });
    this.#keep(departure, toErrorRecord(error));
  }

  /** Something that a departure waits for may have come true. */
  advance(): void {
    for (const departure of [...this.#departures.values()]) {
      const { hosted, step, to } = departure;
      if (step === 'waiting') this.#startCutting(departure);
      if (departure.step === 'cutting' && this.#options.isCutOff(hosted.task)) this.#finish(departure);
      const hasArrived =
        to.kind === 'thread' ? hosted.state === 'running' : this.#options.isElsewhere(hosted.task);
      if (step !== 'away' || !hasArrived) continue;
      this.#forget(departure);
      if (to.kind === 'thread') this.#options.onRelocated();
    }
  }

  /** The move is over for everybody, or has brought it back here. */
  onMoveOver(task: number): void {
    const departure = this.#departures.get(task);
    if (departure?.to.kind === 'slot' && !this.isHere(task)) this.#forget(departure);
  }

  onSaved({ task, id, state, position }: SavedTask): void {
    const departure = this.#departures.get(task);
    if (departure?.step !== 'finishing' || departure.id !== id) return;
    if (state.kind === 'failed') {
      this.#keep(departure, state.error);
      return;
    }
    departure.state = state;
    departure.position = position;
    if (state.kind === 'none' || departure.to.kind === 'thread') this.#close(departure);
    else void this.#store(departure, departure.to.move, state.bytes);
  }

  onStopped(task: number): void {
    const departure = this.#departures.get(task);
    if (departure?.step === 'closing') this.#leave(departure);
  }

  /** A thread has ended, and the tasks that were in it. */
  onThreadGone(thread: number): void {
    for (const departure of [...this.#departures.values()]) {
      const { hosted, step } = departure;
      if (hosted.thread !== thread || !this.isHere(hosted.task)) continue;
      // What is stored, or about to be, is all there was.
      if (step === 'storing') continue;
      if (step === 'closing') this.#leave(departure);
      else this.#lose(departure);
    }
  }

  /** Its thread has ended, and what was not stored with it (D4). */
  #lose(departure: Departure): void {
    departure.state = { kind: 'none' };
    departure.position = undefined;
    // One that has not started has nothing; of any other its new slot names the loss.
    if (departure.step !== 'waiting') {
      departure.hash = LOST;
      if (departure.to.kind === 'thread') this.#options.onLostState(departure.hosted);
    }
    this.#leave(departure);
  }

  #startCutting(departure: Departure): void {
    const { hosted } = departure;
    if (hosted.state === 'placed') this.#leave(departure);
    // Whether it has a state to save shows when it has started.
    if (hosted.state !== 'running') return;
    departure.step = 'cutting';
    departure.id = this.#options.cut(hosted.task);
    departure.sinceMs = this.#options.clock.nowMs();
    this.#time(departure, this.#options.drainMs, () => this.#finish(departure));
  }

  #finish(departure: Departure): void {
    const { task, thread } = departure.hosted;
    const { drainMs, saveMs, clock } = this.#options;
    const limitMs = Math.max(0, departure.sinceMs + drainMs - clock.nowMs());
    departure.step = 'finishing';
    this.#options.post(thread, { kind: 'finish-task', task, id: departure.id, limitMs });
    // The thread may take its time twice: for rows, and until they have passed on.
    this.#time(departure, 2 * limitMs + saveMs, () => {
      this.#keep(departure, notSaved(task, `save had not returned after ${saveMs} ms`));
    });
  }

  async #store(departure: Departure, move: number, bytes: Uint8Array): Promise<void> {
    const { task } = departure.hosted;
    departure.step = 'storing';
    this.#time(departure, undefined);
    try {
      departure.hash = await this.#options.store(task, move, bytes);
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      if (!this.#isStoring(departure)) return;
      if (departure.hosted.state === 'running')
        this.#keep(departure, notSaved(task, `its state could not be stored: ${cause}`));
      else this.#lose(departure);
      return;
    }
    if (!this.#isStoring(departure)) return;
    if (departure.hosted.state === 'running') this.#close(departure);
    else this.#leave(departure);
  }

  /** Still, after a wait. */
  #isStoring(departure: Departure): boolean {
    return this.#departures.get(departure.hosted.task) === departure && departure.step === 'storing';
  }

  #close(departure: Departure): void {
    const { task, thread } = departure.hosted;
    departure.step = 'closing';
    this.#options.post(thread, { kind: 'stop-tasks', tasks: [task] });
    this.#time(departure, this.#options.closeMs, () => this.#leave(departure));
  }

  #leave(departure: Departure): void {
    const { hosted, to } = departure;
    this.#time(departure, undefined);
    this.#options.onClosed(hosted, to);
    if (to.kind === 'slot') {
      departure.step = 'releasing';
      void this.#release(departure, to.move);
      return;
    }
    departure.step = 'away';
    const saved = departure.state.kind === 'saved' ? departure.state.bytes : null;
    this.#options.arriveAt(hosted, to.thread, saved, departure.position);
  }

  async #release(departure: Departure, move: number): Promise<void> {
    const { hosted, position } = departure;
    if (position !== undefined) await this.#options.storePosition(hosted, position);
    await this.#options.handOver(hosted.task, move, { kind: 'released', state: releasedState(departure) });
    if (this.#departures.get(hosted.task) !== departure) return;
    departure.step = 'away';
    this.advance();
  }

  #keep(departure: Departure, error: ErrorRecord): void {
    const { hosted, to, step } = departure;
    this.#time(departure, undefined);
    if (step === 'finishing' || step === 'storing')
      this.#options.post(hosted.thread, { kind: 'keep-task', task: hosted.task });
    this.#departures.delete(hosted.task);
    this.#options.uncut(hosted.task);
    if (to.kind === 'slot') void this.#options.handOver(hosted.task, to.move, { kind: 'kept', error });
    this.#options.onKept(hosted, error);
  }

  #forget(departure: Departure): void {
    this.#departures.delete(departure.hosted.task);
    this.#options.uncut(departure.hosted.task);
  }

  #time(departure: Departure, afterMs: number | undefined, act?: () => void): void {
    departure.timer?.();
    departure.timer =
      afterMs === undefined || act === undefined ? undefined : this.#options.clock.after(afterMs, act);
  }
}

const LOST = 'lost';

function releasedState({ state, hash }: Departure): ReleasedState {
  if (hash === LOST) return { kind: 'lost' };
  return state.kind === 'saved' ? { kind: 'saved', hash, bytes: state.bytes.byteLength } : { kind: 'none' };
}

function notSaved(task: number, why: string): ErrorRecord {
  return toErrorRecord(
    new IsobarError('TASK_NOT_SAVED', `task ${task} stays where it is: ${why}`, { where: `task ${task}` }),
  );
}
