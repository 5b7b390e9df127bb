import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PeerSession } from './session.js';

describe('a peer session', () => {
  it('brings every frame over once and in order, whatever is lost with whichever socket', () => {
    // Steps: send a frame, move one packet, carry a confirmation back, lose the socket with all that is under way.
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.constant('send' as const) },
      { weight: 8, arbitrary: fc.constant('write' as const) },
      { weight: 8, arbitrary: fc.constant('arrive' as const) },
      { weight: 3, arbitrary: fc.constant('confirm' as const) },
      { weight: 2, arbitrary: fc.constant('cut' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const sender = new PeerSession('x', 1);
        const receiver = new PeerSession('x', 1);
        let underWay: { sequence: number; frame: Buffer }[] = [];
        const received: number[] = [];
        let sent = 0;
        const apply = (each: (typeof steps)[number]): void => {
          if (each === 'send') sender.add(Buffer.from([sent & 255, sent++ >> 8]));
          else if (each === 'write') {
            const next = sender.takeNext();
            if (next !== null) underWay.push(next);
          } else if (each === 'arrive') {
            const next = underWay.shift();
            if (next !== undefined && receiver.accept(next.sequence))
              received.push(next.frame.readUInt16LE());
          } else if (each === 'confirm') sender.confirm(receiver.received);
          else {
            underWay = [];
            sender.resume(receiver.received);
          }
        };
        for (const each of steps) apply(each);
        apply('cut');
        while (received.length < sent) {
          apply('write');
          apply('arrive');
        }
        apply('confirm');
        expect(received).toEqual(Array.from({ length: sent }, (_, i) => i));
        expect([sender.unconfirmed, sender.bufferedBytes, receiver.duplicatesDropped]).toEqual([0, 0, 0]);
      }),
      { seed: 20_265, numRuns: 500 },
    );
  });

  it('drops what it has accepted before, and counts it', () => {
    const session = new PeerSession('x', 1);
    expect([session.accept(1), session.accept(2), session.accept(1), session.accept(2)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(session.duplicatesDropped).toBe(2);
  });

  it('refuses a gap, and a confirmation of what was never written', () => {
    const session = new PeerSession('x', 1);
    expect(() => session.accept(2)).toThrow(/expected frame 1, found frame 2/);
    session.add(Buffer.alloc(1));
    expect(() => session.confirm(1)).toThrow(expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }));
  });
});
