/** The way between two processes: one Unix socket, frames with a length before them, received into one buffer. */
import type { Socket } from 'node:net';
import { HEADER_WORDS } from './frames.js';
import type { Host, Link } from './host.js';

/** Bytes that may wait in this process; above, frames are not taken. */
const MOST_WAITING_BYTES = 1 << 20;
const FIRST_RECEIVE_BYTES = 1 << 20;

export class SocketLink implements Link {
  readonly #socket: Socket;
  #bytes = Buffer.from(new ArrayBuffer(FIRST_RECEIVE_BYTES));
  #words = new Int32Array(this.#bytes.buffer);
  #filled = 0;
  #wake: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#append(chunk);
      this.#wake?.();
    });
  }

  send(
    kind: number,
    rows: number,
    words: Int32Array,
    wordCount: number,
    text: Buffer,
    textBytes: number,
  ): boolean {
    if (this.#socket.writableLength > MOST_WAITING_BYTES) return false;
    const byteLength = (HEADER_WORDS + wordCount) * 4 + textBytes;
    const frame = Buffer.allocUnsafeSlow(byteLength + 4);
    const to = new Int32Array(frame.buffer, 0, 1 + HEADER_WORDS + wordCount);
    to[0] = byteLength;
    to[1] = kind;
    to[2] = rows;
    to[3] = textBytes;
    to.set(words.subarray(0, wordCount), 1 + HEADER_WORDS);
    if (textBytes > 0) text.copy(frame, (1 + HEADER_WORDS + wordCount) * 4, 0, textBytes);
    this.#socket.write(frame);
    return true;
  }

  poll(host: Host): number {
    let from = 0;
    let frames = 0;
    while (this.#filled - from >= 4) {
      const byteLength = this.#words[from >> 2]!;
      if (this.#filled - from - 4 < byteLength) break;
      host.receive(this.#words, (from >> 2) + 1, this.#bytes, from + 4);
      from += 4 + byteLength;
      frames++;
    }
    if (from > 0) {
      this.#bytes.copyWithin(0, from, this.#filled);
      this.#filled -= from;
    }
    return frames;
  }

  /** Resolves when bytes come, after `longestMs` at the latest. */
  async sleep(longestMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(wake, longestMs);
      this.#wake = wake;
    });
  }

  #append(chunk: Buffer): void {
    const needed = this.#filled + chunk.length;
    if (needed > this.#bytes.length) {
      const larger = Buffer.from(new ArrayBuffer(2 ** Math.ceil(Math.log2(needed))));
      this.#bytes.copy(larger, 0, 0, this.#filled);
      this.#bytes = larger;
      this.#words = new Int32Array(larger.buffer);
    }
    chunk.copy(this.#bytes, this.#filled);
    this.#filled = needed;
  }
}
