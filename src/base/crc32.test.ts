import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32, crc32ByTable } from './crc32.js';

describe('crc32', () => {
  it('gives the published check value', () => {
    const check = Buffer.from('123456789');
    expect(crc32(check)).toBe(0xcbf43926);
    expect(crc32ByTable(check)).toBe(0xcbf43926);
  });

  it('is the same with and without zlib, in one piece and in two', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(300), (bytes, cut) => {
        const whole = crc32ByTable(bytes);
        expect(crc32(bytes)).toBe(whole);
        for (const sum of [crc32, crc32ByTable]) {
          expect(sum(bytes.subarray(cut), sum(bytes.subarray(0, cut)))).toBe(whole);
        }
      }),
      { seed: 20_271, numRuns: 300 },
    );
  });
});
