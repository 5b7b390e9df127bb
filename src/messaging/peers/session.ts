/**
 * What two workers owe each other, across any number of sockets: numbered frames, kept until confirmed. Pure.
 *
 * Invariants
 * P1  Each frame has the next number; numbers start at 1 and never change.
 * P2  A frame is kept until the other side has confirmed its number or a later one.
 * P3  A number is accepted once, in order; earlier ones are duplicates, later ones a breach of the protocol.
 */
import { protocolError } from './envelope.js';

export class PeerSession {
  readonly id: string;
  /** The other side's generation. */
  readonly generation: number;
  /** Highest number accepted from the other side. */
  received = 0;
  bufferedBytes = 0;
  duplicatesDropped = 0;
  resent = 0;
  /** Kept frames; the first `#start` places are free. Number of the frame at `#start` is `#confirmed + 1`. */
  #kept: (Buffer | null)[] = [];
  #start = 0;
  #confirmed = 0;
  /** Number of the frame to be written next to the present socket. */
  #next = 1;
  /** Highest number written to any socket. */
  #written = 0;

  constructor(id: string, generation: number) {
    this.id = id;
    this.generation = generation;
  }

  /** Frames that the other side has not confirmed. */
  get unconfirmed(): number {
    return this.#kept.length - this.#start;
  }

  add(frame: Buffer): void {
    this.#kept.push(frame);
    this.bufferedBytes += frame.length;
  }

  /** The next frame for the present socket with its number, or null. */
  takeNext(): { readonly sequence: number; readonly frame: Buffer } | null {
    const sequence = this.#next;
    const frame = this.#kept[this.#start + sequence - this.#confirmed - 1];
    if (frame === undefined || frame === null) return null;
    this.#next = sequence + 1;
    if (sequence <= this.#written) this.resent++;
    else this.#written = sequence;
    return { sequence, frame };
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
      this.bufferedBytes -= this.#kept[this.#start]!.length;
      this.#kept[this.#start++] = null;
      this.#confirmed++;
    }
    if (this.#next <= this.#confirmed) this.#next = this.#confirmed + 1;
    if (this.#start > 64 && this.#start * 2 > this.#kept.length) {
      this.#kept = this.#kept.slice(this.#start);
      this.#start = 0;
    }
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
