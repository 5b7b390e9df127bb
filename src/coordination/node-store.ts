/**
 * The inner port: ZooKeeper's semantics in the small. The coordination port is built once over it, and each backend
 * implements only this.
 *
 * N1 One call decides about one node, at once or not at all; there are no transactions.
 * N2 A node is at version 0 when it is created, and each write raises its version by exactly one.
 * N3 A call is answered only when its effect is as lasting as the node's kind promises, and readers see only such.
 * N4 A call that is under way when the connection goes may reject with COORDINATOR_UNAVAILABLE, and may then have taken
 *    effect. While the coordinator cannot be asked, calls reject at once: with that code, or one that says why.
 * N5 A watch says that something may have changed, and may say so too often. After a reconnect every watch is called.
 * N6 Missing parents are created silently and are no values: `read` of one gives undefined or an empty node.
 */
import { IsobarError } from '../base/index.js';
import type { StopWatching } from './coordination.js';

/**
 * Called when a watched node or one of its children was created, changed or removed. `children` names the children that
 * may have changed, none for the node alone; undefined: anything may have changed.
 */
export type OnNodeChange = (children?: readonly string[]) => void;

/** No node is larger (ZooKeeper's limit is 1 MiB with the path); larger values are cut into chunks above this port. */
const MAX_NODE_BYTES = 1_000_000;

/** As the expected version: whatever it is. */
export const ANY_VERSION = -1;

/**
 * How long a node lives. `durable`: until it is removed, and over a crash of the machine. `ephemeral`: while the session
 * that made it lives. `volatile`: until it is removed, or until the coordinator ends (a backend may keep it longer).
 */
export type NodeKind = 'durable' | 'ephemeral' | 'volatile';

export interface StoredNode {
  readonly data: Uint8Array;
  readonly version: number;
  /** Whose session an ephemeral node lives with. */
  readonly owner: 'nobody' | 'this-session' | 'another-session';
}

/**
 * `suspended`: the connection is gone, the session may still live. `expired`: the session and its ephemeral nodes are
 * gone, a `connected` with a new session follows. `connected`: calls are possible again.
 */
export type SessionEvent = 'suspended' | 'expired' | 'connected';

export interface NodeStore {
  /** @throws NODE_EXISTS, NODE_TOO_LARGE */
  create(path: string, data: Uint8Array, kind: NodeKind): Promise<void>;
  read(path: string): Promise<StoredNode | undefined>;
  /** Replaces the data if the node has `expectedVersion`; resolves to the new version. @throws NODE_MISSING, VERSION_CONFLICT */
  write(path: string, data: Uint8Array, expectedVersion: number): Promise<number>;
  /** Removes a node without children. @throws NODE_MISSING, VERSION_CONFLICT (also where it has children) */
  remove(path: string, expectedVersion: number): Promise<void>;
  /** Names of the children, in ascending order; none for a missing node. */
  children(path: string): Promise<readonly string[]>;
  /** A backend that is told only that something changed below `path` names no children, and readers read all of them. */
  watch(path: string, onChange: OnNodeChange): StopWatching;
  /** Calls `listener` at each change of the session after the first connection. */
  onSession(listener: (event: SessionEvent) => void): StopWatching;
  /** Ends the session; its ephemeral nodes go at once if the coordinator can be reached. */
  close(): Promise<void>;
}

/** @throws NODE_TOO_LARGE */
export function checkNodeSize(nodePath: string, bytes: Uint8Array): void {
  if (bytes.length <= MAX_NODE_BYTES) return;
  throw new IsobarError('NODE_TOO_LARGE', `the value for ${nodePath} does not fit into one node`, {
    expected: `at most ${MAX_NODE_BYTES} bytes`,
    found: `${bytes.length} bytes`,
    where: nodePath,
  });
}
