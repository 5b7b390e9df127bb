/**
 * What two workers owe each other, across any number of sockets: numbered frames, kept until confirmed. Pure.
 *
 * Invariants
 * P1  Each frame has the next number; numbers start at 1 and never change.
 * P2  A frame is kept until the other side has confirmed its number or a later one.
 * P3  A number is accepted once, in order; earlier ones are duplicates, later ones a breach of the protocol.
 */
import { protocolError, writeFrameHeader } from './envelope.js';
import { type BlockPool, KeptPackets } from './kept-packets.js';

export class PeerSession {
  readonly id: string;
  /** The other side's generation. */
  readonly generation: number;
  /** Highest number accepted from the other side. */
  received = 0;
  bufferedBytes = 0;
  duplicatesDropped = 0;
  resent = 0;
  /** The first one has the number `#confirmed + 1`. */
  readonly #kept: KeptPackets;
  #confirmed = 0;
  /** Number of the frame to be written next to the present socket. */
  #next = 1;
  /** Highest number written to any socket. */
  #written = 0;

  constructor(id: string, generation: number, pool: BlockPool) {
    this.id = id;
    this.generation = generation;
    this.#kept = new KeptPackets(pool);
  }

  /** Frames that the other side has not confirmed. */
  get unconfirmed(): number {
    return this.#kept.size;
  }

  /** Keeps a copy of the frame, which leaves with the next runs. */
  add(frame: Uint8Array): void {
    this.#kept.add(frame);
    this.bufferedBytes += frame.length;
  }

  /**
   * Packets for the present socket that lie one behind another, as bytes that stay as they are until they are confirmed or
   * the socket is another; null: all have been taken.
   */
  takeRun(): Buffer | null {
    const first = this.#kept.at(this.#next - this.#confirmed - 1);
    if (first === undefined) return null;
    const { block, at } = first;
    let end = at;
    let packet: typeof first | undefined = first;
    while (packet?.block === block && packet.at === end) {
      const sequence = this.#next++;
      writeFrameHeader(block.bytes, packet.at, packet.bodyBytes, sequence, this.received);
      if (sequence <= this.#written) this.resent++;
      else this.#written = sequence;
      end = packet.end;
      packet = this.#kept.at(this.#next - this.#confirmed - 1);
    }
    return block.bytes.subarray(at, end);
  }

  /** A new socket: everything above what the other side has received is written again. */
  resume(received: number): void {
    this.confirm(received);
    this.#next = this.#confirmed + 1;
  }

  /** Lets go of frames up to `sequence`. Throws PEER_PROTOCOL_ERROR if it was never written. */
  confirm(sequence: number): void {
    if (sequence > this.#written)
      throw protocolError(`a confirmation up to ${this.#written}`, `one of ${sequence}`);
    while (this.#confirmed < sequence) {
      this.bufferedBytes -= this.#kept.shift();
      this.#confirmed++;
    }
    if (this.#next <= this.#confirmed) this.#next = this.#confirmed + 1;
  }

  /** Whether the frame with this number is the next one (true) or a duplicate (false). Throws at a gap. */
  accept(sequence: number): boolean {
    if (sequence <= this.received) {
      this.duplicatesDropped++;
      return false;
    }
    if (sequence !== this.received + 1)
      throw protocolError(`frame ${this.received + 1}`, `frame ${sequence}`);
    this.received = sequence;
    return true;
  }
}
