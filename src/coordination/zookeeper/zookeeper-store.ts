/**
 * The node store over ZooKeeper.
 *
 * A change whose connection went before it was answered may have been done. It is asked for again over the next
 * connection, which the ensemble puts behind whatever became of the first; where it is refused then, the node is read
 * and compared: what this call wanted to write, in the version that it would have made, was written by it. Only where
 * others have gone on from there nobody can tell, and the call rejects with COORDINATOR_UNAVAILABLE.
 */
import { IsobarError, type Clock, type Logger } from '../../base/index.js';
import type { StopWatching } from '../coordination.js';
import {
  checkNodeSize,
  type NodeKind,
  type NodeStore,
  type OnNodeChange,
  type SessionEvent,
  type StoredNode,
} from '../node-store.js';
import { formatZooKeeperAddress, type ZooKeeperAddress } from './address.js';
import { lookAtCluster, markerPath } from './cluster-marker.js';
import { readClusterMemory, writeClusterMemory } from './cluster-memory.js';
import type { DigestCredentials } from './credentials.js';
import { LastingWatches } from './lasting-watches.js';
import type { Acl } from './library-values.js';
import type { Answer, NodeEvent, Refusal, ServerConnection } from './server-connection.js';
import { type CheckResult, ZooKeeperSession } from './session.js';

export interface ZooKeeperStoreOptions {
  readonly address: ZooKeeperAddress;
  readonly credentials: DigestCredentials | null;
  readonly sessionTimeoutMs: number;
  /** Where a daemon remembers its cluster (see cluster-memory.ts); null: a worker, which never makes a cluster. */
  readonly memoryFile: string | null;
  /** The id of a cluster, should one be made. */
  readonly newCluster: string;
  /** Paths that are made with a cluster. */
  readonly parents: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** A refusal was answered for; the call goes on. */
const AGAIN = Symbol('again');
const MAX_PARENT_ATTEMPTS = 20;

export class ZooKeeperNodeStore implements NodeStore {
  readonly #options: ZooKeeperStoreOptions;
  readonly #where: string;
  readonly #acl: Acl;
  readonly #session: ZooKeeperSession;
  readonly #watches: LastingWatches;
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  #cluster: string | null = null;

  constructor(options: ZooKeeperStoreOptions) {
    this.#options = options;
    this.#where = formatZooKeeperAddress(options.address);
    this.#acl = options.credentials === null ? 'everybody' : 'creator';
    this.#watches = new LastingWatches(options.clock, options.logger);
    this.#session = new ZooKeeperSession({
      ...options,
      servers: options.address.servers,
      where: this.#where,
      check: (connection) => this.#check(connection),
      onNodeEvent: (event) => this.#onNodeEvent(event),
      onEvent: (event) => this.#onSession(event),
    });
  }

  /**
   * The first connection; called once.
   * @throws COORDINATOR_UNAVAILABLE, COORDINATOR_ACCESS_DENIED, COORDINATOR_DATA_FOREIGN, COORDINATOR_DATA_LOST,
   *   STATE_VERSION_UNKNOWN, STATE_DAMAGED, STATE_DIRECTORY_UNUSABLE
   */
  async connect(): Promise<void> {
    const { memoryFile, logger, sessionTimeoutMs } = this.#options;
    const memory = memoryFile === null ? null : readClusterMemory(memoryFile);
    this.#cluster = memory?.cluster ?? null;
    if (memory?.session != null) await this.#session.endFormer(memory.session);
    await this.#session.connect();
    const connection = this.#session.connection();
    this.#watches.connected(connection);
    logger.info('coordination.connected', {
      where: this.#where,
      cluster: this.#cluster,
      sessionTimeoutMs: connection.sessionTimeoutMs,
      ...(connection.sessionTimeoutMs === sessionTimeoutMs ? {} : { wantedTimeoutMs: sessionTimeoutMs }),
    });
    if (this.#acl === 'everybody' || (await connection.isOpenToAll(markerPath(this.#chroot))) === true) {
      logger.warn('coordination.open-to-all', { where: this.#where });
    }
  }

  async create(path: string, data: Uint8Array, kind: NodeKind): Promise<void> {
    checkNodeSize(path, data);
    const isEphemeral = kind === 'ephemeral';
    let parentAttempts = 0;
    await this.#untilKnown(
      path,
      (connection) => connection.create(this.#chroot + path, toBuffer(data), isEphemeral, this.#acl),
      async (refusal, isRepeated) => {
        if (refusal === 'no-node' && parentAttempts++ < MAX_PARENT_ATTEMPTS) return this.#createParents(path);
        if (refusal !== 'node-exists') throw this.#failure(refusal, path);
        const found = isRepeated ? await this.read(path) : null;
        if (found === undefined) return AGAIN;
        if (found !== null) {
          const isOwn = found.owner === (isEphemeral ? 'this-session' : 'nobody');
          if (isOwn && found.version === 0 && isSame(found.data, data)) return '';
          if (isOwn && found.version > 0) throw this.#unknown(path);
        }
        throw new IsobarError('NODE_EXISTS', `${path} exists`, {
          expected: 'no node',
          found: 'a node',
          where: path,
        });
      },
    );
  }

  async read(path: string): Promise<StoredNode | undefined> {
    const answer = await this.#session.connection().getData(this.#chroot + path);
    if (!answer.isDone) {
      if (answer.refusal === 'no-node') return undefined;
      throw this.#failure(answer.refusal, path);
    }
    const { data, stat } = answer.value;
    return { data, version: stat.version, owner: this.#ownerOf(stat.ephemeralOwner) };
  }

  write(path: string, data: Uint8Array, expectedVersion: number): Promise<number> {
    checkNodeSize(path, data);
    return this.#untilKnown(
      path,
      async (connection) => {
        const answer = await connection.setData(this.#chroot + path, toBuffer(data), expectedVersion);
        return answer.isDone ? { isDone: true, value: answer.value.version } : answer;
      },
      async (refusal, isRepeated) => {
        if (refusal === 'no-node') throw missing(path);
        if (refusal !== 'bad-version') throw this.#failure(refusal, path);
        if (isRepeated) {
          const found = await this.read(path);
          if (found === undefined) throw missing(path);
          const next = expectedVersion + 1;
          if (found.version === next && isSame(found.data, data)) return next;
          if (found.version > next) throw this.#unknown(path);
        }
        throw conflict(path, `version ${expectedVersion}`, 'another version');
      },
    );
  }

  async remove(path: string, expectedVersion: number): Promise<void> {
    await this.#untilKnown<undefined>(
      path,
      (connection) => connection.remove(this.#chroot + path, expectedVersion),
      async (refusal, isRepeated) => {
        if (refusal === 'no-node' && isRepeated) return undefined;
        if (refusal === 'no-node') throw missing(path);
        if (refusal === 'bad-version') throw conflict(path, `version ${expectedVersion}`, 'another version');
        if (refusal === 'not-empty') throw conflict(path, 'a node without children', 'children');
        throw this.#failure(refusal, path);
      },
    );
  }

  async children(path: string): Promise<readonly string[]> {
    const answer = await this.#session.connection().getChildren(this.#chroot + path);
    if (answer.isDone) return [...answer.value].sort();
    if (answer.refusal === 'no-node') return [];
    throw this.#failure(answer.refusal, path);
  }

  watch(path: string, onChange: OnNodeChange): StopWatching {
    return this.#watches.watch(this.#chroot + path, onChange);
  }

  onSession(listener: (event: SessionEvent) => void): StopWatching {
    const registered = (event: SessionEvent): void => listener(event);
    this.#listeners.add(registered);
    return () => {
      this.#listeners.delete(registered);
    };
  }

  async close(): Promise<void> {
    this.#watches.close();
    this.#listeners.clear();
    await this.#session.close();
  }

  get #chroot(): string {
    return this.#options.address.chroot;
  }

  /** Asks until an answer has come or the call's time is up: that of a session. */
  async #untilKnown<T>(
    path: string,
    ask: (connection: ServerConnection) => Promise<Answer<T>>,
    onRefusal: (refusal: Refusal, isRepeated: boolean) => Promise<T | typeof AGAIN>,
  ): Promise<T> {
    const { clock } = this.#options;
    let connection = this.#session.connection();
    const deadlineMs = clock.nowMs() + connection.sessionTimeoutMs;
    let isRepeated = false;
    for (;;) {
      const answer = await ask(connection);
      if (answer.isDone) return answer.value;
      if (clock.nowMs() >= deadlineMs) throw this.#unknown(path);
      if (answer.refusal === 'lost') {
        isRepeated = true;
        connection = await this.#session.nextConnection(deadlineMs);
        continue;
      }
      const outcome = await onRefusal(answer.refusal, isRepeated);
      if (outcome !== AGAIN) return outcome;
    }
  }

  /** Never the chroot itself: where that is missing, the data are gone. */
  async #createParents(path: string): Promise<typeof AGAIN> {
    const names = path.slice(1).split('/').slice(0, -1);
    for (let count = 1; count <= names.length; count++) {
      const parent = `/${names.slice(0, count).join('/')}`;
      const connection = this.#session.connection();
      const answer = await connection.create(this.#chroot + parent, Buffer.alloc(0), false, this.#acl);
      if (answer.isDone || answer.refusal === 'node-exists') continue;
      if (answer.refusal === 'lost') return AGAIN;
      if (answer.refusal === 'no-node' && count === 1) this.#session.recheck();
      throw this.#failure(answer.refusal, parent);
    }
    return AGAIN;
  }

  async #check(connection: ServerConnection): Promise<CheckResult> {
    const { memoryFile, address, newCluster, parents, logger } = this.#options;
    const look = await lookAtCluster(connection, {
      chroot: address.chroot,
      acl: this.#acl,
      where: this.#where,
      cluster: this.#cluster,
      newCluster: memoryFile === null ? null : newCluster,
      parents,
    });
    if (look === 'lost' || look instanceof IsobarError) return look;
    const isFirst = this.#cluster === null;
    this.#cluster = look.cluster;
    if (memoryFile === null) return 'right';
    try {
      writeClusterMemory(memoryFile, { cluster: look.cluster, session: connection.session });
    } catch (error) {
      // Without its first record a daemon would take an empty place for a new cluster after a restart.
      if (isFirst && error instanceof IsobarError) return error;
      logger.warn('coordination.memory-not-written', { file: memoryFile, error: String(error) });
    }
    return 'right';
  }

  #onNodeEvent(event: NodeEvent): void {
    if (event.path === markerPath(this.#chroot)) this.#session.recheck();
    else this.#watches.onNodeEvent(event);
  }

  #onSession(event: SessionEvent): void {
    if (event === 'suspended') this.#watches.disconnected();
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        this.#options.logger.error('coordination.callback-failed', { error: String(error) });
      }
    }
    if (event === 'connected') this.#watches.connected(this.#session.connection());
  }

  #ownerOf(ephemeralOwner: Buffer): StoredNode['owner'] {
    if (ephemeralOwner.every((byte) => byte === 0)) return 'nobody';
    return this.#session.isOfThisSession(ephemeralOwner) ? 'this-session' : 'another-session';
  }

  #unknown(path: string): IsobarError {
    return this.#session.unavailable(`a change of ${path} may or may not have been done`);
  }

  #failure(refusal: Refusal, path: string): IsobarError {
    if (refusal === 'no-auth') {
      return new IsobarError(
        'COORDINATOR_ACCESS_DENIED',
        `the coordinator at ${this.#where} refuses access to ${path}`,
        { expected: 'credentials that may read and write there', found: 'a refusal', where: path },
      );
    }
    if (refusal === 'lost') return this.#session.unavailable('the connection was lost');
    return this.#session.unavailable(
      `${typeof refusal === 'object' ? `error ${refusal.code}` : refusal} at ${path}`,
    );
  }
}

function toBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return toBuffer(one).equals(toBuffer(other));
}

function missing(path: string): IsobarError {
  return new IsobarError('NODE_MISSING', `${path} does not exist`, {
    expected: 'a node',
    found: 'none',
    where: path,
  });
}

function conflict(path: string, expected: string, found: string): IsobarError {
  return new IsobarError('VERSION_CONFLICT', `${path} has changed`, { expected, found, where: path });
}
