/**
 * A worker's connection to its supervisor: says hello, reconnects for ever, passes on what the supervisor tells. While
 * it is away the worker goes on; what must reach the supervisor waits here (positions) or is said anew (heartbeats).
 */
import {
  connectChannel,
  hasCode,
  IsobarError,
  type Channel,
  type Clock,
  type ErrorRecord,
  type Logger,
} from '../base/index.js';
import type {
  Handover,
  SlotSearch,
  StateCopy,
  StateFile,
  StoredPosition,
  TapReport,
  TapRequest,
  TopologyPhase,
  WorkerHeartbeat,
  WorkerHello,
  WorkerWelcome,
} from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';

const RECONNECT_MS = 100;
/** While the coordinator is away its positions cannot be stored, and each attempt is logged. */
const MAX_STORE_RETRY_MS = 1000;
const REQUEST_TIMEOUT_MS = 10_000;
/** Unread bytes above which heartbeats are left out: the next one says all that the last one said. */
const MAX_UNREAD_BYTES = 1024 * 1024;

export interface SupervisorLinkHandlers {
  onAssignment(assignment: Assignment): void;
  onHandovers(handovers: readonly Handover[]): void;
  onPhase(phase: TopologyPhase): void;
  /** Somebody wants to see live rows. */
  onTap(request: TapRequest): Promise<TapReport>;
  /** Somebody wants to know where a row is. */
  onFindRow(rootTask: number, sequence: number): Promise<string | null>;
  onStop(): void;
  /** The slot belongs to another worker now: this one must end. */
  onRefused(): void;
  /** The supervisor went (false) or is there again (true). */
  onPresence(present: boolean): void;
}

export class SupervisorLink {
  readonly #socketPath: string;
  readonly #hello: WorkerHello;
  readonly #handlers: SupervisorLinkHandlers;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #channel: Channel | undefined;
  #closed = false;
  readonly #waiting: (() => void)[] = [];
  #positions = new Map<number, StoredPosition>();
  /** A batch is under way, or the pause after one that failed. */
  #storing = false;
  #storeRetryMs = RECONNECT_MS;
  /** Called when no position waits any more. */
  readonly #storedWaiters: (() => void)[] = [];
  /** Called when the supervisor goes. */
  readonly #awayWaiters: (() => void)[] = [];

  constructor(options: {
    socketPath: string;
    hello: WorkerHello;
    handlers: SupervisorLinkHandlers;
    clock: Clock;
    logger: Logger;
  }) {
    this.#socketPath = options.socketPath;
    this.#hello = options.hello;
    this.#handlers = options.handlers;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  get isConnected(): boolean {
    return this.#channel !== undefined;
  }

  /** Connects now and after every loss, until closed. */
  start(): void {
    void this.#connect();
  }

  /** A supervisor that does not read (a stopped process) is told no more than it can be told at once later. */
  heartbeat(heartbeat: WorkerHeartbeat): void {
    if (this.#channel !== undefined && this.#channel.unreadBytes < MAX_UNREAD_BYTES)
      this.#channel.event('heartbeat', heartbeat);
  }

  /** This worker cannot run the topology at all (its graph differs, a module is missing). */
  unusable(error: ErrorRecord): void {
    this.#channel?.event('unusable', error);
  }

  /** A new generation of this topology; waits for the supervisor if it is away. */
  async nextGeneration(): Promise<number> {
    return (await this.#ask('next-generation', null)) as number;
  }

  /** Gives a file with the state of a task to the supervisor, which keeps it as a blob; resolves to its hash. */
  async storeState(file: StateFile): Promise<string> {
    return (await this.#ask('store-state', file, isRefusal)) as string;
  }

  /** Resolves when a file with that state is at `path`. @throws TASK_STATE_MISSING, STATE_DIRECTORY_UNUSABLE */
  async fetchState(copy: StateCopy): Promise<void> {
    await this.#ask('fetch-state', copy, isRefusal);
  }

  /** Resolves when that step of a move is on record. */
  async handOver(handovers: readonly Handover[]): Promise<void> {
    await this.#ask('hand-over', handovers);
  }

  async readPositions(): Promise<readonly StoredPosition[]> {
    return (await this.#ask('read-positions', null)) as readonly StoredPosition[];
  }

  /** Queues positions; a newer one of the same task replaces an older one that waits. */
  storePositions(positions: readonly StoredPosition[]): void {
    for (const position of positions) this.#positions.set(position.task, position);
    void this.#storeQueued();
  }

  /** Resolves when no position waits to be stored; while the supervisor is away, some may. */
  async positionsStored(): Promise<void> {
    void this.#storeQueued();
    if (this.#hasPositions) await new Promise<void>((resolve) => this.#storedWaiters.push(resolve));
  }

  /** As {@link positionsStored}, for `timeoutMs` at most, and not while the supervisor is away. */
  async flushPositions(timeoutMs: number): Promise<void> {
    if (this.#channel === undefined) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(timeoutMs, resolve);
      this.#awayWaiters.push(resolve);
      void this.positionsStored().then(() => {
        cancel();
        resolve();
      });
    });
  }

  close(): void {
    this.#closed = true;
    this.#channel?.end();
    this.#channel = undefined;
  }

  async #storeQueued(): Promise<void> {
    if (this.#storing || this.#positions.size === 0 || this.#channel === undefined) return;
    const batch = this.#positions;
    this.#positions = new Map();
    this.#storing = true;
    try {
      await this.#channel.request('store-positions', [...batch.values()], { timeoutMs: REQUEST_TIMEOUT_MS });
      this.#storeRetryMs = RECONNECT_MS;
    } catch (error) {
      this.#logger.warn('positions.not-stored', { message: String(error) });
      for (const [task, position] of batch)
        if (!this.#positions.has(task)) this.#positions.set(task, position);
      await new Promise<void>((resolve) => this.#clock.after(this.#storeRetryMs, resolve));
      this.#storeRetryMs = Math.min(MAX_STORE_RETRY_MS, 2 * this.#storeRetryMs);
    } finally {
      this.#storing = false;
    }
    if (this.#positions.size === 0) for (const resolve of this.#storedWaiters.splice(0)) resolve();
    // Without a supervisor the next one is told.
    else if (this.#isConnectedNow()) void this.#storeQueued();
  }

  get #hasPositions(): boolean {
    return this.#positions.size > 0 || this.#storing;
  }

  #isConnectedNow(): boolean {
    return this.#channel !== undefined;
  }

  /** Asks until it is answered; what `isFinal` says so of is an answer, too. */
  async #ask(
    method: string,
    body: unknown,
    isFinal: (error: unknown) => boolean = () => false,
  ): Promise<unknown> {
    for (;;) {
      const channel = this.#channel;
      if (channel === undefined) {
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
        continue;
      }
      try {
        return await channel.request(method, body, { timeoutMs: REQUEST_TIMEOUT_MS });
      } catch (error) {
        if (isFinal(error)) throw error;
        this.#logger.warn('supervisor.request-failed', { method, message: String(error) });
        await new Promise<void>((resolve) => setTimeout(resolve, RECONNECT_MS));
      }
    }
  }

  async #connect(): Promise<void> {
    while (!this.#closed) {
      let channel: Channel | undefined;
      try {
        channel = await connectChannel(this.#socketPath, {
          onEvent: (name, body) => this.#onEvent(name, body),
          onRequest: (method, body) => this.#onRequest(method, body),
          onFault: (fault) => this.#logger.warn('supervisor.refused', { reason: fault.message }),
          onClose: (closed) => this.#onClose(closed),
        });
        const welcome = (await channel.request('hello', this.#hello, {
          timeoutMs: REQUEST_TIMEOUT_MS,
        })) as WorkerWelcome;
        this.#channel = channel;
        this.#handlers.onPresence(true);
        this.#handlers.onHandovers(welcome.handovers);
        this.#handlers.onAssignment(welcome.assignment);
        this.#handlers.onPhase(welcome.phase);
        for (const resolve of this.#waiting.splice(0)) resolve();
        void this.#storeQueued();
        return;
      } catch (error) {
        // A channel on which hello was not answered must not linger beside the next one.
        channel?.close();
        if (hasCode(error, 'GENERATION_OUTDATED')) {
          this.#logger.warn('worker.refused', { message: error.message });
          this.#handlers.onRefused();
          return;
        }
        await new Promise<void>((resolve) => setTimeout(resolve, RECONNECT_MS));
      }
    }
  }

  /** The supervisor has looked at the bodies. */
  #onRequest(method: string, body: unknown): Promise<unknown> {
    if (method === 'tap') return this.#handlers.onTap(body as TapRequest);
    if (method === 'find-row') {
      const { rootTask, sequence } = body as SlotSearch;
      return this.#handlers.onFindRow(rootTask, sequence);
    }
    throw new IsobarError('INTERNAL', `a worker does not answer "${method.slice(0, 100)}"`);
  }

  #onEvent(name: string, body: unknown): void {
    switch (name) {
      case 'assignment':
        this.#handlers.onAssignment(body as Assignment);
        break;
      case 'handovers':
        this.#handlers.onHandovers(body as readonly Handover[]);
        break;
      case 'phase':
        this.#handlers.onPhase(body as TopologyPhase);
        break;
      case 'stop':
        this.#handlers.onStop();
        break;
      default:
        this.#logger.warn('supervisor.unknown-event', { name });
    }
  }

  #onClose(closed: Channel): void {
    if (this.#channel !== closed) return;
    this.#channel = undefined;
    for (const resolve of this.#awayWaiters.splice(0)) resolve();
    if (this.#closed) return;
    this.#handlers.onPresence(false);
    void this.#connect();
  }
}

/** The answer of a supervisor that is there and cannot do it: asking again changes nothing soon. */
function isRefusal(error: unknown): boolean {
  return hasCode(error, 'STATE_DIRECTORY_UNUSABLE') || hasCode(error, 'TASK_STATE_MISSING');
}
