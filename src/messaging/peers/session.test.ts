import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Packet, PacketParser } from './envelope.js';
import { BlockPool } from './kept-packets.js';
import { PeerSession } from './session.js';

function packetsOf(run: Buffer): Packet[] {
  const packets: Packet[] = [];
  // A copy, as the socket makes one: what is kept is used again.
  new PacketParser(1_000_000).push(Buffer.from(run), (each) => packets.push(each) > 0);
  return packets;
}

describe('a peer session', () => {
  it('brings every frame over once and in order, whatever is lost with whichever socket', () => {
    // Steps: send a frame, move one packet, carry a confirmation back, lose the socket with all that is under way.
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.constant('send' as const) },
      { weight: 1, arbitrary: fc.constant('send much' as const) },
      { weight: 8, arbitrary: fc.constant('write' as const) },
      { weight: 8, arbitrary: fc.constant('arrive' as const) },
      { weight: 3, arbitrary: fc.constant('confirm' as const) },
      { weight: 2, arbitrary: fc.constant('cut' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const pool = new BlockPool();
        const sender = new PeerSession('x', 1, pool);
        const receiver = new PeerSession('x', 1, pool);
        let underWay: Packet[] = [];
        const received: number[] = [];
        let sent = 0;
        const apply = (each: (typeof steps)[number]): void => {
          if (each === 'send' || each === 'send much') {
            // Some larger than any block, and some that leave little room in one.
            const frame = Buffer.alloc(
              each === 'send' ? 2 + (sent % 7) : [200_000, 120_000][sent % 2]!,
              sent,
            );
            frame.writeUInt16LE(sent++);
            sender.add(frame);
          } else if (each === 'write') {
            const run = sender.takeRun();
            if (run !== null) underWay.push(...packetsOf(run));
          } else if (each === 'arrive') {
            const next = underWay.shift();
            if (next !== undefined && receiver.accept(next.sequence)) {
              const number = next.body.readUInt16LE();
              received.push(number);
              expect(next.body.subarray(2).every((byte) => byte === (number & 255))).toBe(true);
            }
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
      { seed: 20_265, numRuns: 200 },
    );
  });

  it('sends frames that lie one behind another in one piece, each under its number', () => {
    const session = new PeerSession('x', 1, new BlockPool());
    session.received = 7;
    for (const text of ['a', 'bcdef', '']) session.add(Buffer.from(text));
    const packets = packetsOf(session.takeRun()!);
    expect(packets.map(({ sequence, confirmed, body }) => [sequence, confirmed, body.toString()])).toEqual([
      [1, 7, 'a'],
      [2, 7, 'bcdef'],
      [3, 7, ''],
    ]);
    expect(session.takeRun()).toBe(null);
  });

  it('uses the memory of frames again as soon as they are confirmed', () => {
    const session = new PeerSession('x', 1, new BlockPool());
    const places = Array.from({ length: 5 }, (_, i) => {
      session.add(Buffer.alloc(1000));
      const run = session.takeRun()!;
      session.confirm(i + 1);
      return [run.buffer, run.byteOffset];
    });
    for (const [buffer, at] of places) expect([buffer === places[0]![0], at]).toEqual([true, 0]);
  });

  it('drops what it has accepted before, and counts it', () => {
    const session = new PeerSession('x', 1, new BlockPool());
    expect([session.accept(1), session.accept(2), session.accept(1), session.accept(2)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(session.duplicatesDropped).toBe(2);
  });

  it('refuses a gap, and a confirmation of what was never written', () => {
    const session = new PeerSession('x', 1, new BlockPool());
    expect(() => session.accept(2)).toThrow(/expected frame 1, found frame 2/);
    session.add(Buffer.alloc(1));
    expect(() => session.confirm(1)).toThrow(expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }));
  });
});
