/**
 * How two workers of one topology get to know each other over a fresh socket. Pure: messages in, messages out.
 *
 *   dialer → acceptor  hello      who I am and whom I want, a nonce, the session that I would resume
 *   acceptor → dialer  challenge  who I am, a nonce, a proof, the session that this connection belongs to
 *   dialer → acceptor  proof      a proof, what I have received in that session
 *   acceptor → dialer  welcome    what I have received
 * or, instead of the last three, `refused` with a reason (for the log: nobody has proved anything yet).
 *
 * A proof is an HMAC-SHA256 under the topology's secret over the role and everything that both have said so far, both
 * nonces included: it cannot be replayed, nor reflected to the other role.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { IsobarError } from '../../base/index.js';
import { protocolError } from './envelope.js';

export const PROTOCOL_VERSION = 2;
export const NONCE_BYTES = 16;

export interface Hello {
  readonly kind: 'hello';
  readonly version: number;
  readonly topologyId: string;
  readonly from: string;
  readonly to: string;
  readonly generation: number;
  readonly nonce: string;
  /** Session that the dialer has or was offered; empty: none. */
  readonly session: string;
}

export interface Challenge {
  readonly kind: 'challenge';
  readonly from: string;
  readonly generation: number;
  readonly nonce: string;
  /** The dialer's session if the acceptor knows it, otherwise a new one. */
  readonly session: string;
  readonly proof: string;
}

export interface Proof {
  readonly kind: 'proof';
  readonly received: number;
  readonly proof: string;
}

export interface Welcome {
  readonly kind: 'welcome';
  readonly received: number;
}

export interface Refused {
  readonly kind: 'refused';
  readonly reason: string;
}

export type HandshakeMessage = Hello | Challenge | Proof | Welcome | Refused;

/** What each field of a message must be. */
const SHAPES: Readonly<Record<HandshakeMessage['kind'], Readonly<Record<string, 'string' | 'count'>>>> = {
  hello: {
    version: 'count',
    topologyId: 'string',
    from: 'string',
    to: 'string',
    generation: 'count',
    nonce: 'string',
    session: 'string',
  },
  challenge: { from: 'string', generation: 'count', nonce: 'string', session: 'string', proof: 'string' },
  proof: { received: 'count', proof: 'string' },
  welcome: { received: 'count' },
  refused: { reason: 'string' },
};

export function encodeHandshake(message: HandshakeMessage): Buffer {
  return Buffer.from(JSON.stringify(message));
}

/** Reads a handshake message. Throws PEER_PROTOCOL_ERROR for anything else. */
export function decodeHandshake(body: Buffer): HandshakeMessage {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw protocolError('a handshake message', 'no JSON');
  }
  if (typeof value !== 'object' || value === null) throw protocolError('a handshake message', 'no object');
  const fields = value as Readonly<Record<string, unknown>>;
  const kind = fields['kind'];
  if (typeof kind !== 'string' || !Object.hasOwn(SHAPES, kind)) {
    throw protocolError('a handshake message', 'an unknown kind');
  }
  // Checked on the line above.
  for (const [name, type] of Object.entries(SHAPES[kind as HandshakeMessage['kind']])) {
    const field = fields[name];
    const fits =
      type === 'string' ? typeof field === 'string' : Number.isSafeInteger(field) && (field as number) >= 0;
    if (!fits) throw protocolError(`a ${kind} with the field "${name}"`, typeof field);
  }
  // The fields have just been checked one by one.
  return value as HandshakeMessage;
}

/** Proof of the secret by the given role. */
export function prove(
  secret: Buffer,
  role: 'dialer' | 'acceptor',
  hello: Hello,
  challenge: Omit<Challenge, 'proof'>,
): string {
  const said = [
    role,
    hello.version,
    hello.topologyId,
    hello.from,
    hello.to,
    hello.generation,
    hello.nonce,
    hello.session,
    challenge.from,
    challenge.generation,
    challenge.nonce,
    challenge.session,
  ];
  // JSON keeps the parts apart.
  return createHmac('sha256', secret).update(JSON.stringify(said)).digest('hex');
}

/** Compares in a time that does not depend on how much agrees. */
export function proofsAgree(expected: string, given: string): boolean {
  const a = Buffer.from(expected);
  const b = Buffer.from(given);
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Whether two workers belong together: the reason against it, or null. */
export function reasonToRefuse(
  hello: Hello,
  own: { readonly topologyId: string; readonly self: string },
  isPeer: boolean,
  seenGeneration: number,
): string | null {
  if (hello.version !== PROTOCOL_VERSION)
    return `protocol version ${hello.version} instead of ${PROTOCOL_VERSION}`;
  if (hello.topologyId !== own.topologyId)
    return `topology "${hello.topologyId}" instead of "${own.topologyId}"`;
  if (hello.to !== own.self) return `looks for "${hello.to}", this is "${own.self}"`;
  if (!isPeer) return `"${hello.from}" is not a peer of "${own.self}" now`;
  if (hello.generation < seenGeneration) return outdated(hello.generation, seenGeneration);
  return null;
}

export function outdated(generation: number, seenGeneration: number): string {
  return `generation ${generation} is older than ${seenGeneration}, which was seen`;
}

export function refusal(reason: string, peer: string): IsobarError {
  return new IsobarError('PEER_REFUSED', `the peer ${peer} was refused: ${reason}`, {
    found: reason,
    where: peer,
  });
}
