/** CRC-32 as in IEEE 802.3 (reflected polynomial 0xEDB88320). Own: `zlib.crc32` came with Node 20.15, the package runs on 20.0. */

const TABLE = makeTable();

/** The checksum of `bytes`, an unsigned 32-bit number; `seed` is the checksum of what precedes them. */
export function crc32(bytes: Uint8Array, seed = 0): number {
  let crc = ~seed;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}

function makeTable(): Uint32Array {
  const table = new Uint32Array(256);
  for (let index = 0; index < 256; index++) {
    let value = index;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    table[index] = value;
  }
  return table;
}
