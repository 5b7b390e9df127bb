/** What each request on a node means: from the state and the request to a result and a change. Pure. */
import { IsobarError } from '../../base/index.js';
import { ANY_VERSION, checkNodeSize, type StoredNode } from '../node-store.js';
import type { Decision } from './commit-queue.js';
import type { NodeTree, TreeNode } from './node-tree.js';
import type { RequestBody } from './protocol.js';

export class NodeOperations {
  readonly #tree: NodeTree;

  constructor(tree: NodeTree) {
    this.#tree = tree;
  }

  /** @throws NODE_EXISTS, NODE_TOO_LARGE, SESSION_EXPIRED */
  create({ path, data, kind }: RequestBody<'create'>, session: string): Decision<null> {
    checkNodeSize(path, data);
    if (this.#tree.node(path) !== undefined) {
      throw new IsobarError('NODE_EXISTS', `${path} exists`, {
        expected: 'no node',
        found: 'a node',
        where: path,
      });
    }
    if (kind === 'ephemeral' && !this.#tree.sessions.has(session)) {
      throw new IsobarError('SESSION_EXPIRED', `the session ended before ${path} was created`, {
        where: path,
      });
    }
    return {
      result: null,
      change: {
        kind: 'create',
        path,
        data,
        version: 0,
        nodeKind: kind,
        session: kind === 'ephemeral' ? session : '',
      },
    };
  }

  read({ path }: RequestBody<'read'>, session: string): Decision<StoredNode | null> {
    const node = this.#tree.node(path);
    if (node === undefined) return { result: null };
    return { result: { data: node.data, version: node.version, owner: ownerOf(node, session) } };
  }

  /** @throws NODE_MISSING, VERSION_CONFLICT, NODE_TOO_LARGE */
  write({ path, data, version }: RequestBody<'write'>): Decision<number> {
    checkNodeSize(path, data);
    const next = this.#expect(path, version).version + 1;
    return { result: next, change: { kind: 'write', path, data, version: next } };
  }

  /** @throws NODE_MISSING, VERSION_CONFLICT */
  remove({ path, version }: RequestBody<'remove'>): Decision<null> {
    this.#expect(path, version);
    return { result: null, change: { kind: 'remove', path } };
  }

  children({ path }: RequestBody<'children'>): Decision<readonly string[]> {
    return { result: this.#tree.children(path) };
  }

  #expect(path: string, version: number): TreeNode {
    const node = this.#tree.node(path);
    if (node === undefined) {
      throw new IsobarError('NODE_MISSING', `${path} does not exist`, {
        expected: 'a node',
        found: 'none',
        where: path,
      });
    }
    if (version !== ANY_VERSION && version !== node.version) {
      throw new IsobarError('VERSION_CONFLICT', `${path} has changed`, {
        expected: `version ${version}`,
        found: `version ${node.version}`,
        where: path,
      });
    }
    return node;
  }
}

function ownerOf(node: TreeNode, session: string): StoredNode['owner'] {
  if (node.kind !== 'ephemeral') return 'nobody';
  return node.session === session ? 'this-session' : 'another-session';
}
