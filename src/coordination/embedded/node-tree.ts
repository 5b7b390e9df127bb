/**
 * The coordinator's state in memory: nodes, sessions, and which node lives with which session. Pure: no disk, no clock.
 *
 * T1 `apply` either makes the whole change and returns how to undo it, or throws and changes nothing.
 * T2 Changes that were accepted once give the same state when they are applied again in order.
 */
import type { ProcessIdentity } from '../../base/index.js';
import type { NodeKind } from '../node-store.js';

import type { Change } from './changes.js';

export interface TreeNode {
  readonly data: Uint8Array;
  readonly version: number;
  readonly kind: NodeKind;
  /** Empty unless ephemeral. */
  readonly session: string;
}

export interface SessionRecord {
  readonly id: string;
  readonly timeoutMs: number;
  readonly process: ProcessIdentity;
  readonly ephemeralPaths: Set<string>;
}

export type Undo = () => void;

export class NodeTree {
  readonly #nodes = new Map<string, TreeNode>();
  /** Names of children by parent; a parent need not be a node. */
  readonly #children = new Map<string, Set<string>>();
  readonly #sessions = new Map<string, SessionRecord>();
  #changeCount = 0;
  #changedBytes = 0;

  /** Nodes created, written and removed so far, those of the log that was read among them; differences count. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** Bytes of all values that were written. */
  get changedBytes(): number {
    return this.#changedBytes;
  }

  get nodeCount(): number {
    return this.#nodes.size;
  }

  get sessions(): ReadonlyMap<string, SessionRecord> {
    return this.#sessions;
  }

  node(path: string): TreeNode | undefined {
    return this.#nodes.get(path);
  }

  children(path: string): readonly string[] {
    return [...(this.#children.get(path) ?? [])].sort();
  }

  hasChildren(path: string): boolean {
    return this.#children.has(path);
  }

  /** Makes a change that is known to be allowed (or comes from the log). @throws Error where it does not fit */
  apply(change: Change): Undo {
    switch (change.kind) {
      case 'create': {
        if (this.#nodes.has(change.path)) throw new Error(`node ${change.path} is created twice`);
        const { data, version, session } = change;
        return this.#set(change.path, { data, version, session, kind: change.nodeKind });
      }
      case 'write': {
        const node = this.#require(change.path);
        return this.#set(change.path, { ...node, data: change.data, version: change.version });
      }
      case 'remove':
        this.#require(change.path);
        return this.#set(change.path, undefined);
      case 'open-session':
        return this.#openSession(change);
      case 'end-session':
        return this.#endSession(change.session);
    }
  }

  /** The changes that make this state from nothing, except volatile nodes. */
  *snapshot(): Generator<Change> {
    for (const session of this.#sessions.values()) {
      const { pid, startTime } = session.process;
      yield { kind: 'open-session', session: session.id, timeoutMs: session.timeoutMs, pid, startTime };
    }
    for (const [path, node] of this.#nodes) {
      if (node.kind === 'volatile') continue;
      const { data, version, session } = node;
      yield { kind: 'create', path, data, version, nodeKind: node.kind, session };
    }
  }

  #require(path: string): TreeNode {
    const node = this.#nodes.get(path);
    if (node === undefined) throw new Error(`node ${path} is missing`);
    return node;
  }

  /** Puts, replaces or (undefined) removes a node, with the indexes that follow from it. */
  #set(path: string, node: TreeNode | undefined): Undo {
    this.#changeCount++;
    this.#changedBytes += node?.data.length ?? 0;
    const before = this.#nodes.get(path);
    const owner = node ?? before;
    const ephemeralPaths =
      owner?.kind === 'ephemeral' ? this.#sessions.get(owner.session)?.ephemeralPaths : undefined;
    if (owner?.kind === 'ephemeral' && ephemeralPaths === undefined) {
      throw new Error(`session ${owner.session} of ${path} is unknown`);
    }
    if (node === undefined) {
      this.#nodes.delete(path);
      ephemeralPaths?.delete(path);
      this.#unlink(path);
    } else {
      this.#nodes.set(path, node);
      ephemeralPaths?.add(path);
      if (before === undefined) this.#link(path);
    }
    return () => void this.#set(path, before);
  }

  #link(path: string): void {
    for (let child = path; child !== ''; child = parentOf(child)) {
      const parent = parentOf(child);
      const siblings = this.#children.get(parent);
      if (siblings !== undefined) {
        siblings.add(nameOf(child));
        return;
      }
      this.#children.set(parent, new Set([nameOf(child)]));
    }
  }

  #unlink(path: string): void {
    for (let child = path; child !== ''; child = parentOf(child)) {
      if (this.#nodes.has(child) || this.#children.has(child)) return;
      const parent = parentOf(child);
      const siblings = this.#children.get(parent);
      siblings?.delete(nameOf(child));
      if (siblings === undefined || siblings.size > 0) return;
      this.#children.delete(parent);
    }
  }

  #openSession(change: Extract<Change, { kind: 'open-session' }>): Undo {
    if (this.#sessions.has(change.session)) throw new Error(`session ${change.session} is opened twice`);
    this.#sessions.set(change.session, {
      id: change.session,
      timeoutMs: change.timeoutMs,
      process: { pid: change.pid, startTime: change.startTime },
      ephemeralPaths: new Set(),
    });
    return () => void this.#sessions.delete(change.session);
  }

  #endSession(id: string): Undo {
    const session = this.#sessions.get(id);
    if (session === undefined) throw new Error(`session ${id} is unknown`);
    const undoRemovals = [...session.ephemeralPaths].map((path) => this.#set(path, undefined));
    this.#sessions.delete(id);
    return () => {
      this.#sessions.set(id, session);
      for (const undo of undoRemovals) undo();
    };
  }
}

/** The parent of a path; the empty path is the root. */
export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

/** The last name of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
