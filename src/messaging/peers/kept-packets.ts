/**
 * Memory for packets that are kept until the other side confirms them. They lie one behind another in blocks that are used
 * again, so that a run of them leaves in one piece, and so that a busy worker's frames are no work for the collector
 * (external memory that comes and goes by the frame costs a major collection every 64 MB).
 *
 * Invariants
 * K1  The bytes of a packet do not move and do not change, its header apart, while it is kept.
 * K2  A block is used again only when none of its packets is kept.
 */
import { PACKET_HEADER_BYTES } from './envelope.js';

const BLOCK_BYTES = 128 * 1024;
/** Blocks that wait for use; more are given to the collector. */
const POOLED_BLOCKS = 32;

/** Blocks that all sessions of a worker share. */
export class BlockPool {
  readonly #free: Buffer[] = [];

  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  give(block: Buffer): void {
    if (block.length === BLOCK_BYTES && this.#free.length < POOLED_BLOCKS) this.#free.push(block);
  }
}

interface Block {
  readonly bytes: Buffer;
  used: number;
  kept: number;
}

/** A frame with room for its packet's header before it and its padding behind it. */
export interface KeptPacket {
  readonly block: Block;
  /** Where the packet starts in `block.bytes`. */
  readonly at: number;
  /** Where its padding ends. */
  readonly end: number;
  readonly bodyBytes: number;
}

export class KeptPackets {
  readonly #pool: BlockPool;
  /** The first `#start` places are free. */
  #kept: (KeptPacket | null)[] = [];
  #start = 0;
  /** The block that packets are added to; null: there is none with a packet in it. */
  #open: Block | null = null;

  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  get size(): number {
    return this.#kept.length - this.#start;
  }

  /** The packet at this place among the kept ones, the oldest first; undefined: there are not that many. */
  at(place: number): KeptPacket | undefined {
    return this.#kept[this.#start + place] ?? undefined;
  }

  /** Copies a frame; its header is the caller's to write. */
  add(frame: Uint8Array): void {
    const bodyAt = PACKET_HEADER_BYTES;
    const packetBytes = bodyAt + ((frame.length + 3) & ~3);
    const block = this.#blockFor(packetBytes);
    const at = block.used;
    const end = at + packetBytes;
    block.bytes.set(frame, at + bodyAt);
    block.bytes.fill(0, at + bodyAt + frame.length, end);
    block.used = end;
    block.kept++;
    this.#kept.push({ block, at, end, bodyBytes: frame.length });
  }

  /** Lets go of the oldest packet and returns the bytes of its frame. */
  shift(): number {
    const { block, bodyBytes } = this.#kept[this.#start]!;
    this.#kept[this.#start++] = null;
    if (this.#start > 64 && this.#start * 2 > this.#kept.length) {
      this.#kept = this.#kept.slice(this.#start);
      this.#start = 0;
    }
    if (--block.kept === 0) {
      if (block === this.#open) this.#open = null;
      this.#pool.give(block.bytes);
    }
    return bodyBytes;
  }

  #blockFor(packetBytes: number): Block {
    // One that is too large for any block gets memory of its own, beside the open block.
    if (packetBytes > BLOCK_BYTES) return { bytes: Buffer.allocUnsafeSlow(packetBytes), used: 0, kept: 0 };
    if (this.#open === null || this.#open.used + packetBytes > BLOCK_BYTES)
      this.#open = { bytes: this.#pool.take(), used: 0, kept: 0 };
    return this.#open;
  }
}
