/**
 * What travels on a peer connection: packets of 32 header bytes and a body padded to 4.
 *
 *   magic and type (uint32) · body bytes (uint32) · sequence (float64) · confirmed (float64) · CRC-32 of the body (uint32)
 *   · CRC-32 of the header before it (uint32), little-endian
 *
 * HANDSHAKE carries JSON; FRAME carries one data-path frame under its sequence number; CONFIRM and BYE have no body.
 * `confirmed` is the highest sequence number that the sender has received without a gap. Numbers are whole and below
 * 2^53: at a million frames a second they last 285 years.
 *
 * Invariant E1: nothing of a packet is believed before its checksums agree, the length of its body included. What was
 * damaged on the way was never received, and is sent again over the next connection.
 */
import { crc32, IsobarError } from '../../base/index.js';

export const PACKET_HEADER_BYTES = 32;
const BODY_CHECKSUM_AT = 24;
const HEADER_CHECKSUM_AT = 28;
const MAGIC = 0x42534900;

export const PACKET_HANDSHAKE = 1;
export const PACKET_FRAME = 2;
export const PACKET_CONFIRM = 3;
export const PACKET_BYE = 4;

/** Largest body of a HANDSHAKE packet. */
export const MAX_HANDSHAKE_BYTES = 16_384;

const PADDING = [Buffer.alloc(0), Buffer.alloc(1), Buffer.alloc(2), Buffer.alloc(3)] as const;

/** The header of a packet with this body. */
export function packetHeader(type: number, body: Uint8Array, sequence: number, confirmed: number): Buffer {
  return rawPacketHeader(type, body.length, crc32(body), sequence, confirmed);
}

/** A header that says anything, under a checksum that agrees. */
export function rawPacketHeader(
  type: number,
  bodyBytes: number,
  bodyChecksum: number,
  sequence: number,
  confirmed: number,
): Buffer {
  const header = Buffer.allocUnsafe(PACKET_HEADER_BYTES);
  writeHeader(header, 0, type, bodyBytes, bodyChecksum, sequence, confirmed);
  return header;
}

/** Writes the header of a FRAME packet whose body follows it in `bytes`. */
export function writeFrameHeader(
  bytes: Buffer,
  at: number,
  bodyBytes: number,
  sequence: number,
  confirmed: number,
): void {
  const bodyAt = at + PACKET_HEADER_BYTES;
  const checksum = crc32(bytes.subarray(bodyAt, bodyAt + bodyBytes));
  writeHeader(bytes, at, PACKET_FRAME, bodyBytes, checksum, sequence, confirmed);
}

function writeHeader(
  bytes: Buffer,
  at: number,
  type: number,
  bodyBytes: number,
  bodyChecksum: number,
  sequence: number,
  confirmed: number,
): void {
  bytes.writeUInt32LE(MAGIC | type, at);
  bytes.writeUInt32LE(bodyBytes, at + 4);
  bytes.writeDoubleLE(sequence, at + 8);
  bytes.writeDoubleLE(confirmed, at + 16);
  bytes.writeUInt32LE(bodyChecksum, at + BODY_CHECKSUM_AT);
  const checksum = crc32(bytes.subarray(at, at + HEADER_CHECKSUM_AT));
  bytes.writeUInt32LE(checksum, at + HEADER_CHECKSUM_AT);
}

/** A whole packet. */
export function packetOf(type: number, body: Buffer, sequence: number, confirmed: number): Buffer {
  return Buffer.concat([packetHeader(type, body, sequence, confirmed), body, PADDING[-body.length & 3]!]);
}

export interface Packet {
  readonly type: number;
  readonly sequence: number;
  readonly confirmed: number;
  /** At a place where an Int32Array may start; the receiver's to keep and to change, as the chunk that it came in is. */
  readonly body: Buffer;
}

/**
 * Cuts a stream of bytes into packets, however the bytes are split. A body that is whole in its chunk stays there. Bodies
 * above `maxBodyBytes` and headers that are none throw PEER_PROTOCOL_ERROR; after that the parser must not be used.
 */
export class PacketParser {
  /** Raised once the peer is authenticated: until then nobody may claim memory. */
  maxBodyBytes: number;
  readonly #header = Buffer.alloc(PACKET_HEADER_BYTES);
  #headerBytes = 0;
  #body: Buffer | null = null;
  #bodyBytes = 0;
  /** Bytes of padding still to be skipped. */
  #padding = 0;

  constructor(maxBodyBytes: number) {
    this.maxBodyBytes = maxBodyBytes;
  }

  /**
   * Calls `onPacket` for every packet that these bytes complete, while it returns true. The chunk is the parser's: its bytes
   * must not change any more.
   */
  push(chunk: Buffer, onPacket: (packet: Packet) => boolean): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#padding > 0) {
        const skipped = Math.min(this.#padding, chunk.length - at);
        this.#padding -= skipped;
        at += skipped;
        continue;
      }
      if (this.#body === null) {
        const copied = chunk.copy(
          this.#header,
          this.#headerBytes,
          at,
          at + PACKET_HEADER_BYTES - this.#headerBytes,
        );
        this.#headerBytes += copied;
        at += copied;
        // A stranger is told from its first four bytes, not only once it has sent a whole header.
        if (this.#headerBytes >= 4) this.#checkMagic();
        if (this.#headerBytes < PACKET_HEADER_BYTES) return;
        const length = this.#checkHeader();
        if (at + length <= chunk.length && ((chunk.byteOffset + at) & 3) === 0) {
          this.#body = chunk.subarray(at, at + length);
          this.#bodyBytes = length;
          at += length;
        } else {
          // Above the pool's size, and in it, Node's buffers start at multiples of 8.
          this.#body = Buffer.allocUnsafe(length);
          this.#bodyBytes = 0;
        }
      }
      const body = this.#body;
      if (this.#bodyBytes < body.length) {
        const copied = chunk.copy(body, this.#bodyBytes, at);
        this.#bodyBytes += copied;
        at += copied;
        if (this.#bodyBytes < body.length) return;
      }
      this.#body = null;
      this.#headerBytes = 0;
      this.#padding = -body.length & 3;
      if (crc32(body) !== this.#header.readUInt32LE(BODY_CHECKSUM_AT)) {
        throw protocolError('a body with the checksum of its header', 'another one');
      }
      const packet = {
        type: this.#header[0]!,
        sequence: this.#header.readDoubleLE(8),
        confirmed: this.#header.readDoubleLE(16),
        body,
      };
      if (!onPacket(packet)) return;
    }
  }

  #checkMagic(): void {
    const word = this.#header.readUInt32LE(0);
    const type = word & 255;
    if ((word & ~255) !== MAGIC || type < PACKET_HANDSHAKE || type > PACKET_BYE) {
      throw protocolError('the start of a packet', `the bytes ${this.#header.toString('hex', 0, 4)}`);
    }
  }

  /** Returns the length of the body that follows. */
  #checkHeader(): number {
    const checksum = crc32(this.#header.subarray(0, HEADER_CHECKSUM_AT));
    if (checksum !== this.#header.readUInt32LE(HEADER_CHECKSUM_AT)) {
      throw protocolError('a packet whose checksum agrees', 'a header that was damaged');
    }
    const length = this.#header.readUInt32LE(4);
    const type = this.#header[0]!;
    const most =
      type === PACKET_HANDSHAKE ? MAX_HANDSHAKE_BYTES : type === PACKET_FRAME ? this.maxBodyBytes : 0;
    if (length > most) throw protocolError(`at most ${most} bytes`, `a packet of ${length} bytes`);
    for (const place of [8, 16]) {
      const value = this.#header.readDoubleLE(place);
      if (!Number.isSafeInteger(value) || value < 0)
        throw protocolError('a sequence number', `the number ${value}`);
    }
    return length;
  }
}

export function protocolError(expected: string, found: string): IsobarError {
  return new IsobarError(
    'PEER_PROTOCOL_ERROR',
    `a peer does not keep to the protocol: expected ${expected}, found ${found}`,
    {
      expected,
      found,
    },
  );
}
