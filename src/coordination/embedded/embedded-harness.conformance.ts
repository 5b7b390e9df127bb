/** Test support: an embedded coordinator on a temporary directory, with a clock that is moved by hand. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger, VirtualClock, type ProcessIdentity } from '../../base/index.js';
import type { CoordinationClient, CoordinationHarness } from '../coordination.conformance.js';
import { type CuttableLink, openCuttableLink } from '../cuttable-link.conformance.js';

import { connectEmbeddedCoordination } from './client.js';
import {
  type EmbeddedCoordinator,
  type EmbeddedCoordinatorOptions,
  openEmbeddedCoordinator,
} from './server.js';

export const SESSION_TIMEOUT_MS = 3000;
const STEP_MS = 20;
/** Turns of the event loop in which a request goes through a link and its answer comes back. */
const TURNS_PER_STEP = 12;

interface EmbeddedClient extends CoordinationClient {
  readonly process: ProcessIdentity;
  /** As `kill -9`: the process is gone, and so is its connection. */
  kill(): void;
}

export interface EmbeddedHarness extends CoordinationHarness {
  readonly directory: string;
  readonly socketPath: string;
  readonly clock: VirtualClock;
  readonly server: EmbeddedCoordinator;
  connect(): Promise<EmbeddedClient>;
}

export type ServerOverrides = Partial<Omit<EmbeddedCoordinatorOptions, 'directory' | 'socketPath' | 'clock'>>;

export async function createEmbeddedHarness(overrides: ServerOverrides = {}): Promise<EmbeddedHarness> {
  const root = await mkdtemp(join(tmpdir(), 'isobar-coordinator-'));
  const directory = join(root, 'state');
  const socketPath = join(root, 'sockets', 'c');
  const clock = new VirtualClock();
  const livingPids = new Set<number>();
  const links: CuttableLink[] = [];
  const clients: EmbeddedClient[] = [];
  let nextClient = 1;
  const start = (): Promise<EmbeddedCoordinator> =>
    openEmbeddedCoordinator({
      directory,
      socketPath,
      clock,
      logger: silentLogger,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      isProcessAlive: (identity) => livingPids.has(identity.pid),
      ...overrides,
    });
  let server = await start();
  return {
    directory,
    socketPath,
    clock,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    get server() {
      return server;
    },
    async connect() {
      const number = nextClient++;
      const linkPath = join(root, `l${number}`);
      const link = await openCuttableLink(socketPath, linkPath);
      links.push(link);
      const process = { pid: 1_000_000 + number, startTime: String(number) };
      livingPids.add(process.pid);
      const coordination = await connectEmbeddedCoordination({
        socketPath: linkPath,
        process,
        clock,
        logger: silentLogger,
        sessionTimeoutMs: SESSION_TIMEOUT_MS,
      });
      const client: EmbeddedClient = {
        coordination,
        link,
        process,
        kill() {
          livingPids.delete(process.pid);
          link.isolate();
        },
      };
      clients.push(client);
      return client;
    },
    async pass(ms) {
      for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
        clock.advance(Math.min(STEP_MS, ms - passedMs));
        for (let count = 0; count < TURNS_PER_STEP; count++) await turn();
      }
    },
    stopCoordinator: () => server.close(),
    async startCoordinator() {
      server = await start();
    },
    changes: () => Promise.resolve(server.changeCount),
    async close() {
      for (const client of clients) await client.coordination.close();
      for (const link of links) await link.close();
      await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
