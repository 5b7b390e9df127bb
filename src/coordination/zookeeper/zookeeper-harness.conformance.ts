/** Test support: clients of one real ZooKeeper server, each over a link of its own, each test at a chroot of its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLogger, systemClock, type Logger } from '../../base/index.js';
import { connectCoordination } from '../connect.js';
import type { CoordinationClient, CoordinationHarness } from '../coordination.conformance.js';
import { type CuttableLink, openCuttableLink } from '../cuttable-link.conformance.js';
import { openServerConnection, type ServerConnection } from './server-connection.js';
import { startZooKeeper, type TestZooKeeperServer } from './zookeeper-servers.conformance.js';

export const SESSION_TIMEOUT_MS = 4000;

export interface ZooKeeperClient extends CoordinationClient {
  readonly link: CuttableLink;
  readonly directory: string;
}

export interface ClientOptions {
  /** A daemon's directory; default: a new one; null: a worker, which has none. */
  readonly directory?: string | null;
  readonly credentialsFile?: string;
  /** Default: the harness's chroot. */
  readonly place?: string;
  readonly logger?: Logger;
}

export interface ZooKeeperHarness extends CoordinationHarness {
  readonly server: TestZooKeeperServer;
  readonly chroot: string;
  readonly root: string;
  connect(options?: ClientOptions): Promise<ZooKeeperClient>;
  /** Lends a connection that knows nothing of Isobar, without credentials. */
  admin(use: (connection: ServerConnection) => Promise<unknown>): Promise<void>;
}

/** The server of a test file: started by the first test, stopped by {@link stopSharedServer}. */
let shared: { readonly server: TestZooKeeperServer; readonly root: string } | undefined;
let nextChroot = 1;

export async function createZooKeeperHarness(): Promise<ZooKeeperHarness> {
  if (shared === undefined) {
    const root = mkdtempSync(join(tmpdir(), 'isobar-zookeeper-'));
    shared = { root, server: await startZooKeeper(root) };
  }
  const { server } = shared;
  const chroot = `/tests/t${nextChroot++}`;
  const root = mkdtempSync(join(shared.root, 'test-'));
  const clients: ZooKeeperClient[] = [];
  let isStopped = false;
  const harness: ZooKeeperHarness = {
    server,
    chroot,
    root,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    async connect({
      directory = mkdtempSync(join(root, 'daemon-')),
      credentialsFile,
      logger,
      place = chroot,
    } = {}) {
      const link = await openCuttableLink(server.port);
      const coordination = await connectCoordination({
        address: `zookeeper://127.0.0.1:${link.port}${place}`,
        process: { pid: process.pid, startTime: '' },
        ...(directory === null ? {} : { directory }),
        settings: {
          'coordinator.session-timeout': SESSION_TIMEOUT_MS,
          ...(credentialsFile === undefined ? {} : { 'coordinator.credentials-file': credentialsFile }),
        },
        clock: systemClock,
        logger: logger ?? silentLogger,
      }).catch(async (error: unknown) => {
        await link.close();
        throw error;
      });
      const client = { coordination, link, directory: directory ?? '' };
      clients.push(client);
      return client;
    },
    async admin(use) {
      const outcome = await openServerConnection({
        server: { host: '127.0.0.1', port: server.port },
        ticket: null,
        lastSeen: Buffer.alloc(8),
        sessionTimeoutMs: SESSION_TIMEOUT_MS,
        openTimeoutMs: SESSION_TIMEOUT_MS,
        credentials: null,
        clock: systemClock,
        onNodeEvent: () => {},
        onClosed: () => {},
      });
      if (outcome.kind !== 'open') throw new Error(`no connection for an administrator: ${outcome.kind}`);
      await use(outcome.connection);
      await outcome.connection.close();
    },
    async pass(ms) {
      await sleep(ms);
    },
    async stopCoordinator() {
      isStopped = true;
      await server.stop();
    },
    async startCoordinator() {
      server.start();
      await server.ready();
      isStopped = false;
    },
    changes: () => server.changes(),
    async close() {
      await Promise.all(clients.map((client) => client.coordination.close()));
      await Promise.all(clients.map((client) => client.link.close()));
      rmSync(root, { recursive: true, force: true });
      if (isStopped) await harness.startCoordinator();
    },
  };
  return harness;
}

export async function stopSharedServer(): Promise<void> {
  await shared?.server.stop();
  if (shared !== undefined) rmSync(shared.root, { recursive: true, force: true });
  shared = undefined;
}
