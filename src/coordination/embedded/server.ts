/**
 * The embedded coordinator: durable on disk, served to the processes of this machine over a Unix socket. Wires the
 * directory lock, the log, the tree, the queue and the sessions together; each client connection is one session.
 */
import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import {
  type Channel,
  type ChannelServer,
  checkSocketPath,
  type Clock,
  IsobarError,
  lockDirectory,
  type Logger,
  serveChannels,
  Shutdown,
  isSameProcessAlive,
  processIdentity,
  type ProcessIdentity,
} from '../../base/index.js';
import { CommitLog, directoryUnusable } from './commit-log.js';
import { CommitQueue, type Decision } from './commit-queue.js';
import { NodeOperations } from './node-operations.js';
import { NodeTree } from './node-tree.js';
import {
  isRequestMethod,
  type OpenAnswer,
  parseMessage,
  REQUEST_SCHEMAS,
  type RequestBody,
  type RequestMethod,
  watchSchema,
} from './protocol.js';
import { type EndReason, SessionMonitor } from './session-monitor.js';
import { nodeStateFiles, type StateFiles } from './state-files.js';
import { WatchRegister } from './watch-register.js';

export interface EmbeddedCoordinatorOptions {
  /** Owned by one coordinator at a time; created if missing. */
  readonly directory: string;
  /** At most 107 bytes; its directory is made private (0700). */
  readonly socketPath: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The longest time-out that a session can have, ms. */
  readonly sessionTimeoutMs: number;
  /** Default: asks the kernel. */
  readonly isProcessAlive?: (identity: ProcessIdentity) => boolean;
  /** Default: the machine's file system. */
  readonly files?: StateFiles;
  /** Growth of the log in bytes before it is compacted, at least; default 8 MiB. */
  readonly compactionBytes?: number;
}

export interface EmbeddedCoordinator {
  readonly socketPath: string;
  readonly sessionCount: number;
  readonly nodeCount: number;
  /** Grows by one with each node that is created, written or removed: what a load is measured by. */
  readonly changeCount: number;
  /** Bytes of all values that were written, removals not counted. */
  readonly changedBytes: number;
  /** Size of the log file. */
  readonly logBytes: number;
  /** Answers what has arrived, then stops. Sessions go on at the next start. Calling it twice is harmless. */
  close(): Promise<void>;
}

/**
 * Starts a coordinator on a directory.
 * @throws STATE_DIRECTORY_OWNED, STATE_DIRECTORY_UNUSABLE, STATE_DAMAGED, STATE_VERSION_UNKNOWN, SOCKET_PATH_TOO_LONG
 */
export async function openEmbeddedCoordinator(
  options: EmbeddedCoordinatorOptions,
): Promise<EmbeddedCoordinator> {
  checkSocketPath(options.socketPath);
  const { directory, logger } = options;
  const files = options.files ?? nodeStateFiles;
  const shutdown = new Shutdown();
  try {
    try {
      await files.makeDirectory(directory);
    } catch (error) {
      throw directoryUnusable(directory, 'create', error);
    }
    const own = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
    const lock = lockDirectory(directory, own, isSameProcessAlive);
    shutdown.add('directory lock', () => lock.release());
    const tree = new NodeTree();
    const log = await CommitLog.open(
      {
        directory,
        files,
        logger,
        ...(options.compactionBytes === undefined ? {} : { compactionBytes: options.compactionBytes }),
      },
      (change) => tree.apply(change),
    );
    shutdown.add('commit log', () => log.close());
    const server = new CoordinatorServer(options, tree, log);
    shutdown.add('coordinator server', () => server.close());
    await server.listen();
    logger.info('coordinator.opened', {
      directory,
      socketPath: options.socketPath,
      nodes: tree.nodeCount,
      sessions: tree.sessions.size,
    });
    return {
      socketPath: options.socketPath,
      get sessionCount() {
        return tree.sessions.size;
      },
      get nodeCount() {
        return tree.nodeCount;
      },
      get changeCount() {
        return tree.changeCount;
      },
      get changedBytes() {
        return tree.changedBytes;
      },
      get logBytes() {
        return log.bytes;
      },
      close: () => shutdown.close(),
    };
  } catch (error) {
    await shutdown.close().catch((failure: unknown) => {
      logger.warn('coordinator.close-failed', { error: String(failure) });
    });
    throw error;
  }
}

/** Period at which silent sessions are looked for. */
const LONGEST_SWEEP_MS = 2000;

class CoordinatorServer {
  readonly #options: EmbeddedCoordinatorOptions;
  readonly #tree: NodeTree;
  readonly #queue: CommitQueue;
  readonly #operations: NodeOperations;
  readonly #sessions: SessionMonitor<Channel>;
  readonly #watches = new WatchRegister();
  readonly #sessionOfChannel = new Map<Channel, string>();
  #listener: ChannelServer | undefined;
  #isClosing = false;

  constructor(options: EmbeddedCoordinatorOptions, tree: NodeTree, log: CommitLog) {
    this.#options = options;
    this.#tree = tree;
    this.#operations = new NodeOperations(tree);
    this.#queue = new CommitQueue({
      tree,
      log,
      logger: options.logger,
      onChanged: (paths) => this.#watches.tell(paths),
    });
    this.#sessions = new SessionMonitor({
      clock: options.clock,
      isProcessAlive: options.isProcessAlive ?? isSameProcessAlive,
      onEnd: (session) => void this.#endSession(session),
      sweepMs: Math.min(LONGEST_SWEEP_MS, Math.max(10, options.sessionTimeoutMs / 8)),
    });
  }

  async listen(): Promise<void> {
    const { socketPath } = this.#options;
    // Before the first client: one that came back must not be taken for away.
    for (const session of this.#tree.sessions.values()) this.#sessions.restore(session);
    try {
      this.#listener = await serveChannels(
        socketPath,
        () => ({
          onRequest: (method, body, channel) => this.#onRequest(method, body, channel),
          onEvent: (name, body, channel) => this.#onEvent(name, body, channel),
          onClose: (channel) => this.#onClose(channel),
        }),
        this.#options.logger,
      );
    } catch (error) {
      throw error instanceof IsobarError ? error : directoryUnusable(dirname(socketPath), 'serve', error);
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#sessions.stop();
    await this.#queue.drain();
    await this.#listener?.close();
    await this.#queue.drain();
  }

  async #onRequest(method: string, body: unknown, channel: Channel): Promise<unknown> {
    if (this.#isClosing) throw new IsobarError('COORDINATOR_UNAVAILABLE', 'the coordinator is closing');
    if (!isRequestMethod(method)) {
      throw new IsobarError('PEER_PROTOCOL_ERROR', 'the coordinator does not know this request', {
        expected: Object.keys(REQUEST_SCHEMAS).join(', '),
        found: method.slice(0, 100),
        where: 'coordinator protocol',
      });
    }
    if (method === 'open') return this.#open(parseMessage(REQUEST_SCHEMAS.open, method, body), channel);
    const session = this.#sessionOfChannel.get(channel);
    if (session === undefined) {
      throw new IsobarError('SESSION_EXPIRED', `"${method}" came without a session`, {
        expected: 'a session that was opened on this connection and lives',
        found: 'none',
        where: this.#options.socketPath,
      });
    }
    this.#sessions.touch(session);
    switch (method) {
      case 'ping':
        return null;
      case 'create':
        return this.#decide(method, body, (request) => this.#operations.create(request, session));
      case 'read':
        return this.#decide(method, body, (request) => this.#operations.read(request, session));
      case 'write':
        return this.#decide(method, body, (request) => this.#operations.write(request));
      case 'remove':
        return this.#decide(method, body, (request) => this.#operations.remove(request));
      case 'children':
        return this.#decide(method, body, (request) => this.#operations.children(request));
      case 'close':
        await this.#endSession(session, 'closed by its client');
        return null;
    }
  }

  #decide<M extends RequestMethod>(
    method: M,
    body: unknown,
    decide: (request: RequestBody<M>) => Decision<unknown>,
  ): Promise<unknown> {
    // The schema of M is the one that RequestBody<M> is inferred from.
    const request = parseMessage(REQUEST_SCHEMAS[method], method, body) as RequestBody<M>;
    return this.#queue.run(() => decide(request));
  }

  async #open(request: RequestBody<'open'>, channel: Channel): Promise<OpenAnswer> {
    if (this.#sessionOfChannel.has(channel)) {
      throw new IsobarError('PEER_PROTOCOL_ERROR', 'a connection opened a second session', {
        expected: 'one "open" for each connection',
        found: 'another one',
        where: 'coordinator protocol',
      });
    }
    const { logger } = this.#options;
    const timeoutMs = Math.min(request.timeoutMs, this.#options.sessionTimeoutMs);
    const fresh = randomUUID();
    const session = await this.#queue.run<string>(
      () => {
        if (request.session !== null && this.#tree.sessions.has(request.session)) {
          // Keeps a session that is about to end from ending between this decision and the answer.
          this.#sessions.touch(request.session);
          return { result: request.session };
        }
        const { pid, startTime } = request.process;
        return { result: fresh, change: { kind: 'open-session', session: fresh, timeoutMs, pid, startTime } };
      },
      { evenUnlogged: true },
    );
    const record = this.#tree.sessions.get(session);
    if (record === undefined)
      throw new IsobarError('SESSION_EXPIRED', 'the session ended while it was resumed');
    this.#sessionOfChannel.set(channel, session);
    const replaced = this.#sessions.attach(record, channel);
    if (replaced !== undefined) this.#dropChannel(replaced);
    if (channel.isClosed) this.#onClose(channel);
    else for (const path of request.watches) this.#watches.add(path, channel);
    logger.debug(session === fresh ? 'coordinator.session-opened' : 'coordinator.session-resumed', {
      session,
      pid: request.process.pid,
    });
    return { session, timeoutMs: record.timeoutMs };
  }

  /** An event has no answer: the sender of a bad one learns of it by the end of the connection. */
  #onEvent(name: string, body: unknown, channel: Channel): void {
    if (name !== 'watch' && name !== 'unwatch') {
      throw new IsobarError('PEER_PROTOCOL_ERROR', 'the coordinator does not know this event', {
        expected: 'watch, unwatch',
        found: name.slice(0, 100),
        where: 'coordinator protocol',
      });
    }
    const path = parseMessage(watchSchema, name, body);
    if (name === 'watch') this.#watches.add(path, channel);
    else this.#watches.remove(path, channel);
  }

  #onClose(channel: Channel): void {
    this.#watches.removeAll(channel);
    const session = this.#sessionOfChannel.get(channel);
    this.#sessionOfChannel.delete(channel);
    if (session !== undefined) this.#sessions.detach(session, channel);
  }

  /** Ends a session for the reason given, or for the one that the monitor finds when its turn comes. */
  async #endSession(session: string, because?: 'closed by its client'): Promise<void> {
    const reason = await this.#queue.run<EndReason | 'closed by its client' | undefined>(
      () => {
        const current = because ?? this.#sessions.reasonToEnd(session);
        if (current === undefined || !this.#tree.sessions.has(session)) return { result: undefined };
        return { result: current, change: { kind: 'end-session', session } };
      },
      { evenUnlogged: true },
    );
    if (reason === undefined) return;
    this.#options.logger.info('coordinator.session-ended', { session, reason });
    const channel = this.#sessions.forget(session);
    if (channel !== undefined && because === undefined) this.#dropChannel(channel);
    else if (channel !== undefined) this.#sessionOfChannel.delete(channel);
  }

  #dropChannel(channel: Channel): void {
    this.#sessionOfChannel.delete(channel);
    this.#watches.removeAll(channel);
    channel.close();
  }
}
