import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameSplitter, withKnownError } from './frames.js';

const SEED = 31_337;

function frame(payload: Uint8Array): Buffer {
  const head = Buffer.alloc(4);
  head.writeInt32BE(payload.length);
  return Buffer.concat([head, payload]);
}

function answer(code: number): Buffer {
  const head = Buffer.alloc(16);
  head.writeInt32BE(code, 12);
  return frame(head);
}

describe('frames', () => {
  it('come out whole however the bytes arrive', () => {
    const payloads = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 10 });
    fc.assert(
      fc.property(payloads, fc.array(fc.nat(30), { maxLength: 40 }), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(frame));
        const splitter = new FrameSplitter();
        const received: Buffer[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          received.push(...splitter.push(bytes.subarray(at, at + cut)).map((one) => Buffer.from(one)));
          at = Math.min(bytes.length, at + cut);
        }
        expect(received).toEqual(sent.map(frame));
      }),
      { seed: SEED },
    );
  });

  it.each([-1, 0, 0x48545450])('of %i bytes are none', (length) => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(length);
    expect(() => new FrameSplitter().push(head)).toThrow('a frame of');
  });

  it('with an error that the library does not know get one that it does', () => {
    expect(withKnownError(answer(-125)).readInt32BE(16)).toBe(-1);
    expect(withKnownError(answer(-118)).readInt32BE(16)).toBe(-112);
    expect(withKnownError(answer(-101)).readInt32BE(16)).toBe(-101);
    expect(withKnownError(answer(0)).readInt32BE(16)).toBe(0);
    expect(() => withKnownError(frame(Buffer.alloc(3)))).toThrow('an answer of');
  });
});
