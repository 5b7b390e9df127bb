import { describe, expect, it } from 'vitest';
import { createRowCodec, CreditBatch, KIND_CREDIT, KIND_DATA, OutBatch } from '../messaging/index.js';
import { Link, OutPort } from './link.js';
import { mostUnderWay, PeerCredit } from './peer-credit.js';

const CODEC = createRowCodec([{ name: 'text', kind: 'string', nullable: false }]);
const PEER = 3;

function dataFrame(...lengths: readonly number[]): Int32Array {
  const batch = new OutBatch(16);
  for (const length of lengths)
    batch.addRow(0, 1, 2, 0, 0, 0, 0, 0, null, CODEC, { text: 'x'.repeat(length) });
  batch.seal(KIND_DATA, 0, 1, 0, 1, 0);
  return batch.words;
}

function creditFrame(...grants: readonly (readonly [creditClass: number, cost: number])[]): Int32Array {
  const batch = new CreditBatch(8);
  for (const [creditClass, cost] of grants) batch.add(creditClass, cost);
  batch.seal(KIND_CREDIT, 0, 1, 0, 1, 0);
  return batch.words;
}

describe('what peers have under way to a thread', () => {
  it('is what they sent, at the price of its bytes, less what the thread has granted', () => {
    const credit = new PeerCredit();
    expect(credit.take(PEER, dataFrame(1, 10, 100), 0)).toBe(3);
    expect(credit.take(PEER, dataFrame(1, 10_000), 0)).toBe(3 + 1 + 3);
    credit.giveBack(PEER, creditFrame([0, 4], [5, 2]), 0);
    expect(credit.take(PEER, dataFrame(1), 0)).toBe(2);
  });

  it('is kept of each, and is not below zero whatever is granted', () => {
    const credit = new PeerCredit();
    credit.giveBack(PEER, creditFrame([0, 4]), 0);
    credit.take(PEER, dataFrame(1), 0);
    credit.giveBack(PEER, creditFrame([0, 1000]), 0);
    expect(credit.take(PEER, dataFrame(1), 0)).toBe(1);
    expect(credit.take(PEER + 1, dataFrame(1, 1), 0)).toBe(2);
  });

  it.each([100, 5000, 60_000])(
    'is within the bound whatever a link is given to send: rows of %i bytes',
    (bytes) => {
      const [classes, credit, maxRowBytes] = [4, 10, 65_536];
      const peer = new PeerCredit();
      let underWay = 0;
      const writer = {
        isUnfinished: false,
        tryWrite(words: Int32Array): boolean {
          underWay = peer.take(PEER, words, 0);
          return true;
        },
      };
      const link = new Link({
        id: PEER,
        peer: 0,
        targetThread: 0,
        targetGeneration: 1,
        sourceThread: 0,
        sourceGeneration: 1,
        // Of a writer, only what a port calls.
        port: new OutPort(writer as never),
        creditClasses: classes,
        cycles: 0,
        credit,
        batchRows: 3,
        maxRowBytes,
        onRefused: () => undefined,
        codecs: [CODEC],
      });
      for (let i = 0; i < 1000; i++) {
        link.send(i % classes, 0, 1, 2, 0, 0, 0, 0, 0, null, { text: 'x'.repeat(bytes) });
        link.flush();
      }
      expect(underWay).toBeGreaterThanOrEqual(classes * credit);
      expect(underWay).toBeLessThanOrEqual(mostUnderWay(classes, credit, maxRowBytes) / 2);
    },
  );
});
