export { ByteReader, ByteWriter } from './bytes.js';
export type { RowCodec } from './codec.js';
export { createRowCodec } from './codec.js';
export { AckBatch, CreditBatch, MoveBatch } from './control-batch.js';
export { decodeControlFrame, encodeControlFrame } from './control-frame.js';
export { Doorbell } from './doorbell.js';
export {
  ACK_WORDS,
  blobOffset,
  CREDIT_WORDS,
  checkFrame,
  END_MARK,
  EXTRA_MARK,
  frameBytes,
  H_BLOB_BYTES,
  H_COUNT,
  H_ENDPOINT,
  H_KIND,
  H_SOURCE_GENERATION,
  H_SOURCE_THREAD,
  H_TARGET_GENERATION,
  H_TARGET_THREAD,
  HEADER_WORDS,
  KIND_ACK,
  KIND_CONTROL,
  KIND_CREDIT,
  KIND_DATA,
  KIND_FAIL,
  KIND_PRESSURE,
  KIND_MOVE,
  MOVE_CUT,
  MOVE_PASS,
  MOVE_PASSED,
  MOVE_WORDS,
  R_BLOB_BYTES,
  R_EDGE_HIGH,
  R_EDGE_LOW,
  R_ROOT_GENERATION,
  R_ROOT_SEQUENCE,
  R_ROOT_TASK,
  R_SOURCE_TASK,
  R_SUBSCRIPTION,
  R_TARGET_TASK,
  ROW_WORDS,
  rowWordsOf,
  SUBSCRIPTION_MASK,
} from './frame.js';
export { OutBatch, readSeveral } from './out-batch.js';
export type { PeerAddress, PeerKey } from './peers/address.js';
export { peerKey, peerSocketPath } from './peers/address.js';
export type { PeerConnectionsOptions, PeerStats } from './peers/peer-connections.js';
export { PeerConnections } from './peers/peer-connections.js';
export type { OnFrame } from './ring.js';
export { allocateRing, RingReader, RingWriter } from './ring.js';
export type { RowView } from './row-view.js';
export { createRowView } from './row-view.js';
