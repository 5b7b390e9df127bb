/**
 * One socket to a peer: the handshake in either role, then packets both ways. It knows nothing of reconnecting; what it
 * learns goes to its owner, which decides. Whatever goes wrong ends in one call of `onClosed`.
 *
 *   opening → authenticated → open → closed   (and from each to closed)
 */
import type net from 'node:net';
import { type CancelTimer, type Clock, hasCode, IsobarError, toIsobarError } from '../../base/index.js';
import { checkFrame } from '../frame.js';
import {
  MAX_HANDSHAKE_BYTES,
  type Packet,
  PACKET_BYE,
  PACKET_CONFIRM,
  PACKET_FRAME,
  PACKET_HANDSHAKE,
  packetOf,
  PacketParser,
  protocolError,
} from './envelope.js';
import { decodeHandshake, encodeHandshake, type HandshakeMessage } from './handshake.js';
import type { PeerSession } from './session.js';

/** Bytes in the socket's own buffer above which frames stay in the session. */
const SOCKET_BUFFER_BYTES = 1024 * 1024;
/** Received frames or bytes after which a confirmation goes out at once, and the delay after which it goes anyway. */
const CONFIRM_FRAMES = 64;
const CONFIRM_BYTES = 512 * 1024;
const CONFIRM_DELAY_MS = 5;
/**
 * A peer that sends so much, and several of the largest frames, without confirming anything of what waits for it does not read:
 * answers to what it sends would pile up here.
 */
const UNHEARD_BYTES = 16 * 1024 * 1024;
const UNHEARD_FRAMES = 3;
const NO_BODY = Buffer.alloc(0);

export interface ConnectionOwner {
  /** A message of the handshake; what it throws closes the connection. */
  onHandshake(message: HandshakeMessage, connection: Connection): void;
  /** A frame that is new. */
  onFrame(frame: Buffer, connection: Connection): void;
  /** A new frame has come, or the other side has confirmed some. */
  onProgress(connection: Connection): void;
  onBye(connection: Connection): void;
  /** The other side sends and sends, and does not read. The session must end: it would go on like that. */
  onDeaf(connection: Connection, reason: string): void;
  /** Once, whoever closed it. */
  onClosed(connection: Connection, error: IsobarError): void;
}

export class Connection {
  readonly #socket: net.Socket;
  readonly #owner: ConnectionOwner;
  readonly #clock: Clock;
  readonly #parser = new PacketParser(MAX_HANDSHAKE_BYTES);
  readonly #cancelDeadline: CancelTimer;
  #session: PeerSession | null = null;
  #closed = false;
  /** The other side has been told that this is the end. */
  #ending = false;
  /** Frames wait for the end of this turn of the event loop. */
  #pumps = false;
  #unconfirmedFrames = 0;
  #unconfirmedBytes = 0;
  /** Received since the other side has last confirmed something, or had nothing to confirm. */
  #unheardBytes = 0;
  #cancelConfirm: CancelTimer | null = null;

  constructor(socket: net.Socket, owner: ConnectionOwner, clock: Clock, handshakeTimeoutMs: number) {
    this.#socket = socket;
    this.#owner = owner;
    this.#clock = clock;
    socket.setNoDelay(true);
    // The kernel answers for a stopped process too: this finds machines that are gone, not slow peers.
    socket.setKeepAlive(true, 5000);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('drain', () => this.#writeFrames());
    socket.on('error', (error) => this.close(toIsobarError(error, 'CONNECTION_LOST')));
    socket.on('close', () => this.close(new IsobarError('CONNECTION_LOST', 'the connection was closed')));
    this.#cancelDeadline = clock.after(handshakeTimeoutMs, () => {
      this.close(new IsobarError('PEER_REFUSED', `no handshake within ${handshakeTimeoutMs} ms`));
    });
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** The session that this connection serves, once it is open. */
  get session(): PeerSession | null {
    return this.#session;
  }

  sendHandshake(message: HandshakeMessage): void {
    if (this.#closed) return;
    this.#socket.write(packetOf(PACKET_HANDSHAKE, encodeHandshake(message), 0, 0));
  }

  /** The handshake is done: frames flow. */
  open(session: PeerSession, peerReceived: number, maxFrameBytes: number): void {
    session.resume(peerReceived);
    this.#cancelDeadline();
    this.#session = session;
    this.#parser.maxBodyBytes = maxFrameBytes;
    this.pump();
  }

  /** Writes kept frames when this turn of the event loop ends, all of them at once. */
  pump(): void {
    if (this.#pumps) return;
    this.#pumps = true;
    process.nextTick(() => {
      this.#pumps = false;
      this.#writeFrames();
    });
  }

  /** While the socket takes them; the rest follows when it drains. */
  #writeFrames(): void {
    const session = this.#session;
    if (session === null || this.#closed || this.#ending) return;
    while (this.#socket.writableLength < SOCKET_BUFFER_BYTES) {
      const run = session.takeRun();
      if (run === null) return;
      this.#confirmed();
      this.#socket.write(run);
    }
  }

  /** Tells the other side that nothing more will come from this generation, and ends the socket. */
  bye(): void {
    if (this.#closed || this.#ending) return;
    this.#writeFrames();
    this.#ending = true;
    this.#socket.end(packetOf(PACKET_BYE, NO_BODY, 0, this.#session?.received ?? 0));
  }

  /** Sends what was written, then closes: for refusals. */
  endWith(message: HandshakeMessage, error: IsobarError): void {
    this.sendHandshake(message);
    this.#socket.end();
    this.#finish(error);
    // A stranger that does not close its side is cut off.
    this.#clock.after(1000, () => this.#socket.destroy());
  }

  close(error: IsobarError): void {
    this.#socket.destroy();
    this.#finish(error);
  }

  #finish(error: IsobarError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelDeadline();
    this.#cancelConfirm?.();
    this.#owner.onClosed(this, error);
  }

  #onData(chunk: Buffer): void {
    if (this.#closed || this.#ending) return;
    try {
      this.#parser.push(chunk, (packet) => {
        this.#onPacket(packet);
        return !this.#closed;
      });
    } catch (error) {
      // Only faults of the peer end the connection; a fault of the receiver of frames is not the peer's.
      if (!hasCode(error, 'PEER_PROTOCOL_ERROR') && !hasCode(error, 'PEER_REFUSED')) throw error;
      this.close(error);
    }
  }

  #onPacket(packet: Packet): void {
    if (packet.type === PACKET_HANDSHAKE) {
      if (this.#session !== null) throw protocolError('frames after the handshake', 'a handshake message');
      this.#owner.onHandshake(decodeHandshake(packet.body), this);
      return;
    }
    const session = this.#session;
    if (session === null) throw protocolError('a handshake', 'something else before it');
    const before = session.unconfirmed;
    session.confirm(packet.confirmed);
    if (session.unconfirmed < before) this.#owner.onProgress(this);
    if (session.unconfirmed < before || session.unconfirmed === 0) this.#unheardBytes = 0;
    if (packet.type === PACKET_BYE) {
      this.#owner.onBye(this);
      this.close(new IsobarError('CONNECTION_LOST', 'the peer has closed'));
    } else if (packet.type === PACKET_FRAME) {
      const { body } = packet;
      // Before it counts as received: what is not a frame must be sent again.
      checkFrame(new Int32Array(body.buffer, body.byteOffset, body.length >> 2), 0, body.length);
      const isNew = session.accept(packet.sequence);
      this.#unheardBytes += body.length;
      const mostBytes = UNHEARD_BYTES + UNHEARD_FRAMES * this.#parser.maxBodyBytes;
      if (this.#unheardBytes > mostBytes) {
        const found = `${this.#unheardBytes} bytes of frames, and no confirmation of what waits for it`;
        this.#owner.onDeaf(this, protocolError('a peer that reads what it is sent', found).message);
        return;
      }
      this.#confirmSoon(body.length);
      if (!isNew) return;
      this.#owner.onProgress(this);
      this.#owner.onFrame(body, this);
    }
  }

  #confirmSoon(bytes: number): void {
    this.#unconfirmedFrames++;
    this.#unconfirmedBytes += bytes;
    if (this.#unconfirmedFrames >= CONFIRM_FRAMES || this.#unconfirmedBytes >= CONFIRM_BYTES)
      this.#confirmNow();
    else this.#cancelConfirm ??= this.#clock.after(CONFIRM_DELAY_MS, () => this.#confirmNow());
  }

  #confirmNow(): void {
    this.#confirmed();
    if (this.#session !== null && !this.#closed && !this.#ending) {
      this.#socket.write(packetOf(PACKET_CONFIRM, NO_BODY, 0, this.#session.received));
    }
  }

  /** A packet that carries the confirmation is on its way. */
  #confirmed(): void {
    this.#unconfirmedFrames = 0;
    this.#unconfirmedBytes = 0;
    this.#cancelConfirm?.();
    this.#cancelConfirm = null;
  }
}
