import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  PACKET_BYE,
  PACKET_CONFIRM,
  PACKET_FRAME,
  PACKET_HANDSHAKE,
  PACKET_HEADER_BYTES,
  type Packet,
  PacketParser,
  packetOf,
  rawPacketHeader,
} from './envelope.js';
import {
  decodeHandshake,
  encodeHandshake,
  type Hello,
  PROTOCOL_VERSION,
  proofsAgree,
  prove,
  reasonToRefuse,
} from './handshake.js';

function packet(type: number, body: Buffer, sequence = 0, confirmed = 0): Buffer {
  return packetOf(type, body, sequence, confirmed);
}

function parse(chunks: readonly Buffer[], maxBodyBytes = 10_000): Packet[] {
  const parser = new PacketParser(maxBodyBytes);
  const packets: Packet[] = [];
  for (const chunk of chunks) {
    parser.push(chunk, (each) => {
      packets.push(each);
      return true;
    });
  }
  return packets;
}

const anyPacket = fc.oneof(
  fc.record({
    type: fc.constantFrom(PACKET_FRAME, PACKET_HANDSHAKE),
    body: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    sequence: fc.maxSafeNat(),
    confirmed: fc.maxSafeNat(),
  }),
  fc.record({
    type: fc.constantFrom(PACKET_CONFIRM, PACKET_BYE),
    body: fc.constant(Buffer.alloc(0)),
    sequence: fc.constant(0),
    confirmed: fc.maxSafeNat(),
  }),
);

describe('the packet parser', () => {
  it('finds the same packets one byte at a time, in random chunks, and all at once', () => {
    fc.assert(
      fc.property(fc.array(anyPacket, { maxLength: 8 }), fc.array(fc.nat(2000)), (packets, cuts) => {
        const bytes = Buffer.concat(packets.map((p) => packet(p.type, p.body, p.sequence, p.confirmed)));
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort(
          (a, b) => a - b,
        );
        const chunks = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        const single = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
        for (const split of [[bytes], chunks, single]) expect(parse(split)).toEqual(packets);
      }),
      { seed: 20_266, numRuns: 300 },
    );
  });

  it('hands out bodies where an Int32Array may start, wherever chunks begin and end', () => {
    const bodies = [5, 32, 33, 5000].map((length) => Buffer.alloc(length, 1));
    const bytes = Buffer.concat(bodies.map((body) => packet(PACKET_FRAME, body)));
    for (let cut = 0; cut < 200; cut++) {
      for (const shift of [0, 1, 2, 3]) {
        const whole = Buffer.concat([Buffer.alloc(shift), bytes]).subarray(shift);
        const packets = parse([whole.subarray(0, cut), whole.subarray(cut)]);
        expect(packets.map(({ body }) => body.byteOffset % 4)).toEqual([0, 0, 0, 0]);
        expect(packets.map(({ body }) => body)).toEqual(bodies);
      }
    }
  });

  it('leaves a body where it came when it is whole there', () => {
    const bytes = Buffer.concat([
      packet(PACKET_FRAME, Buffer.from('first')),
      packet(PACKET_FRAME, Buffer.from('next')),
    ]);
    const [first, next] = parse([bytes]);
    expect([first!.body.buffer, next!.body.buffer]).toEqual([bytes.buffer, bytes.buffer]);
  });

  it('stops when it is told to', () => {
    const parser = new PacketParser(100);
    let seen = 0;
    parser.push(
      Buffer.concat([packet(PACKET_CONFIRM, Buffer.alloc(0)), packet(PACKET_CONFIRM, Buffer.alloc(0))]),
      () => {
        seen++;
        return false;
      },
    );
    expect(seen).toBe(1);
  });

  it.each([
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a packet of no known type', packet(9, Buffer.alloc(0))],
    ['a frame over the limit', rawPacketHeader(PACKET_FRAME, 10_001, 0, 1, 0)],
    ['an over-long handshake', rawPacketHeader(PACKET_HANDSHAKE, 16_385, 0, 0, 0)],
    ['a confirmation with a body', rawPacketHeader(PACKET_CONFIRM, 1, 0, 0, 0)],
    ['a negative sequence', rawPacketHeader(PACKET_FRAME, 0, 0, -1, 0)],
    ['a sequence that is no number', rawPacketHeader(PACKET_FRAME, 0, 0, NaN, 0)],
    ['a fraction as confirmation', rawPacketHeader(PACKET_CONFIRM, 0, 0, 0, 0.5)],
  ])('refuses %s', (_, bytes) => {
    expect(() => parse([bytes])).toThrow(expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }));
  });

  it('tells a stranger from its first four bytes', () => {
    expect(() => parse([Buffer.from('\u0016\u0003\u0001\u0002', 'latin1')])).toThrow(/160301/);
  });

  it('hands out nothing of a packet in which one bit is another, wherever it is', () => {
    const body = Buffer.from('a body of some bytes');
    const good = packet(PACKET_FRAME, body, 7, 3);
    const next = packet(PACKET_FRAME, Buffer.from('next'), 8, 3);
    // The padding after a body means nothing.
    for (let bit = 0; bit < 8 * (PACKET_HEADER_BYTES + body.length); bit++) {
      const bytes = Buffer.concat([good, next]);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const seen: Packet[] = [];
      expect(() =>
        new PacketParser(10_000).push(bytes, (each) => {
          seen.push(each);
          return true;
        }),
      ).toThrow(expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }));
      expect(seen).toEqual([]);
    }
  });

  it('never throws anything but a protocol error, whatever comes', () => {
    const rubbish = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      // A valid start, spoilt at one place.
      fc.tuple(anyPacket, fc.nat(60), fc.nat(255)).map(([p, at, value]) => {
        const bytes = packet(p.type, p.body, p.sequence, p.confirmed);
        if (at < bytes.length) bytes[at] = value;
        return bytes;
      }),
    );
    fc.assert(
      fc.property(rubbish, (bytes) => {
        try {
          for (const each of parse([Buffer.from(bytes)], 1000)) {
            if (each.type === PACKET_HANDSHAKE) decodeHandshake(each.body);
          }
        } catch (error) {
          expect(error).toMatchObject({ code: 'PEER_PROTOCOL_ERROR' });
        }
      }),
      { seed: 20_267, numRuns: 1000 },
    );
  });
});

const hello: Hello = {
  kind: 'hello',
  version: PROTOCOL_VERSION,
  topologyId: 't',
  from: 'a',
  to: 'b',
  generation: 3,
  nonce: '00',
  session: '',
};
const challenge = { kind: 'challenge', from: 'b', generation: 2, nonce: '11', session: '22' } as const;

describe('the handshake', () => {
  it('reads what it wrote and refuses messages that lack a field or have one of the wrong type', () => {
    expect(decodeHandshake(encodeHandshake(hello))).toEqual(hello);
    for (const spoilt of [
      { ...hello, generation: -1 },
      { ...hello, generation: 1.5 },
      { ...hello, nonce: 5 },
      { ...hello, kind: 'toString' },
      { kind: 'welcome' },
      null,
      [],
      'hello',
    ]) {
      expect(() => decodeHandshake(Buffer.from(JSON.stringify(spoilt)))).toThrow(
        expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }),
      );
    }
  });

  it('gives another proof for another secret, role, or anything said', () => {
    const secret = Buffer.alloc(32, 1);
    const proofs = [
      prove(secret, 'dialer', hello, challenge),
      prove(secret, 'acceptor', hello, challenge),
      prove(Buffer.alloc(32, 2), 'dialer', hello, challenge),
      prove(secret, 'dialer', { ...hello, nonce: '01' }, challenge),
      prove(secret, 'dialer', { ...hello, generation: 4 }, challenge),
      prove(secret, 'dialer', { ...hello, from: 'b', to: 'a' }, challenge),
      prove(secret, 'dialer', hello, { ...challenge, nonce: '12' }),
      prove(secret, 'dialer', hello, { ...challenge, session: '23' }),
    ];
    expect(new Set(proofs).size).toBe(proofs.length);
    expect(proofsAgree(proofs[0]!, prove(secret, 'dialer', hello, challenge))).toBe(true);
    expect(proofsAgree(proofs[0]!, proofs[1]!)).toBe(false);
    expect(proofsAgree(proofs[0]!, '')).toBe(false);
  });

  it('refuses another version, topology, addressee, a stranger, and an older generation', () => {
    const own = { topologyId: 't', self: 'b' };
    expect(reasonToRefuse(hello, own, true, 3)).toBe(null);
    expect(reasonToRefuse({ ...hello, version: 1 }, own, true, 0)).toMatch(/version 1 /);
    expect(reasonToRefuse({ ...hello, topologyId: 'u' }, own, true, 0)).toMatch(/topology "u"/);
    expect(reasonToRefuse({ ...hello, to: 'c' }, own, true, 0)).toMatch(/looks for "c"/);
    expect(reasonToRefuse(hello, own, false, 0)).toMatch(/not a peer/);
    expect(reasonToRefuse(hello, own, true, 4)).toMatch(/generation 3 is older than 4/);
  });
});
