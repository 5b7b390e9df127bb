/**
 * Decides when a session ends. What a session owns is in the tree; this knows only whether its client is there.
 *
 *     attached ──connection closes──► detached ──re-attaches──► attached
 *        │ silent for its time-out        │ time-out, or its process is verified gone
 *        └──────────► ended ◄─────────────┘
 *
 * M1 A session ends before its time-out only when the process that opened it is verified gone.
 * M2 Time in which this process itself did not run (stopped, blocked) is not counted against any session, and what has
 *    already arrived is read before a session is found silent.
 */
import type { CancelTimer, Clock, ProcessIdentity } from '../../base/index.js';
import { afterArrivedInput } from '../after-arrived-input.js';

import type { SessionRecord } from './node-tree.js';

export type EndReason = 'silent for its time-out' | 'its process is gone';

type Presence<Client> = {
  readonly session: SessionRecord;
  deadlineMs: number;
} & ({ readonly kind: 'attached'; readonly client: Client } | { readonly kind: 'detached' });

const FIRST_CHECK_MS = 2;

export class SessionMonitor<Client> {
  readonly #clock: Clock;
  readonly #isProcessAlive: (identity: ProcessIdentity) => boolean;
  readonly #onEnd: (sessionId: string, reason: EndReason) => void;
  readonly #sweepMs: number;
  readonly #presences = new Map<string, Presence<Client>>();
  readonly #stopSweeping: CancelTimer;
  #lastSweepMs: number;
  #isStopped = false;

  constructor(options: {
    readonly clock: Clock;
    readonly isProcessAlive: (identity: ProcessIdentity) => boolean;
    /** Asks for the end of a session; {@link reasonToEnd} says whether it still holds. */
    readonly onEnd: (sessionId: string, reason: EndReason) => void;
    /** Time between two looks at all sessions. */
    readonly sweepMs: number;
  }) {
    this.#clock = options.clock;
    this.#isProcessAlive = options.isProcessAlive;
    this.#onEnd = options.onEnd;
    this.#sweepMs = options.sweepMs;
    this.#lastSweepMs = this.#clock.nowMs();
    this.#stopSweeping = this.#clock.every(this.#sweepMs, () => this.#sweep());
  }

  /** A session from the log: its client has a full time-out to come back. */
  restore(session: SessionRecord): void {
    this.#setDetached(session, this.#clock.nowMs() + session.timeoutMs);
  }

  /** Returns the client that was attached before, if it was another one. */
  attach(session: SessionRecord, client: Client): Client | undefined {
    const before = this.#presences.get(session.id);
    const deadlineMs = this.#clock.nowMs() + session.timeoutMs;
    this.#presences.set(session.id, { kind: 'attached', session, client, deadlineMs });
    return before?.kind === 'attached' && before.client !== client ? before.client : undefined;
  }

  /** The connection of `client` is gone; nothing happens if the session has another client by now. */
  detach(sessionId: string, client: Client): void {
    const presence = this.#presences.get(sessionId);
    if (presence?.kind !== 'attached' || presence.client !== client) return;
    this.#setDetached(presence.session, this.#clock.nowMs() + presence.session.timeoutMs);
  }

  /** The client has been heard. */
  touch(sessionId: string): void {
    const presence = this.#presences.get(sessionId);
    if (presence !== undefined) presence.deadlineMs = this.#clock.nowMs() + presence.session.timeoutMs;
  }

  /** Forgets an ended session and returns its client, if one is attached. */
  forget(sessionId: string): Client | undefined {
    const presence = this.#presences.get(sessionId);
    this.#presences.delete(sessionId);
    return presence?.kind === 'attached' ? presence.client : undefined;
  }

  /** Why the session is to be ended now; undefined when it is not. */
  reasonToEnd(sessionId: string): EndReason | undefined {
    const presence = this.#presences.get(sessionId);
    if (presence === undefined) return undefined;
    if (presence.deadlineMs <= this.#clock.nowMs()) return 'silent for its time-out';
    if (presence.kind === 'detached' && !this.#isProcessAlive(presence.session.process)) {
      return 'its process is gone';
    }
    return undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopSweeping();
  }

  #setDetached(session: SessionRecord, deadlineMs: number): void {
    const presence: Presence<Client> = { kind: 'detached', session, deadlineMs };
    this.#presences.set(session.id, presence);
    this.#checkSoon(presence, FIRST_CHECK_MS);
  }

  /** A killed process closes its sockets some time before it is gone: look again and again, then with the sweeps. */
  #checkSoon(presence: Presence<Client>, delayMs: number): void {
    if (this.#isStopped || this.#presences.get(presence.session.id) !== presence) return;
    const reason = this.reasonToEnd(presence.session.id);
    if (reason !== undefined) this.#onEnd(presence.session.id, reason);
    else if (delayMs < this.#sweepMs) {
      this.#clock.after(delayMs, () => this.#checkSoon(presence, delayMs * 2));
    }
  }

  #sweep(): void {
    const nowMs = this.#clock.nowMs();
    const missedMs = nowMs - this.#lastSweepMs - this.#sweepMs;
    this.#lastSweepMs = nowMs;
    if (missedMs > this.#sweepMs) {
      for (const presence of this.#presences.values()) presence.deadlineMs += missedMs;
    }
    const suspects: string[] = [];
    for (const id of this.#presences.keys()) if (this.reasonToEnd(id) !== undefined) suspects.push(id);
    if (suspects.length > 0) afterArrivedInput(() => this.#endThoseOf(suspects));
  }

  #endThoseOf(suspects: readonly string[]): void {
    if (this.#isStopped) return;
    for (const id of suspects) {
      const reason = this.reasonToEnd(id);
      if (reason !== undefined) this.#onEnd(id, reason);
    }
  }
}
