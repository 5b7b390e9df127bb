/**
 * The connections of one worker to the other workers of its topology: one per pair, dialled by the side with the smaller
 * key, opened again when it breaks. Used by a worker's main thread.
 *
 * Invariants
 * N1  Per session, frames arrive exactly once and in order (session.ts), over any number of sockets.
 * N2  `onLost` of a session comes before `onUp` of the next one with that peer; nothing of a session is delivered after
 *     its `onLost`.
 * N3  A generation older than one that has proved itself is refused.
 * N4  Only monotonic time is used.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import net from 'node:net';
import { type Clock, checkSocketPath, hasCode, IsobarError, type Logger } from '../../base/index.js';
import { connectOptions, type PeerAddress } from './address.js';
import { Connection } from './connection.js';
import { protocolError } from './envelope.js';
import {
  type Challenge,
  type HandshakeMessage,
  type Hello,
  NONCE_BYTES,
  outdated,
  type Proof,
  PROTOCOL_VERSION,
  proofsAgree,
  prove,
  reasonToRefuse,
  refusal,
} from './handshake.js';
import { BlockPool } from './kept-packets.js';
import { type LossKind, Peer, type PeerOwner } from './peer.js';

export interface PeerConnectionsOptions {
  readonly topologyId: string;
  /** This worker's key. */
  readonly self: string;
  readonly generation: number;
  /** The topology's secret, hex. */
  readonly secret: string;
  readonly listen: PeerAddress;
  /** Largest row; frames may be larger by the other rows of a batch. */
  readonly maxFrameBytes: number;
  /** A peer that cannot be reached again within this time is lost. */
  readonly reconnectTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly randomBytes?: (bytes: number) => Buffer;
  /**
   * A whole, checked frame, whose memory is the receiver's and starts at a multiple of 4. Throws PEER_PROTOCOL_ERROR if
   * what it says makes no sense: the session then ends.
   */
  onFrame(peer: string, frame: Buffer): void;
  /** A session has begun; not called when one is resumed. */
  onUp(peer: string, generation: number): void;
  /** A session has ended: what was sent in it may not have arrived. Not called for peers removed by `setPeers`. */
  onLost(peer: string, generation: number, reason: string, how: LossKind): void;
}

export interface PeerStats {
  readonly peer: string;
  /** 0: no session. */
  readonly generation: number;
  readonly connected: boolean;
  readonly bufferedBytes: number;
  readonly reconnects: number;
  readonly resent: number;
  readonly duplicatesDropped: number;
}

/** Room for the other rows of a batch around one of the largest size. */
const BATCH_SLACK_BYTES = 4 * 1024 * 1024;
const MAX_HANDSHAKE_MS = 5000;
/** Strangers that may be in the middle of a handshake at once. */
const MAX_STRANGERS = 256;
const CLOSE_FLUSH_MS = 500;
const CLOSE_END_MS = 200;

/** How far a connection of the accepting side has come. */
type Accepted =
  | { readonly step: 'hello' }
  | { readonly step: 'proof'; readonly hello: Hello; readonly challenge: Challenge }
  | { readonly step: 'open'; readonly peer: Peer };

export class PeerConnections {
  readonly #options: PeerConnectionsOptions;
  readonly #secret: Buffer;
  readonly #randomBytes: (bytes: number) => Buffer;
  readonly #maxFrameBytes: number;
  readonly #handshakeMs: number;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  readonly #owner: PeerOwner;
  readonly #peers = new Map<string, Peer>();
  /** Highest generation that has proved itself, by key; outlives the peers. */
  readonly #seen = new Map<string, number>();
  #strangers = 0;
  #lastRejection = '';
  #closing: Promise<void> | null = null;
  /** Called when something has changed that closing waits for. */
  #onChanged: (() => void) | null = null;

  constructor(options: PeerConnectionsOptions) {
    this.#options = options;
    this.#secret = Buffer.from(options.secret, 'hex');
    this.#randomBytes = options.randomBytes ?? systemRandomBytes;
    this.#maxFrameBytes = options.maxFrameBytes + BATCH_SLACK_BYTES;
    this.#handshakeMs = Math.min(options.reconnectTimeoutMs, MAX_HANDSHAKE_MS);
    this.#owner = {
      clock: options.clock,
      logger: options.logger,
      blocks: new BlockPool(),
      reconnectTimeoutMs: options.reconnectTimeoutMs,
      onUp: (peer, generation) => options.onUp(peer, generation),
      onLost: (peer, generation, reason, how) => options.onLost(peer, generation, reason, how),
      dial: (peer) => this.#dial(peer),
      onChanged: () => this.#onChanged?.(),
    };
    this.#server = net.createServer((socket) => this.#accept(socket));
  }

  /** Opens the listening socket; a stale socket file is replaced. Throws SOCKET_PATH_TOO_LONG. */
  async listen(): Promise<void> {
    const { listen } = this.#options;
    if (listen.kind === 'unix') {
      checkSocketPath(listen.path);
      rmSync(listen.path, { force: true });
    }
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(connectOptions(listen), resolve);
    });
    this.#server.removeAllListeners('error');
    this.#server.on('error', (error) =>
      this.#options.logger.warn('peer.accept-failed', { error: error.message }),
    );
  }

  /** The peers wanted from now on. Connections to others are closed, with their sessions. */
  setPeers(peers: ReadonlyMap<string, PeerAddress>): void {
    for (const [key, peer] of this.#peers) {
      if (peers.has(key)) continue;
      this.#peers.delete(key);
      peer.remove();
    }
    if (this.#closing !== null) return;
    for (const [key, address] of peers) {
      if (key === this.#options.self) continue;
      const known = this.#peers.get(key);
      if (known !== undefined) {
        known.address = address;
        continue;
      }
      const peer = new Peer(key, address, this.#options.self < key, this.#owner);
      this.#peers.set(key, peer);
      if (peer.dials) peer.dial();
    }
  }

  /**
   * Sends a copy of a frame, which is kept until the peer has confirmed it. Without a session with the peer it is dropped,
   * since the caller has been told or will be. Throws ROW_TOO_LARGE.
   */
  send(peer: string, frame: Uint8Array): void {
    if (frame.length > this.#maxFrameBytes) {
      throw new IsobarError('ROW_TOO_LARGE', `a frame of ${frame.length} bytes is too large`, {
        expected: `at most ${this.#maxFrameBytes} bytes`,
        found: `${frame.length} bytes`,
        where: peer,
      });
    }
    this.#peers.get(peer)?.send(frame);
  }

  /** Destroys the socket to a peer, as a fault would; the session is resumed over the next one. */
  cut(peer: string): void {
    this.#peers
      .get(peer)
      ?.connection?.close(new IsobarError('CONNECTION_LOST', 'the connection was cut on purpose'));
  }

  /** Ends the session with a peer that was found to send what cannot be meant; `onLost` follows at once. */
  reject(peer: string, reason: string): void {
    this.#peers.get(peer)?.lose(`it was rejected: ${reason}`, 'breach');
  }

  /** Waits a short while for confirmations, tells the peers that this generation is done, and closes everything. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  stats(): PeerStats[] {
    return [...this.#peers.values()].map((peer) => ({
      peer: peer.key,
      generation: peer.session?.generation ?? 0,
      connected: peer.connection !== null,
      bufferedBytes: peer.session?.bufferedBytes ?? 0,
      reconnects: peer.reconnects,
      resent: peer.session?.resent ?? 0,
      duplicatesDropped: peer.session?.duplicatesDropped ?? 0,
    }));
  }

  // ── dialling ──

  #dial(peer: Peer): Connection | null {
    if (this.#closing !== null || this.#peers.get(peer.key) !== peer) return null;
    const socket = net.connect(connectOptions(peer.address));
    this.#track(socket);
    const { topologyId, self, generation } = this.#options;
    const hello: Hello = {
      kind: 'hello',
      version: PROTOCOL_VERSION,
      topologyId,
      from: self,
      to: peer.key,
      generation,
      nonce: this.#nonce(),
      session: peer.session?.id ?? peer.offered,
    };
    let challenge: Challenge | null = null;
    const connection = new Connection(
      socket,
      {
        onHandshake: (message) => {
          if (message.kind === 'refused') throw refusal(message.reason, peer.key);
          if (challenge === null) {
            challenge = expectKind(message, 'challenge');
            this.#answerChallenge(peer, connection, hello, challenge);
          } else {
            this.#onWelcome(peer, connection, challenge, expectKind(message, 'welcome').received);
          }
        },
        onFrame: (frame) => this.#deliver(peer, frame),
        onProgress: () => peer.onProgress(),
        onBye: () => peer.lose('the peer has closed', 'gone'),
        onDeaf: (_, reason) => peer.lose(reason, 'breach'),
        onClosed: (_, error) => peer.onClosed(connection, error),
      },
      this.#options.clock,
      this.#handshakeMs,
    );
    connection.sendHandshake(hello);
    return connection;
  }

  #answerChallenge(peer: Peer, connection: Connection, hello: Hello, challenge: Challenge): void {
    if (challenge.from !== peer.key) throw refusal(`it is "${challenge.from}"`, peer.key);
    if (!proofsAgree(prove(this.#secret, 'acceptor', hello, challenge), challenge.proof)) {
      throw refusal('it does not know the secret of the topology', peer.key);
    }
    const seen = this.#seen.get(peer.key) ?? 0;
    if (challenge.generation < seen) throw refusal(outdated(challenge.generation, seen), peer.key);
    this.#seen.set(peer.key, challenge.generation);
    peer.endOtherSession(challenge.session, challenge.generation);
    peer.offered = challenge.session;
    connection.sendHandshake({
      kind: 'proof',
      received: peer.session?.received ?? 0,
      proof: prove(this.#secret, 'dialer', hello, challenge),
    });
  }

  #onWelcome(peer: Peer, connection: Connection, challenge: Challenge, received: number): void {
    // The session may have been given up since the challenge: then nothing of it must be taken up again.
    if (peer.offered !== challenge.session) throw refusal('its session has ended meanwhile', peer.key);
    if (peer.session === null) checkNothingReceived(received);
    peer.attach(connection, challenge.session, challenge.generation, received, this.#maxFrameBytes);
  }

  // ── accepting ──

  #accept(socket: net.Socket): void {
    if (this.#closing !== null || this.#strangers >= MAX_STRANGERS) {
      socket.destroy();
      return;
    }
    this.#track(socket);
    this.#strangers++;
    let state: Accepted = { step: 'hello' };
    const connection = new Connection(
      socket,
      {
        onHandshake: (message) => {
          if (state.step === 'hello') {
            const hello = expectKind(message, 'hello');
            const challenge = this.#answerHello(connection, hello);
            if (challenge !== null) state = { step: 'proof', hello, challenge };
          } else if (state.step === 'proof') {
            const proof = expectKind(message, 'proof');
            const peer = this.#checkProof(state, proof);
            const { hello, challenge } = state;
            state = { step: 'open', peer };
            this.#strangers--;
            // Before saying what was received: nothing more may come over the socket that this one replaces.
            peer.connection?.close(
              new IsobarError('CONNECTION_LOST', 'the peer has opened a new connection'),
            );
            peer.endOtherSession(challenge.session, hello.generation);
            // Who was told of the end of the other session may have changed the peers.
            if (this.#peers.get(hello.from) !== peer) throw refusal('it is no peer any more', hello.from);
            connection.sendHandshake({ kind: 'welcome', received: peer.session?.received ?? 0 });
            peer.attach(connection, challenge.session, hello.generation, proof.received, this.#maxFrameBytes);
          }
        },
        onFrame: (frame) => {
          if (state.step === 'open') this.#deliver(state.peer, frame);
        },
        onProgress: () => {
          if (state.step === 'open') state.peer.onProgress();
        },
        onBye: () => {
          if (state.step === 'open') state.peer.lose('the peer has closed', 'gone');
        },
        onDeaf: (_, reason) => {
          if (state.step === 'open') state.peer.lose(reason, 'breach');
        },
        onClosed: (_, error) => {
          if (state.step === 'open') {
            state.peer.onClosed(connection, error);
            return;
          }
          this.#strangers--;
          this.#logRejection(error);
        },
      },
      this.#options.clock,
      this.#handshakeMs,
    );
  }

  /** Challenges the dialer, or refuses it (null). */
  #answerHello(connection: Connection, hello: Hello): Challenge | null {
    const { self, generation } = this.#options;
    const peer = this.#peers.get(hello.from);
    const isPeer = peer !== undefined && !peer.dials;
    const reason = reasonToRefuse(hello, this.#options, isPeer, this.#seen.get(hello.from) ?? 0);
    if (reason !== null) {
      connection.endWith({ kind: 'refused', reason }, refusal(reason, hello.from));
      return null;
    }
    const known = peer?.session;
    const resumes = known?.id === hello.session && known.generation === hello.generation;
    const said = {
      kind: 'challenge',
      from: self,
      generation,
      nonce: this.#nonce(),
      session: resumes ? known.id : this.#nonce(),
    } as const;
    const challenge = { ...said, proof: prove(this.#secret, 'acceptor', hello, said) };
    connection.sendHandshake(challenge);
    return challenge;
  }

  #checkProof(state: Accepted & { step: 'proof' }, { proof, received }: Proof): Peer {
    const { hello, challenge } = state;
    if (!proofsAgree(prove(this.#secret, 'dialer', hello, challenge), proof)) {
      throw refusal('it does not know the secret of the topology', hello.from);
    }
    // Things may have changed since its hello.
    const peer = this.#peers.get(hello.from);
    const reason = reasonToRefuse(hello, this.#options, peer !== undefined, this.#seen.get(hello.from) ?? 0);
    if (reason !== null || peer === undefined) throw refusal(reason ?? 'it is no peer', hello.from);
    if (challenge.session === hello.session && peer.session?.id !== hello.session) {
      throw refusal('its session has ended meanwhile', hello.from);
    }
    if (peer.session?.id !== challenge.session) checkNothingReceived(received);
    this.#seen.set(hello.from, hello.generation);
    return peer;
  }

  /** A frame that its receiver cannot read counts as received: the session cannot go on as if it had been. */
  #deliver(peer: Peer, frame: Buffer): void {
    try {
      this.#options.onFrame(peer.key, frame);
    } catch (error) {
      if (!hasCode(error, 'PEER_PROTOCOL_ERROR')) throw error;
      this.reject(peer.key, error.message);
    }
  }

  /** The same reason again and again (a peer that starts earlier than this worker knows of it) is logged once. */
  #logRejection(error: IsobarError): void {
    const isNews = error.message !== this.#lastRejection;
    this.#lastRejection = error.message;
    this.#options.logger[isNews ? 'warn' : 'debug']('peer.rejected', {
      code: error.code,
      reason: error.message,
    });
  }

  // ── closing ──

  async #close(): Promise<void> {
    const { clock } = this.#options;
    for (const peer of this.#peers.values()) peer.stopDialling();
    const flushed = (): boolean =>
      [...this.#peers.values()].every((peer) => peer.connection === null || peer.session?.unconfirmed === 0);
    await until(flushed, clock, CLOSE_FLUSH_MS, (check) => {
      this.#onChanged = check;
    });
    this.#onChanged = null;
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const peer of this.#peers.values()) peer.leave();
    await until(
      () => this.#sockets.size === 0,
      clock,
      CLOSE_END_MS,
      (check) => {
        for (const socket of this.#sockets) socket.on('close', check);
      },
    );
    this.setPeers(new Map());
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #track(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #nonce(): string {
    return this.#randomBytes(NONCE_BYTES).toString('hex');
  }
}

/** In a session that begins nobody has received anything: one that could not go on must not begin. */
function checkNothingReceived(received: number): void {
  if (received !== 0) throw protocolError('0 frames received in a new session', `${received}`);
}

function expectKind<K extends HandshakeMessage['kind']>(
  message: HandshakeMessage,
  kind: K,
): Extract<HandshakeMessage, { kind: K }> {
  if (message.kind !== kind) throw protocolError(`the handshake message "${kind}"`, `"${message.kind}"`);
  // Just checked; the compiler cannot narrow a union by a generic kind.
  return message as Extract<HandshakeMessage, { kind: K }>;
}

/** Resolves when `reached`, checked whenever `subscribe`'s callback is called, or after `timeoutMs`. */
function until(
  reached: () => boolean,
  clock: Clock,
  timeoutMs: number,
  subscribe: (check: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    if (reached()) {
      resolve();
      return;
    }
    const cancel = clock.after(timeoutMs, resolve);
    subscribe(() => {
      if (!reached()) return;
      cancel();
      resolve();
    });
  });
}
