/**
 * The changes that the embedded coordinator's state is made of, and their durable form: MessagePack tuples, since the
 * format must outlive versions of Node. A snapshot is a list of the same changes.
 */
import { Packr } from 'msgpackr';
import type { NodeKind } from '../node-store.js';

export type Change =
  | {
      readonly kind: 'create';
      readonly path: string;
      readonly data: Uint8Array;
      readonly version: number;
      readonly nodeKind: NodeKind;
      /** The session that an ephemeral node lives with; empty for other kinds. */
      readonly session: string;
    }
  | { readonly kind: 'write'; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | { readonly kind: 'remove'; readonly path: string }
  | {
      readonly kind: 'open-session';
      readonly session: string;
      readonly timeoutMs: number;
      readonly pid: number;
      readonly startTime: string;
    }
  /** Its ephemeral nodes go with it. */
  | { readonly kind: 'end-session'; readonly session: string };

const packr = new Packr({ useRecords: false });

/** The durable form of changes, in order. */
export function encodeChanges(changes: readonly Change[]): Uint8Array {
  return packr.pack(changes.map(toTuple));
}

/** Data is copied out of `bytes`. @throws Error for bytes that {@link encodeChanges} did not write */
export function decodeChanges(bytes: Uint8Array): readonly Change[] {
  const tuples: unknown = packr.unpack(bytes);
  if (!Array.isArray(tuples)) throw new Error('expected a list of changes');
  return tuples.map(fromTuple);
}

function toTuple(change: Change): readonly unknown[] {
  switch (change.kind) {
    case 'create':
      return [
        'c',
        change.path,
        change.data,
        change.version,
        change.nodeKind === 'ephemeral' ? change.session : '',
      ];
    case 'write':
      return ['w', change.path, change.data, change.version];
    case 'remove':
      return ['r', change.path];
    case 'open-session':
      return ['s', change.session, change.timeoutMs, change.pid, change.startTime];
    case 'end-session':
      return ['e', change.session];
  }
}

function fromTuple(tuple: unknown): Change {
  if (!Array.isArray(tuple)) throw new Error('expected a change');
  const [tag, first, second, third, fourth] = tuple as readonly unknown[];
  if (typeof first !== 'string') throw new Error('expected the path or session of a change');
  if (tag === 'c' && isBytes(second) && isCount(third) && typeof fourth === 'string') {
    const nodeKind = fourth === '' ? 'durable' : 'ephemeral';
    return {
      kind: 'create',
      path: first,
      data: Buffer.from(second),
      version: third,
      nodeKind,
      session: fourth,
    };
  }
  if (tag === 'w' && isBytes(second) && isCount(third)) {
    return { kind: 'write', path: first, data: Buffer.from(second), version: third };
  }
  if (tag === 'r') return { kind: 'remove', path: first };
  if (tag === 's' && typeof second === 'number' && isCount(third) && typeof fourth === 'string') {
    return { kind: 'open-session', session: first, timeoutMs: second, pid: third, startTime: fourth };
  }
  if (tag === 'e') return { kind: 'end-session', session: first };
  throw new Error(`unknown change ${String(tag)}`);
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
