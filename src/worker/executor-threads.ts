/**
 * The executor threads of a worker: started, restarted with back-off and a new generation when they end, ended when they
 * have no tasks any more. It does not know what they run.
 */
import { IsobarError, type Clock, type Logger, type RawSettings, type Settings } from '../base/index.js';
import { ThreadHost } from './thread-host.js';
import type { FromThread, ThreadStart } from './thread-messages.js';

const HEALTHY_MS = 10_000;
/** Threads are observed once a second, or often enough to see in time that one is stuck. */
const LONGEST_OBSERVE_MS = 1000;
const OBSERVATIONS_UNTIL_STUCK = 5;

export interface ExecutorThreadsOptions {
  readonly entry: URL;
  readonly mainDoorbell: SharedArrayBuffer;
  readonly settings: Settings;
  readonly base: {
    readonly topologyId: string;
    readonly topologyName: string;
    readonly codePath: string;
    readonly descriptionPath: string;
    readonly settings: readonly RawSettings[];
    readonly deadLetterDirectory: string;
    readonly logPath: string;
  } & Omit<
    ThreadStart,
    'index' | 'generation' | 'progress' | 'doorbell' | 'toMain' | 'fromMain' | 'mainDoorbell'
  >;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Heap limit of a thread for what it is about to run, MB; null: that of Node. */
  heapMbOf(index: number): number | null;
  /** A new generation of the topology; may take long while the supervisor is away. */
  nextGeneration(): Promise<number>;
  /** Called for each new thread before anything else is posted to it. */
  onStarted(host: ThreadHost): void;
  onMessage(host: ThreadHost, message: FromThread): void;
  /** A thread ended that was not told to; it will be restarted. */
  onGone(host: ThreadHost, error: unknown): void;
}

interface ThreadPlace {
  host: ThreadHost | undefined;
  restarts: number;
  backoffMs: number;
}

export class ExecutorThreads {
  readonly #options: ExecutorThreadsOptions;
  readonly #places: ThreadPlace[] = [];
  readonly #onClosed = new Map<string, () => void>();
  #isStopping = false;
  /** No thread has been restarted yet. */
  isFirstLife = true;

  constructor(options: ExecutorThreadsOptions) {
    this.#options = options;
    options.clock.every(observeMs(options.settings), () => this.#watch());
  }

  /** Threads that there are, or will be again. */
  get count(): number {
    return this.#places.length;
  }

  /** The thread at a place; undefined: it is being started again. */
  at(index: number): ThreadHost | undefined {
    const host = this.#places[index]?.host;
    return host?.gone === true ? undefined : host;
  }

  all(): readonly ThreadHost[] {
    return this.#places.flatMap(({ host }) => (host === undefined || host.gone ? [] : [host]));
  }

  /** With the number of restarts of each place, dead ones included. */
  places(): readonly { readonly host: ThreadHost; readonly restarts: number }[] {
    return this.#places.flatMap(({ host, restarts }) => (host === undefined ? [] : [{ host, restarts }]));
  }

  /** Adds threads up to `count`. `generation`: of the first ones; others ask for one of their own. */
  grow(count: number, generation?: number): void {
    while (this.#places.length < count) {
      const backoffMs = this.#options.settings['worker.restart-backoff'];
      this.#places.push({ host: undefined, restarts: 0, backoffMs });
      const index = this.#places.length - 1;
      if (generation === undefined) void this.#startLater(index, 0);
      else this.#start(index, generation);
    }
  }

  /** Ends the last thread, which has no tasks any more. */
  async dropLast(): Promise<void> {
    const place = this.#places.pop();
    if (place?.host !== undefined) await this.#close(place.host);
  }

  /** Closes all tasks and ends, within `limitMs` or whatever. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopping = true;
    const closing = this.all().map((host) => this.#close(host));
    await Promise.race([Promise.all(closing), new Promise((resolve) => setTimeout(resolve, limitMs))]);
  }

  #close(host: ThreadHost): Promise<void> {
    return new Promise((resolve) => {
      if (host.gone) resolve();
      this.#onClosed.set(host.key, resolve);
      host.post({ kind: 'stop' });
    });
  }

  #start(index: number, generation: number): void {
    const place = this.#places[index];
    if (place === undefined || this.#isStopping) return;
    const { settings } = this.#options;
    const host = new ThreadHost(
      {
        index,
        generation,
        entry: this.#options.entry,
        ringBytes: settings['messaging.ring-bytes'],
        heapMb: settings['worker.thread-heap-mb'] ?? this.#options.heapMbOf(index),
        mainDoorbell: this.#options.mainDoorbell,
        base: this.#options.base,
        onMessage: (message) => this.#onMessage(host, message),
        onGone: (error) => this.#onGone(host, error),
      },
      this.#options.clock.nowMs(),
    );
    place.host = host;
    this.#options.onStarted(host);
  }

  async #startLater(index: number, pauseMs: number): Promise<void> {
    const [generation] = await Promise.all([
      this.#options.nextGeneration(),
      new Promise<void>((resolve) => setTimeout(resolve, pauseMs)),
    ]);
    this.#start(index, generation);
  }

  #onMessage(host: ThreadHost, message: FromThread): void {
    if (message.kind === 'closed') this.#onClosed.get(host.key)?.();
    else this.#options.onMessage(host, message);
  }

  #onGone(host: ThreadHost, error: unknown): void {
    const closed = this.#onClosed.get(host.key);
    closed?.();
    for (const other of this.all()) other.forgetRingTo(host);
    const place = this.#places[host.index];
    if (this.#isStopping || closed !== undefined || place?.host !== host) return;
    this.isFirstLife = false;
    this.#options.onGone(host, error);
    place.restarts++;
    const { settings, clock } = this.#options;
    if (clock.nowMs() - host.bornMs > HEALTHY_MS) place.backoffMs = settings['worker.restart-backoff'];
    const pauseMs = place.backoffMs;
    place.backoffMs = Math.min(place.backoffMs * 2, settings['worker.restart-backoff-max']);
    void this.#startLater(host.index, pauseMs);
  }

  #watch(): void {
    const { settings, clock, logger } = this.#options;
    const limitMs = settings['worker.stuck-timeout'];
    for (const host of this.all()) {
      const { state, inCallMs, task, call } = host.observe(clock.nowMs(), settings['worker.stuck-warning']);
      const isStuck = state === 'stuck';
      if (isStuck && !host.isStuck) logger.warn('thread.stuck', { thread: host.index, task, call, inCallMs });
      host.isStuck = isStuck;
      if (limitMs !== null && isStuck && inCallMs >= limitMs)
        void host.terminate(stuckFor(inCallMs, limitMs, call));
    }
  }
}

function stuckFor(inCallMs: number, limitMs: number, call: string | null): IsobarError {
  const found = `${call ?? 'code'} for ${Math.round(inCallMs / 1000)} s`;
  return new IsobarError('THREAD_STUCK', `it was stuck in ${found}, and worker.stuck-timeout ended it`, {
    expected: `calls that return within worker.stuck-timeout (${limitMs} ms)`,
    found,
  });
}

function observeMs(settings: Settings): number {
  const stuckMs = Math.min(settings['worker.stuck-warning'], settings['worker.stuck-timeout'] ?? Infinity);
  return Math.max(1, Math.min(LONGEST_OBSERVE_MS, stuckMs / OBSERVATIONS_UNTIL_STUCK));
}
