/**
 * The file of the embedded coordinator: a line of text that names format and version, then frames. Pure.
 *
 * A frame is a 12-byte header (payload length, CRC-32 of the payload, CRC-32 of the two before and of the frame's own
 * offset; big-endian) and the payload. One frame is one commit: it counts as a whole or not at all.
 *
 * L1 A frame is torn when the file ends inside it, or when a disk sector of it was never written (zeros) and nothing
 *    valid follows: what a crash while writing the last commit leaves. Its commit was never acknowledged; it is dropped.
 * L2 Any other frame that does not check is damage: acknowledged commits may be gone, so nobody may go on from here.
 */
import { crc32, IsobarError } from '../../base/index.js';

const FORMAT_NAME = 'isobar-coordinator-log';
const FORMAT_VERSION = 1;
export const FILE_HEADER: Uint8Array = Buffer.from(`${FORMAT_NAME} ${FORMAT_VERSION}\n`);
const FRAME_HEADER_BYTES = 12;
const SECTOR_BYTES = 512;
/** A shorter piece of a sector says nothing when it is zero. */
const MIN_UNWRITTEN_BYTES = 16;

export interface LogContents {
  /** Payloads of the frames, in order; views into the scanned bytes. */
  readonly payloads: readonly Uint8Array[];
  /** Where the next frame goes. */
  readonly goodBytes: number;
  /** Bytes of a torn frame behind that. */
  readonly tornBytes: number;
}

/** A frame that will stand at `offset` of its file. */
export function encodeFrame(payload: Uint8Array, offset: number): Uint8Array {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  frame.writeUInt32BE(payload.length, 0);
  frame.writeUInt32BE(crc32(payload), 4);
  frame.writeUInt32BE(headerChecksum(frame, offset), 8);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/**
 * Reads a whole file. `file` is named in errors.
 * @throws STATE_DAMAGED (L2), STATE_VERSION_UNKNOWN
 */
export function scanLog(contents: Uint8Array, file: string): LogContents {
  const bytes = Buffer.from(contents.buffer, contents.byteOffset, contents.byteLength);
  checkFileHeader(bytes, file);
  const payloads: Uint8Array[] = [];
  let offset = FILE_HEADER.length;
  while (offset < bytes.length) {
    const frame = readFrame(bytes, offset);
    if (frame.kind !== 'valid') {
      if (isTorn(bytes, offset, frame)) break;
      throw new IsobarError('STATE_DAMAGED', `the coordinator's log ${file} is damaged at byte ${offset}`, {
        expected: 'a frame with a matching checksum',
        found: frame.kind === 'bad-header' ? 'a header that does not check' : 'a payload that does not check',
        where: `${file}:${offset}`,
        file,
        offset,
      });
    }
    payloads.push(frame.payload);
    offset = frame.end;
  }
  return { payloads, goodBytes: offset, tornBytes: bytes.length - offset };
}

type Frame =
  | { readonly kind: 'valid'; readonly payload: Uint8Array; readonly end: number }
  | { readonly kind: 'cut-short' }
  | { readonly kind: 'bad-header' }
  | { readonly kind: 'bad-payload'; readonly end: number };

function readFrame(bytes: Buffer, offset: number): Frame {
  if (bytes.length - offset < FRAME_HEADER_BYTES) return { kind: 'cut-short' };
  const header = bytes.subarray(offset, offset + FRAME_HEADER_BYTES);
  if (headerChecksum(header, offset) !== header.readUInt32BE(8)) return { kind: 'bad-header' };
  const end = offset + FRAME_HEADER_BYTES + header.readUInt32BE(0);
  if (end > bytes.length) return { kind: 'cut-short' };
  const payload = bytes.subarray(offset + FRAME_HEADER_BYTES, end);
  return crc32(payload) === header.readUInt32BE(4)
    ? { kind: 'valid', payload, end }
    : { kind: 'bad-payload', end };
}

/** The offset is part of it, so that a frame that was copied elsewhere (inside a value, say) is none. */
function headerChecksum(header: Buffer, offset: number): number {
  const place = Buffer.allocUnsafe(8);
  place.writeBigUInt64BE(BigInt(offset));
  return crc32(header.subarray(0, 8), crc32(place));
}

function isTorn(bytes: Buffer, offset: number, frame: Exclude<Frame, { kind: 'valid' }>): boolean {
  if (frame.kind === 'cut-short') return true;
  const end = frame.kind === 'bad-payload' ? frame.end : bytes.length;
  return hasUnwrittenSector(bytes, offset, end) && !hasValidFrameAfter(bytes, offset);
}

function hasUnwrittenSector(bytes: Buffer, start: number, end: number): boolean {
  for (let from = start; from < end; from = from - (from % SECTOR_BYTES) + SECTOR_BYTES) {
    const piece = bytes.subarray(from, Math.min(end, from - (from % SECTOR_BYTES) + SECTOR_BYTES));
    if (piece.length >= MIN_UNWRITTEN_BYTES && piece.every((byte) => byte === 0)) return true;
  }
  return false;
}

function hasValidFrameAfter(bytes: Buffer, offset: number): boolean {
  for (let place = offset + 1; place + FRAME_HEADER_BYTES <= bytes.length; place++) {
    if (readFrame(bytes, place).kind === 'valid') return true;
  }
  return false;
}

function checkFileHeader(bytes: Buffer, file: string): void {
  if (bytes.subarray(0, FILE_HEADER.length).equals(FILE_HEADER)) return;
  const firstLine = bytes.subarray(0, 64).toString('latin1').split('\n', 1)[0] ?? '';
  const version = new RegExp(`^${FORMAT_NAME} (\\d+)$`).exec(firstLine)?.[1];
  if (version === undefined) {
    throw new IsobarError('STATE_DAMAGED', `${file} does not begin as a coordinator's log does`, {
      expected: `${FORMAT_NAME} ${FORMAT_VERSION}`,
      found: JSON.stringify(firstLine),
      where: `${file}:0`,
      file,
      offset: 0,
    });
  }
  throw new IsobarError('STATE_VERSION_UNKNOWN', `${file} has version ${version} of the format`, {
    expected: `version ${FORMAT_VERSION}`,
    found: `version ${version}`,
    where: file,
  });
}
