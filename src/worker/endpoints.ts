/**
 * The worker's table of all executor threads of the topology: its own and those of its peers. Pure bookkeeping; ids are
 * given once per (thread, generation) and never again, so what a lost thread left behind cannot be taken for its successor's.
 */
import { IsobarError } from '../base/index.js';
import type { ExecutorRange } from '../scheduling/index.js';

/** A thread as its worker announces it to peers. */
export interface AnnouncedThread {
  readonly index: number;
  readonly generation: number;
  /** Executors whose tasks take rows. */
  readonly started: readonly ExecutorRange[];
}

export type PeerMessage =
  | { readonly kind: 'threads'; readonly threads: readonly AnnouncedThread[] }
  /** The sender lost a thread or a peer and has stopped sending to it: mark every pending tree. */
  | { readonly kind: 'loss' }
  /** How long have you done nothing at all? */
  | { readonly kind: 'ask-quiet' }
  | { readonly kind: 'quiet'; readonly quietMs: number };

/** What a peer said. Throws PEER_PROTOCOL_ERROR for anything that is no message. */
export function parsePeerMessage(value: unknown): PeerMessage {
  const message = (typeof value === 'object' && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const { kind, threads, quietMs } = message;
  if (kind === 'loss' || kind === 'ask-quiet') return { kind };
  if (kind === 'quiet' && typeof quietMs === 'number') return { kind, quietMs };
  if (kind === 'threads' && Array.isArray(threads) && threads.every(isAnnouncedThread))
    return { kind, threads };
  throw new IsobarError('PEER_PROTOCOL_ERROR', 'a control message says nothing that is known', {
    expected: 'threads, loss, ask-quiet or quiet',
    found: typeof kind === 'string' ? kind.slice(0, 100) : typeof kind,
  });
}

function isAnnouncedThread(value: unknown): value is AnnouncedThread {
  if (typeof value !== 'object' || value === null) return false;
  const { index, generation, started } = value as Readonly<Record<string, unknown>>;
  return isCount(index) && isCount(generation) && Array.isArray(started) && started.every(isRange);
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
}

export class EndpointTable {
  #nextId = 0;
  readonly #endpoints = new Map<string, Endpoint>();

  /**
   * Replaces the threads of one worker. Returns whether any of them was lost.
   *
   * @param peer index of the peer, -1 for this worker
   */
  replace(peer: number, threads: readonly AnnouncedThread[]): boolean {
    const kept = new Set(threads.map((thread) => keyOf(peer, thread.index, thread.generation)));
    let lost = false;
    for (const [key, endpoint] of this.#endpoints) {
      if (endpoint.peer !== peer || kept.has(key)) continue;
      this.#endpoints.delete(key);
      lost = true;
    }
    for (const thread of threads) {
      const key = keyOf(peer, thread.index, thread.generation);
      const known = this.#endpoints.get(key);
      if (known === undefined) {
        this.#endpoints.set(key, {
          id: this.#nextId++,
          peer,
          thread: thread.index,
          generation: thread.generation,
          started: thread.started,
        });
      } else {
        known.started = thread.started;
      }
    }
    return lost;
  }

  find(peer: number, thread: number, generation: number): Endpoint | undefined {
    return this.#endpoints.get(keyOf(peer, thread, generation));
  }

  all(): readonly Endpoint[] {
    return [...this.#endpoints.values()];
  }

  /** Endpoint id by task number up to `lastTask`; -1: nowhere. */
  endpointOfTask(lastTask: number): Int32Array {
    const table = new Int32Array(lastTask + 1).fill(-1);
    for (const endpoint of this.#endpoints.values()) {
      for (const [first, last] of endpoint.started) table.fill(endpoint.id, first, last + 1);
    }
    return table;
  }
}

function keyOf(peer: number, thread: number, generation: number): string {
  return `${peer}/${thread}/${generation}`;
}
