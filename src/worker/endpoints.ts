/**
 * The worker's table of all executor threads of the topology, its own and those of its peers, and of the tasks that are on
 * their way. Pure bookkeeping; ids are given once per (thread, generation) and never again, so what a lost thread left
 * behind cannot be taken for its successor's.
 */
import { IsobarError } from '../base/index.js';
import type { ExecutorRange } from '../scheduling/index.js';
import type { Rest } from './quiet-watch.js';
import type { HeldTask } from './thread-messages.js';

/** A thread as its worker announces it to peers. */
export interface AnnouncedThread {
  readonly index: number;
  readonly generation: number;
  /** Tasks that take rows. */
  readonly started: readonly ExecutorRange[];
  /** It has no tasks any more, and all that they sent came before this: its end is no loss. */
  readonly isLeaving?: boolean;
}

/** More threads no worker has. */
const MAX_THREADS = 4096;

export type PeerMessage =
  /** `cuts`: tasks of the sender that are about to move, or have left and are not seen elsewhere yet. */
  | {
      readonly kind: 'threads';
      readonly number: number;
      readonly threads: readonly AnnouncedThread[];
      readonly cuts: readonly HeldTask[];
    }
  /** The threads of the sender have been told of all that the announcement of this number says. */
  | { readonly kind: 'seen'; readonly number: number }
  /**
   * The sender lost a thread or a peer and has stopped sending to it: mark every pending tree. `isCut`: nothing has ended, only
   * a session with a peer was lost.
   */
  | { readonly kind: 'loss'; readonly isCut?: true }
  /** How long have you done nothing at all? */
  | { readonly kind: 'ask-quiet' }
  | ({ readonly kind: 'quiet' } & Rest);

/** What a peer said. Throws PEER_PROTOCOL_ERROR for anything that is no message. */
export function parsePeerMessage(value: unknown): PeerMessage {
  const message = (typeof value === 'object' && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const { kind, number, threads, cuts, quietMs, calmMs, isCut } = message;
  if (kind === 'ask-quiet') return { kind };
  if (kind === 'loss') return isCut === true ? { kind, isCut } : { kind };
  if (kind === 'quiet' && typeof quietMs === 'number' && typeof calmMs === 'number')
    return { kind, quietMs, calmMs };
  if (kind === 'seen' && isCount(number)) return { kind, number };
  if (
    kind === 'threads' &&
    isCount(number) &&
    isListOf(threads, isAnnouncedThread) &&
    areThreadsOfWorker(threads) &&
    isListOf(cuts, isHeldTask)
  )
    return { kind, number, threads, cuts };
  throw new IsobarError('PEER_PROTOCOL_ERROR', 'a control message says nothing that is known', {
    expected: 'threads, seen, loss, ask-quiet or quiet',
    found: typeof kind === 'string' ? kind.slice(0, 100) : typeof kind,
  });
}

function isListOf<T>(value: unknown, isOne: (one: unknown) => one is T): value is readonly T[] {
  return Array.isArray(value) && value.every(isOne);
}

function isAnnouncedThread(value: unknown): value is AnnouncedThread {
  if (typeof value !== 'object' || value === null) return false;
  const { index, generation, started } = value as Readonly<Record<string, unknown>>;
  return isCount(index) && isCount(generation) && isListOf(started, isRange);
}

/** Each costs a link in every thread here. */
function areThreadsOfWorker(threads: readonly AnnouncedThread[]): boolean {
  return threads.length <= MAX_THREADS && new Set(threads.map(({ index }) => index)).size === threads.length;
}

function isHeldTask(value: unknown): value is HeldTask {
  if (typeof value !== 'object' || value === null) return false;
  const { task, id } = value as Readonly<Record<string, unknown>>;
  return isCount(task) && isCount(id);
}

function isRange(value: unknown): value is ExecutorRange {
  return Array.isArray(value) && value.length === 2 && value.every(isCount) && value[0]! <= value[1]!;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export interface Endpoint {
  readonly id: number;
  /** Index of the peer; -1: this worker. */
  readonly peer: number;
  readonly thread: number;
  readonly generation: number;
  started: readonly ExecutorRange[];
  isLeaving: boolean;
}

export class EndpointTable {
  #nextId = 0;
  readonly #endpoints = new Map<string, Endpoint>();
  /** By peer. */
  readonly #cuts = new Map<number, readonly HeldTask[]>();

  /**
   * Replaces the threads of one worker, and its tasks that are about to move. Returns whether any thread was lost.
   *
   * @param peer index of the peer, -1 for this worker
   */
  replace(peer: number, threads: readonly AnnouncedThread[], cuts: readonly HeldTask[] = []): boolean {
    const kept = new Set(threads.map((thread) => keyOf(peer, thread.index, thread.generation)));
    let lost = false;
    for (const [key, endpoint] of this.#endpoints) {
      if (endpoint.peer !== peer || kept.has(key)) continue;
      this.#endpoints.delete(key);
      if (!endpoint.isLeaving) lost = true;
    }
    for (const { index, generation, started, isLeaving = false } of threads) {
      const key = keyOf(peer, index, generation);
      const known = this.#endpoints.get(key);
      if (known === undefined) {
        const id = this.#nextId++;
        this.#endpoints.set(key, { id, peer, thread: index, generation, started, isLeaving });
      } else {
        known.started = started;
        known.isLeaving = isLeaving;
      }
    }
    if (cuts.length > 0) this.#cuts.set(peer, cuts);
    else this.#cuts.delete(peer);
    return lost;
  }

  find(peer: number, thread: number, generation: number): Endpoint | undefined {
    return this.#endpoints.get(keyOf(peer, thread, generation));
  }

  all(): readonly Endpoint[] {
    return [...this.#endpoints.values()];
  }

  /** Endpoint id by task number up to `lastTask`; -1: nowhere. A task's new place counts before the one that it leaves. */
  endpointOfTask(lastTask: number): Int32Array {
    const table = new Int32Array(lastTask + 1).fill(-1);
    const leavers = new Map(
      [...this.#cuts].map(([peer, cuts]) => [peer, new Set(cuts.map(({ task }) => task))]),
    );
    for (const isLeft of [true, false]) {
      for (const { id, peer, started } of this.#endpoints.values()) {
        const left = leavers.get(peer);
        if (left === undefined) {
          if (!isLeft) for (const [first, last] of started) table.fill(id, first, last + 1);
          continue;
        }
        for (const [first, last] of started) {
          // A peer may announce what it likes: there are no tasks beyond the last.
          const end = Math.min(last, lastTask);
          for (let task = first; task <= end; task++) if (left.has(task) === isLeft) table[task] = id;
        }
      }
    }
    return table;
  }

  /** Tasks on their way: a worker says that they leave it, and no other one has them yet. */
  held(endpointOfTask: Int32Array): readonly HeldTask[] {
    const workerOf = new Map(this.all().map(({ id, peer }) => [id, peer]));
    const held = new Map<number, HeldTask>();
    for (const [peer, cuts] of this.#cuts) {
      for (const cut of cuts) {
        if (cut.task >= endpointOfTask.length) continue;
        const place = workerOf.get(endpointOfTask[cut.task] ?? -1);
        if (place === undefined || place === peer) held.set(cut.task, cut);
      }
    }
    return [...held.values()];
  }
}

function keyOf(peer: number, thread: number, generation: number): string {
  return `${peer}/${thread}/${generation}`;
}
