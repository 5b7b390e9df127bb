import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Change, decodeChanges, encodeChanges } from './changes.js';
import { NodeTree, type Undo } from './node-tree.js';

const SEED = 20_263;
const PATHS = ['/a', '/a/b', '/a/b/c', '/a/d', '/e', '/f/g/h'];
const SESSIONS = ['s1', 's2'];

const arbitraryChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    kind: fc.constant('create' as const),
    path: fc.constantFrom(...PATHS),
    data: fc.uint8Array({ maxLength: 4 }),
    version: fc.constant(0),
    nodeKind: fc.constant('durable' as const),
    session: fc.constant(''),
  }),
  fc.record({
    kind: fc.constant('create' as const),
    path: fc.constantFrom(...PATHS),
    data: fc.uint8Array({ maxLength: 4 }),
    version: fc.constant(0),
    nodeKind: fc.constant('ephemeral' as const),
    session: fc.constantFrom(...SESSIONS),
  }),
  fc.record({
    kind: fc.constant('write' as const),
    path: fc.constantFrom(...PATHS),
    data: fc.uint8Array({ maxLength: 4 }),
    version: fc.nat(9),
  }),
  fc.record({ kind: fc.constant('remove' as const), path: fc.constantFrom(...PATHS) }),
  fc.record({
    kind: fc.constant('open-session' as const),
    session: fc.constantFrom(...SESSIONS),
    timeoutMs: fc.nat(1000),
    pid: fc.nat(1000),
    startTime: fc.constantFrom('', '77'),
  }),
  fc.record({ kind: fc.constant('end-session' as const), session: fc.constantFrom(...SESSIONS) }),
);

/** Everything that can be seen of a tree, in one comparable value. */
function view(tree: NodeTree): unknown {
  return {
    nodes: PATHS.map((path) => tree.node(path)).map((node) => node && { ...node, data: [...node.data] }),
    children: ['', '/a', '/a/b', '/f', '/f/g'].map((path) => tree.children(path)),
    sessions: [...tree.sessions.values()]
      .map((session) => ({ ...session, ephemeralPaths: [...session.ephemeralPaths].sort() }))
      .sort((a, b) => a.id.localeCompare(b.id)),
    count: tree.nodeCount,
  };
}

function tryApply(tree: NodeTree, change: Change): Undo | undefined {
  const before = view(tree);
  try {
    return tree.apply(change);
  } catch {
    expect(view(tree)).toEqual(before);
    return undefined;
  }
}

describe('the node tree', () => {
  it('undoes any changes in reverse order, and changes nothing when it refuses', () => {
    fc.assert(
      fc.property(
        fc.array(arbitraryChange, { maxLength: 20 }),
        fc.array(arbitraryChange, { maxLength: 20 }),
        (first, second) => {
          const tree = new NodeTree();
          for (const change of first) tryApply(tree, change);
          const before = view(tree);
          const undos = second.map((change) => tryApply(tree, change));
          for (const undo of undos.toReversed()) undo?.();
          expect(view(tree)).toEqual(before);
        },
      ),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('is made again by its accepted changes, and by its snapshot, through their durable form', () => {
    fc.assert(
      fc.property(fc.array(arbitraryChange, { maxLength: 40 }), (changes) => {
        const tree = new NodeTree();
        const accepted = changes.filter((change) => tryApply(tree, change) !== undefined);
        for (const history of [accepted, [...tree.snapshot()]]) {
          const copy = new NodeTree();
          for (const change of decodeChanges(encodeChanges(history))) copy.apply(change);
          expect(view(copy)).toEqual(view(tree));
        }
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('leaves volatile nodes out of its snapshot', () => {
    const tree = new NodeTree();
    const node = { data: Buffer.from('x'), version: 0, session: '' };
    tree.apply({ kind: 'create', path: '/a/kept', nodeKind: 'durable', ...node });
    tree.apply({ kind: 'create', path: '/a/heartbeat', nodeKind: 'volatile', ...node });
    expect([...tree.snapshot()].map((change) => 'path' in change && change.path)).toEqual(['/a/kept']);
  });

  it('refuses bytes that are no changes', () => {
    for (const value of [[], [['?']], [['c', '/a']], [['w', '/a', 'text', 0]], [['s', 1]], [7]]) {
      if (value.length === 0) continue;
      // Encoded as its own format would be, so that only the shape is wrong.
      expect(() => decodeChanges(packed(value))).toThrow();
    }
  });
});

function packed(value: unknown): Uint8Array {
  // Small arrays, strings and numbers only: MessagePack by hand.
  if (Array.isArray(value)) {
    return Buffer.concat([Buffer.from([0x90 | value.length]), ...value.map(packed)]);
  }
  if (typeof value === 'string') {
    return Buffer.concat([Buffer.from([0xa0 | value.length]), Buffer.from(value)]);
  }
  return Buffer.from([Number(value)]);
}
