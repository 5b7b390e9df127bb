/**
 * The one frame format of all links (thread to thread by ring, worker to worker by socket).
 *
 * A frame is little-endian 32-bit words followed by bytes:
 *   HEADER_WORDS header words · `count` × (words per row of its kind) · `blobBytes` bytes.
 * Rows of a DATA frame are `ROW_WORDS` words each; their encoded fields follow one another in the blob.
 * Invariant F1: a frame's length is exactly frameBytes(words); whoever receives one checks it (`checkFrame`).
 */

export const HEADER_WORDS = 8;

/** Places in the header. */
export const H_KIND = 0;
export const H_SOURCE_THREAD = 1;
export const H_SOURCE_GENERATION = 2;
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

/** Words of one row of a DATA frame, and their places. */
export const ROW_WORDS = 9;
/** Index of the edge (subscription) in the topology; with END_MARK set: no fields, this sender's task has ended. */
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

/** ACK: root task, root generation, root sequence, xor high, xor low. FAIL: the first three, reason, failing task. */
export const ACK_WORDS = 5;
/** CREDIT: component index, rows granted. */
export const CREDIT_WORDS = 2;
