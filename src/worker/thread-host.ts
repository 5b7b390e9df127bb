/**
 * The main thread's handle of one executor thread: its rings to and from the main thread, the executors that it hosts,
 * and what can be told of it from outside while it runs user code.
 */
import { Worker as Thread } from 'node:worker_threads';
import { IsobarError } from '../base/index.js';
import type { LongCall, ThreadReport } from '../coordination/index.js';
import { allocateRing, Doorbell, RingReader, RingWriter } from '../messaging/index.js';
import type { ExecutorRange } from '../scheduling/index.js';
import { P_COLLECTION_MS, P_COLLECTIONS, PROGRESS_WORDS } from './counters.js';
import { PeerCredit } from './peer-credit.js';
import type { FromThread, ThreadCrashed, ThreadStart, ToThread } from './thread-messages.js';
import { ThreadWatch, type ThreadObservation } from './thread-watch.js';
import { callIn } from './user-calls.js';

export interface ThreadHostOptions {
  readonly index: number;
  readonly generation: number;
  readonly entry: URL;
  readonly ringBytes: number;
  readonly heapMb: number | null;
  readonly mainDoorbell: SharedArrayBuffer;
  readonly base: Omit<
    ThreadStart,
    'index' | 'generation' | 'progress' | 'doorbell' | 'toMain' | 'fromMain' | 'mainDoorbell'
  >;
  onMessage(message: FromThread): void;
  /** Called once, when the thread is gone, with what ended it where that is known. */
  onGone(error: unknown): void;
}

export class ThreadHost {
  readonly index: number;
  readonly generation: number;
  readonly doorbell: SharedArrayBuffer = Doorbell.allocate();
  readonly fromThread: RingReader;
  /** Tasks that take rows. */
  readonly started = new Set<number>();
  loaded = false;
  gone = false;
  /** Tasks waited for it when it was made: its generation serves their first life. */
  hadTasks = false;
  /** It has no tasks any more and is about to be ended. */
  isLeaving = false;
  /** It was stuck when it was looked at last. */
  isStuck = false;
  /** What peers have under way to this thread. */
  readonly peerCredit = new PeerCredit();
  readonly bornMs: number;
  readonly #thread: Thread;
  readonly #toThread: RingWriter;
  readonly #progress: Int32Array;
  readonly #backlog: Buffer[] = [];
  /** Rings to other threads of this worker, by `index/generation`. */
  readonly #rings = new Map<string, SharedArrayBuffer>();
  readonly #watch: ThreadWatch;
  /** Why it ends, as far as that is known. */
  #cause: unknown;

  constructor(options: ThreadHostOptions, nowMs: number) {
    this.index = options.index;
    this.generation = options.generation;
    this.bornMs = nowMs;
    const progress = new SharedArrayBuffer(PROGRESS_WORDS * 4);
    const toMain = allocateRing(options.ringBytes);
    const fromMain = allocateRing(options.ringBytes);
    this.#progress = new Int32Array(progress);
    this.fromThread = new RingReader(toMain, new Doorbell(this.doorbell));
    this.#toThread = new RingWriter(fromMain, new Doorbell(this.doorbell));
    const start: ThreadStart = {
      ...options.base,
      index: options.index,
      generation: options.generation,
      progress,
      doorbell: this.doorbell,
      toMain,
      fromMain,
      mainDoorbell: options.mainDoorbell,
    };
    this.#thread = new Thread(options.entry, {
      workerData: start,
      ...(options.heapMb === null ? {} : { resourceLimits: { maxOldGenerationSizeMb: options.heapMb } }),
    });
    this.#watch = new ThreadWatch(
      this.#progress,
      () => this.#thread.performance.eventLoopUtilization().idle,
      nowMs,
    );
    this.#thread.on('message', (message: FromThread | ThreadCrashed) => {
      // Whole, with causes and stack, which the thrown one may not be.
      if (message.kind === 'crashed') this.#cause = IsobarError.from(message.error);
      else options.onMessage(message);
    });
    this.#thread.on('error', (error) => {
      this.#cause ??= error;
    });
    this.#thread.on('exit', (code) => {
      this.gone = true;
      options.onGone(this.#cause ?? new Error(`the executor thread ended with code ${code}`));
    });
  }

  get key(): string {
    return `${this.index}/${this.generation}`;
  }

  /** The thread is inside a call of user code at this moment. */
  get isInCall(): boolean {
    return callIn(this.#progress) !== null;
  }

  /** What the thread has taken since it started. */
  usage(): Required<Pick<ThreadReport, 'activeMs' | 'collections' | 'collectionMs'>> {
    return {
      activeMs: this.#thread.performance.eventLoopUtilization().active,
      collections: this.#progress[P_COLLECTIONS]!,
      collectionMs: this.#progress[P_COLLECTION_MS]!,
    };
  }

  post(message: ToThread): void {
    if (!this.gone) this.#thread.postMessage(message);
  }

  /** The ring from this thread to `other`. */
  ringTo(other: ThreadHost, ringBytes: number): SharedArrayBuffer {
    const known = this.#rings.get(other.key);
    if (known !== undefined) return known;
    const ring = allocateRing(ringBytes);
    this.#rings.set(other.key, ring);
    return ring;
  }

  forgetRingTo(other: ThreadHost): void {
    this.#rings.delete(other.key);
  }

  /** Passes on a frame of a peer; what does not fit waits (credit bounds how much that can be). */
  forward(frame: Buffer): void {
    if (this.#backlog.length > 0 || !this.#toThread.tryWriteBytes(frame)) this.#backlog.push(frame);
  }

  /** Tries again to pass on what waits; returns whether something still waits. */
  forwardBacklog(): boolean {
    let sent = 0;
    while (sent < this.#backlog.length && this.#toThread.tryWriteBytes(this.#backlog[sent]!)) sent++;
    this.#backlog.splice(0, sent);
    return this.#backlog.length > 0;
  }

  /** Ends it from outside, in the middle of whatever it does. */
  async terminate(reason?: IsobarError): Promise<void> {
    this.#cause ??= reason;
    await this.#thread.terminate();
  }

  /** What the thread is doing. Call it regularly: durations are measured between calls. */
  observe(nowMs: number, stuckMs: number): ThreadObservation {
    return this.#watch.observe(nowMs, stuckMs, this.gone ? 'dead' : this.loaded ? 'running' : 'starting');
  }
}

/** `waiting`: calls whose promise has been open for long, as the thread itself told. */
export function threadReport(
  host: ThreadHost,
  observed: ThreadObservation,
  component: string | null,
  stuckMs: number,
  waiting: readonly LongCall[],
  executors: readonly ExecutorRange[],
  restarts: number,
): ThreadReport {
  const { state, task, call, inCallMs, lagMs } = observed;
  const isLong = call !== null && inCallMs >= stuckMs;
  // Outside a call nobody knows whose code it is.
  const who = call === 'code' ? { component: '', task: 0 } : { component: component ?? '', task: task ?? 0 };
  return {
    index: host.index,
    generation: host.generation,
    state,
    component,
    task,
    inCallMs,
    longCalls: [...(isLong ? [{ ...who, call, forMs: inCallMs, isBlocking: true }] : []), ...waiting],
    lagMs,
    executors,
    restarts,
    ...host.usage(),
  };
}
