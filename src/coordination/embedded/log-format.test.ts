import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasCode } from '../../base/index.js';
import { crc32 } from '../../base/index.js';
import { encodeFrame, FILE_HEADER, scanLog } from './log-format.js';

const SEED = 20_262;

function fileOf(payloads: readonly Uint8Array[]): Buffer {
  let file = Buffer.from(FILE_HEADER);
  for (const payload of payloads) file = Buffer.concat([file, encodeFrame(payload, file.length)]);
  return file;
}

const SAMPLE = ['first', 'the second one', '', 'x'.repeat(700), 'last'].map((text) => Buffer.from(text));

describe('the log format', () => {
  it('uses the CRC-32 that everybody does', () => {
    expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926);
    expect(crc32(Buffer.from('6789'), crc32(Buffer.from('12345')))).toBe(0xcbf43926);
  });

  it('reads back any payloads', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 1500 }), { maxLength: 8 }), (payloads) => {
        const file = fileOf(payloads);
        const contents = scanLog(file, 'f');
        expect(contents.payloads.map((payload) => [...payload])).toEqual(
          payloads.map((payload) => [...payload]),
        );
        expect(contents).toMatchObject({ goodBytes: file.length, tornBytes: 0 });
      }),
      { seed: SEED },
    );
  });

  it('drops a last frame that is cut off at any byte, and nothing else', () => {
    const whole = fileOf(SAMPLE);
    const before = fileOf(SAMPLE.slice(0, -1));
    for (let length = before.length; length < whole.length; length++) {
      const contents = scanLog(whole.subarray(0, length), 'f');
      expect(contents.payloads).toHaveLength(SAMPLE.length - 1);
      expect(contents).toMatchObject({ goodBytes: before.length, tornBytes: length - before.length });
    }
  });

  it('drops a last frame of which a sector, or all, was never written', () => {
    const big = [Buffer.from('one'), Buffer.alloc(3000, 7)];
    const whole = fileOf(big);
    const goodBytes = fileOf(big.slice(0, 1)).length;
    for (const [from, to] of [
      [goodBytes, whole.length],
      [goodBytes, 512],
      [1024, 1536],
      [2560, whole.length],
    ] as const) {
      const file = Buffer.from(whole).fill(0, from, to);
      expect(scanLog(file, 'f')).toMatchObject({ goodBytes });
    }
    expect(scanLog(Buffer.concat([whole, Buffer.alloc(4096)]), 'f')).toMatchObject({
      goodBytes: whole.length,
    });
  });

  it('refuses unwritten sectors in the middle, since acknowledged commits follow them', () => {
    const file = fileOf([Buffer.from('one'), Buffer.alloc(3000, 7), Buffer.from('acknowledged')]);
    expect(() => scanLog(file.fill(0, 1024, 1536), 'f')).toThrow(
      expect.objectContaining({ code: 'STATE_DAMAGED' }),
    );
  });

  it('refuses a file with any one bit flipped anywhere', () => {
    const whole = fileOf(SAMPLE);
    for (let place = 0; place < whole.length; place++) {
      for (const bit of [0x01, 0x80]) {
        const file = Buffer.from(whole);
        file[place]! ^= bit;
        try {
          scanLog(file, 'the-file');
        } catch (error) {
          if (hasCode(error, 'STATE_VERSION_UNKNOWN')) continue;
          expect(error).toMatchObject({ code: 'STATE_DAMAGED' });
          const { offset } = (error as { details: { offset: number } }).details;
          expect(offset).toBeLessThanOrEqual(place);
          expect((error as Error).message).toContain('the-file');
          continue;
        }
        throw new Error(`bit ${bit} of byte ${place} was not missed`);
      }
    }
  });

  it('takes a frame that was copied to another place for damage, not for a frame', () => {
    const inner = encodeFrame(Buffer.from('inner'), FILE_HEADER.length);
    const file = Buffer.concat([fileOf([Buffer.from('a')]), inner]);
    expect(() => scanLog(file, 'f')).toThrow(expect.objectContaining({ code: 'STATE_DAMAGED' }));
  });

  it('names the version that it does not know', () => {
    const file = Buffer.from('isobar-coordinator-log 12\nwhatever');
    expect(() => scanLog(file, 'f')).toThrow(
      expect.objectContaining({
        code: 'STATE_VERSION_UNKNOWN',
        message: expect.stringContaining('12') as string,
      }),
    );
    for (const text of ['', 'isobar', '{"json": true}', 'isobar-coordinator-log x\n']) {
      expect(() => scanLog(Buffer.from(text), 'f')).toThrow(
        expect.objectContaining({ code: 'STATE_DAMAGED' }),
      );
    }
  });
});
