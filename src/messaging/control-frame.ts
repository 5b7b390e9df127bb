/** Control messages between the main threads of workers: a frame whose blob is structured-clone data. */
import { deserialize, serialize } from 'node:v8';
import { IsobarError } from '../base/index.js';
import { H_BLOB_BYTES, H_KIND, HEADER_WORDS, KIND_CONTROL } from './frame.js';

const HEADER_BYTES = 4 * HEADER_WORDS;

/** A KIND_CONTROL frame with this body. */
export function encodeControlFrame(body: unknown): Buffer {
  const blob = serialize(body);
  const frame = Buffer.allocUnsafe(HEADER_BYTES + blob.length);
  frame.fill(0, 0, HEADER_BYTES);
  frame.writeInt32LE(KIND_CONTROL, 4 * H_KIND);
  frame.writeInt32LE(blob.length, 4 * H_BLOB_BYTES);
  blob.copy(frame, HEADER_BYTES);
  return frame;
}

/** The body of a control frame. Throws PEER_PROTOCOL_ERROR if it cannot be read. */
export function decodeControlFrame(frame: Buffer): unknown {
  if (frame.length < HEADER_BYTES || frame.readInt32LE(4 * H_KIND) !== KIND_CONTROL) {
    throw new IsobarError('PEER_PROTOCOL_ERROR', 'the frame is no control message', {
      expected: 'a control frame',
    });
  }
  try {
    // A copy: V8 hands out typed arrays that are views of what it reads from.
    return deserialize(Buffer.from(frame.subarray(HEADER_BYTES)));
  } catch (error) {
    throw new IsobarError('PEER_PROTOCOL_ERROR', 'a control message cannot be read', {}, error);
  }
}
