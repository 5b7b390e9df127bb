/**
 * The one frame format of all links (thread to thread by ring, worker to worker by socket).
 *
 * A frame is little-endian 32-bit words followed by bytes:
 *   HEADER_WORDS header words · `count` × (words per row of its kind) · `blobBytes` bytes.
 * Rows of a DATA frame are `ROW_WORDS` words each; their encoded fields follow one another in the blob.
 * Invariant F1: a frame's length is exactly frameBytes(words); whoever receives one checks it (`checkFrame`).
 */
import { IsobarError } from '../base/index.js';

export const HEADER_WORDS = 8;

/** Places in the header. */
export const H_KIND = 0;
export const H_SOURCE_THREAD = 1;
export const H_SOURCE_GENERATION = 2;
/** Between a worker's main thread and its executor threads, on the way in: number of the session with the sending peer. */
export const H_TARGET_THREAD = 3;
export const H_TARGET_GENERATION = 4;
export const H_COUNT = 5;
export const H_BLOB_BYTES = 6;
/** Local to a worker: on the way out the peer's index, on the way in the index of the sending endpoint. */
export const H_ENDPOINT = 7;

export const KIND_DATA = 1;
export const KIND_ACK = 2;
export const KIND_FAIL = 3;
export const KIND_CREDIT = 4;
/** Between main threads only; the blob is a control message. */
export const KIND_CONTROL = 5;
/** Which cycles of the graph the sending thread holds many rows of. */
export const KIND_PRESSURE = 6;
/** Marks of planned moves, in order with the rows of their link. */
export const KIND_MOVE = 7;

/** Words of one row of a DATA frame, and their places. */
export const ROW_WORDS = 9;
/**
 * Index of the edge (subscription) in the topology; with END_MARK set: no fields, this sender's task has ended; with
 * EXTRA_MARK set: a row of a cycle beyond one per row.
 */
export const R_SUBSCRIPTION = 0;
export const R_TARGET_TASK = 1;
export const R_SOURCE_TASK = 2;
/** Spout (or root) task of the tree; 0: unanchored; -1: several anchors, encoded before the fields in the blob. */
export const R_ROOT_TASK = 3;
export const R_ROOT_GENERATION = 4;
export const R_ROOT_SEQUENCE = 5;
export const R_EDGE_HIGH = 6;
export const R_EDGE_LOW = 7;
/** Bytes of this row in the blob. */
export const R_BLOB_BYTES = 8;
export const END_MARK = 0x40000000;
export const EXTRA_MARK = 0x20000000;
/** What of R_SUBSCRIPTION is the index. */
export const SUBSCRIPTION_MASK = 0x1fffffff;

/** ACK: root task, root generation, root sequence, xor high, xor low. FAIL: the first three, reason, failing task. */
export const ACK_WORDS = 5;
/** CREDIT: component index, rows granted. PRESSURE: number of the cycle, 1 or 0. */
export const CREDIT_WORDS = 2;

/** MOVE: what the mark says, task, number of the move. */
export const MOVE_WORDS = 3;
/** No more rows for this task come from this thread. */
export const MOVE_CUT = 1;
/** Say PASSED when all rows that this task has sent before are in the queues of their receivers. */
export const MOVE_PASS = 2;
export const MOVE_PASSED = 3;

/** Words of one row of a frame of this kind; -1: there is no such kind. */
export function rowWordsOf(kind: number): number {
  switch (kind) {
    case KIND_DATA:
      return ROW_WORDS;
    case KIND_ACK:
    case KIND_FAIL:
      return ACK_WORDS;
    case KIND_CREDIT:
    case KIND_PRESSURE:
      return CREDIT_WORDS;
    case KIND_MOVE:
      return MOVE_WORDS;
    case KIND_CONTROL:
      return 0;
    default:
      return -1;
  }
}

/** Bytes of the frame whose header starts at `wordStart`. */
export function frameBytes(words: Int32Array, wordStart: number): number {
  const count = words[wordStart + H_COUNT]!;
  const rowWords = rowWordsOf(words[wordStart + H_KIND]!);
  return 4 * (HEADER_WORDS + count * rowWords) + words[wordStart + H_BLOB_BYTES]!;
}

/** Place of the blob, in bytes from the frame's start. */
export function blobOffset(words: Int32Array, wordStart: number): number {
  return 4 * (HEADER_WORDS + words[wordStart + H_COUNT]! * rowWordsOf(words[wordStart + H_KIND]!));
}

/**
 * Checks F1 for bytes that came from outside this process, and that the rows of a DATA frame share out its blob exactly.
 * Throws PEER_PROTOCOL_ERROR. Cost: one read per row.
 */
export function checkFrame(words: Int32Array, wordStart: number, byteLength: number): void {
  if (byteLength < 4 * HEADER_WORDS) {
    throw broken('at least a header', `${byteLength} bytes`);
  }
  const kind = words[wordStart + H_KIND]!;
  const count = words[wordStart + H_COUNT]!;
  const blobBytes = words[wordStart + H_BLOB_BYTES]!;
  const rowWords = rowWordsOf(kind);
  if (rowWords < 0) throw broken('a known kind of frame', `kind ${kind}`);
  if (count < 0 || blobBytes < 0) throw broken('counts of zero or more', `${count} rows, ${blobBytes} bytes`);
  const expected = 4 * (HEADER_WORDS + count * rowWords) + blobBytes;
  if (expected !== byteLength) throw broken(`${expected} bytes, as its header says`, `${byteLength} bytes`);
  if (kind !== KIND_DATA) return;
  let shared = 0;
  let at = wordStart + HEADER_WORDS + R_BLOB_BYTES;
  for (let row = 0; row < count; row++, at += ROW_WORDS) {
    const bytes = words[at]!;
    if (bytes < 0) throw broken('rows of zero bytes or more', `a row of ${bytes} bytes`);
    shared += bytes;
  }
  if (shared !== blobBytes) throw broken(`rows of ${blobBytes} bytes in all`, `${shared} bytes`);
}

function broken(expected: string, found: string): IsobarError {
  return new IsobarError(
    'PEER_PROTOCOL_ERROR',
    `a frame is not valid: expected ${expected}, found ${found}`,
    {
      expected,
      found,
    },
  );
}
