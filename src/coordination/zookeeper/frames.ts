/**
 * ZooKeeper's frames: a length of four bytes, then as many bytes. Pure. The library is given one whole frame at a time:
 * by itself it joins the rest of a lost connection with the next one, and crashes on codes and sizes that it does not know.
 */

/** Far above any answer: the names of a million nodes. */
const MAX_FRAME_BYTES = 64 * 1024 * 1024;
const LENGTH_BYTES = 4;
/** An answer's head behind the length: xid (4), zxid (8), error (4). */
const ERROR_OFFSET = LENGTH_BYTES + 12;
const SYSTEM_ERROR = -1;
/** The codes that the library has; it throws for any other. */
const KNOWN_ERRORS: ReadonlySet<number> = new Set([
  0, -1, -2, -3, -4, -5, -6, -7, -8, -100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115,
]);
/** The session has moved to another server: as good as lost. */
const SESSION_MOVED = -118;
const SESSION_EXPIRED = -112;

export class FrameSplitter {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #wanted = LENGTH_BYTES;

  /** Returns the frames that are whole now, each with its length in front. @throws Error for a length that is none */
  push(chunk: Buffer): readonly Buffer[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const frames: Buffer[] = [];
    if (this.#bytes < this.#wanted) return frames;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    for (;;) {
      this.#wanted = LENGTH_BYTES;
      if (rest.length < LENGTH_BYTES) break;
      const length = rest.readInt32BE(0);
      if (length <= 0 || length > MAX_FRAME_BYTES) throw new Error(`a frame of ${length} bytes`);
      this.#wanted = LENGTH_BYTES + length;
      if (rest.length < this.#wanted) break;
      frames.push(rest.subarray(0, this.#wanted));
      rest = rest.subarray(this.#wanted);
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
    return frames;
  }
}

/** Checks the first frame: that of a server which lets a session in, or not. @throws Error for anything else */
export function checkGreeting(frame: Buffer): Buffer {
  // Protocol version 0, time-out (4), session (8), password (16, with its length) and in later versions a boolean.
  const isGreeting =
    (frame.length === 40 || frame.length === 41) &&
    frame.readInt32BE(4) === 0 &&
    frame.readInt32BE(20) === 16;
  if (!isGreeting) throw new Error(`a greeting of ${frame.length} bytes`);
  return frame;
}

/** An answer whose error code the library knows: others become the general one. Changes the frame in place. */
export function withKnownError(frame: Buffer): Buffer {
  if (frame.length < ERROR_OFFSET + 4) throw new Error(`an answer of ${frame.length} bytes`);
  const code = frame.readInt32BE(ERROR_OFFSET);
  if (!KNOWN_ERRORS.has(code)) {
    frame.writeInt32BE(code === SESSION_MOVED ? SESSION_EXPIRED : SYSTEM_ERROR, ERROR_OFFSET);
  }
  return frame;
}
