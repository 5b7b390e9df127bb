/**
 * One peer as seen from here: its session, the connection that serves it, and the timers in between. The handshakes that
 * open connections are the owner's (peer-connections.ts).
 *
 *   absent → up (session and connection) ⇄ reconnecting (session, no connection) → absent
 */
import { type CancelTimer, type Clock, IsobarError, type Logger } from '../../base/index.js';
import type { PeerAddress } from './address.js';
import type { Connection } from './connection.js';
import type { BlockPool } from './kept-packets.js';
import { PeerSession } from './session.js';

export interface PeerOwner {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Memory for what is kept until it is confirmed. */
  readonly blocks: BlockPool;
  /** A peer that cannot be reached again within this time is lost. */
  readonly reconnectTimeoutMs: number;
  onUp(peer: string, generation: number): void;
  onLost(peer: string, generation: number, reason: string, how: LossKind): void;
  /** Starts a connection; only for peers that are dialled from here. Null: not any more. */
  dial(peer: Peer): Connection | null;
  /** Something changed that closing waits for. */
  onChanged(): void;
}

/** `gone`: the peer's process may have ended; `cut`: only the session has; `breach`: so it has, since the peer broke the protocol. */
export type LossKind = 'gone' | 'cut' | 'breach';

const FIRST_REDIAL_MS = 10;
/** Workers of a topology start one after another: the last one must not wait long for the others to try again. */
const MAX_REDIAL_MS = 100;
/** Breaches of the protocol without progress in between after which resuming is given up. */
const MAX_FAULTS = 3;

export class Peer {
  readonly key: string;
  address: PeerAddress;
  /** This side dials. */
  readonly dials: boolean;
  /** Session that the acceptor offered and may have begun, although it has not begun here. */
  offered = '';
  reconnects = 0;
  readonly #owner: PeerOwner;
  #session: PeerSession | null = null;
  #connection: Connection | null = null;
  /** A connection of ours before it is open. */
  #dialling: Connection | null = null;
  #cancelRedial: CancelTimer | null = null;
  #redialMs = FIRST_REDIAL_MS;
  #cancelLost: CancelTimer | null = null;
  #faults = 0;
  #isLeaving = false;
  /** The last failure to dial, so that the same one is not logged again and again. */
  #dialFailure = '';

  constructor(key: string, address: PeerAddress, dials: boolean, owner: PeerOwner) {
    this.key = key;
    this.address = address;
    this.dials = dials;
    this.#owner = owner;
  }

  get session(): PeerSession | null {
    return this.#session;
  }

  /** The open connection that serves the session. */
  get connection(): Connection | null {
    return this.#connection;
  }

  dial(): void {
    this.#dialling = this.#owner.dial(this);
  }

  /** Queues a copy of a frame; without a session it is dropped. */
  send(frame: Uint8Array): void {
    if (this.#session === null) return;
    this.#session.add(frame);
    this.#connection?.pump();
  }

  /** A connection is open: begins the session, or resumes it. */
  attach(
    connection: Connection,
    session: string,
    generation: number,
    peerReceived: number,
    maxFrameBytes: number,
  ): void {
    this.#cancelLost?.();
    this.#cancelLost = null;
    this.#dialling = null;
    this.#redialMs = FIRST_REDIAL_MS;
    this.#dialFailure = '';
    this.offered = session;
    const isNew = this.#session === null;
    this.#session ??= new PeerSession(session, generation, this.#owner.blocks);
    this.#connection = connection;
    if (!isNew) this.reconnects++;
    connection.open(this.#session, peerReceived, maxFrameBytes);
    this.#owner.logger.info(isNew ? 'peer.up' : 'peer.reconnected', { peer: this.key, generation });
    if (isNew) this.#owner.onUp(this.key, generation);
  }

  /** The peer speaks of another session than ours, if we have one: ours has ended. */
  endOtherSession(session: string, generation: number): void {
    if (this.#session === null || this.#session.id === session) return;
    if (generation === this.#session.generation) this.lose('the peer had given up the session', 'cut');
    else this.lose(`the peer was replaced by its generation ${generation}`, 'gone');
  }

  /** Ends the session; what was under way may not have arrived. */
  lose(reason: string, how: LossKind): void {
    const session = this.#session;
    this.#cancelLost?.();
    this.#cancelLost = null;
    if (session === null) return;
    const connection = this.#connection;
    this.#session = null;
    this.#connection = null;
    this.offered = '';
    this.#faults = 0;
    connection?.close(new IsobarError('CONNECTION_LOST', reason));
    if (connection !== null) this.#redial();
    const { generation } = session;
    const code = how === 'breach' ? 'PEER_PROTOCOL_ERROR' : 'CONNECTION_LOST';
    this.#owner.logger.warn('peer.lost', { peer: this.key, generation, code, reason });
    this.#owner.onLost(this.key, generation, reason, how);
    this.#owner.onChanged();
  }

  onProgress(): void {
    this.#faults = 0;
    this.#owner.onChanged();
  }

  /** A connection of this peer has closed. */
  onClosed(connection: Connection, error: IsobarError): void {
    const { logger, reconnectTimeoutMs, clock } = this.#owner;
    const fields = { peer: this.key, code: error.code, reason: error.message };
    if (this.#dialling === connection) {
      this.#dialling = null;
      // Nobody listens yet, or not any more: usual while workers start.
      const isNews = error.code !== 'CONNECTION_LOST' && error.message !== this.#dialFailure;
      this.#dialFailure = error.message;
      logger[isNews ? 'warn' : 'debug']('peer.dial-failed', fields);
    } else if (this.#connection === connection) {
      this.#connection = null;
      if (this.#isLeaving) return;
      logger.warn('peer.disconnected', fields);
      if (error.code === 'PEER_PROTOCOL_ERROR' && ++this.#faults >= MAX_FAULTS) {
        this.lose(`${MAX_FAULTS} breaches of the protocol in a row, the last: ${error.message}`, 'breach');
      } else {
        this.#cancelLost = clock.after(reconnectTimeoutMs, () =>
          this.lose(`it could not be reached again within ${reconnectTimeoutMs} ms`, 'gone'),
        );
      }
    } else {
      return;
    }
    this.#redial();
    this.#owner.onChanged();
  }

  /** Stops dialling; what is open stays open. */
  stopDialling(): void {
    this.#cancelRedial?.();
    this.#cancelRedial = null;
    const dialling = this.#dialling;
    this.#dialling = null;
    dialling?.close(new IsobarError('CONNECTION_LOST', 'it is not dialled any more'));
  }

  /** Tells the peer that this generation is done. */
  leave(): void {
    this.#isLeaving = true;
    this.#connection?.bye();
  }

  /** Drops everything, silently: nobody wants this peer any more. */
  remove(): void {
    this.stopDialling();
    this.#cancelLost?.();
    this.#cancelLost = null;
    const connection = this.#connection;
    this.#session = null;
    this.#connection = null;
    connection?.close(new IsobarError('CONNECTION_LOST', 'it is no longer a peer'));
  }

  #redial(): void {
    if (!this.dials || this.#cancelRedial !== null) return;
    this.#cancelRedial = this.#owner.clock.after(this.#redialMs, () => {
      this.#cancelRedial = null;
      this.dial();
    });
    this.#redialMs = Math.min(2 * this.#redialMs, MAX_REDIAL_MS);
  }
}
