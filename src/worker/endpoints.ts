/**
 * The worker's table of all executor threads of the topology: its own and those of its peers. Pure bookkeeping; ids are
 * given once per (thread, generation) and never again, so what a lost thread left behind cannot be taken for its successor's.
 */
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
