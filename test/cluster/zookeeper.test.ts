/**
 * A cluster of `isobar dev` over a real ensemble of three ZooKeeper servers, whose nodes are for its credentials alone: what its topology and
 * its commands notice when servers are killed and when a daemon's session ends; and addresses that cannot be used.
 */
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { accountForLives, accountForRows, highestNumber } from '../../faults/move-accounts.js';
import { ERROR_TABLE, type ErrorCode } from '../../src/base/index.js';
import {
  startEnsemble,
  type TestZooKeeperServer,
  zooKeeperMissing,
} from '../../src/coordination/zookeeper/zookeeper-servers.conformance.js';
import { ROOT, until, Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const APP = join(ROOT, 'faults/moving-app.ts');
const NAME = 'movers';
const SESSION_TIMEOUT_MS = 4000;
/** Longer than a session, shorter than the grace of a machine. */
const AWAY_MS = SESSION_TIMEOUT_MS * 1.5;
/** More than the source reads on behind the highest number that a sink has written. */
const READ_AHEAD = 20_000;
const MAX_PENDING = 'topology.max-spout-pending=500';
const SETTINGS = [`coordinator.session-timeout=${SESSION_TIMEOUT_MS}ms`, 'supervisor.gone-grace=20s'];

const missing = await zooKeeperMissing();

describe.skipIf(missing !== undefined)(
  `isobar dev over ZooKeeper${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let root: string;
    let servers: readonly TestZooKeeperServer[] = [];
    let workshop: Workshop;
    let nextChroot = 1;

    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), 'isobar-dev-zookeeper-'));
      servers = await startEnsemble(root, 3);
    });
    afterAll(async () => {
      await Promise.all(servers.map((server) => server.stop()));
      rmSync(root, { recursive: true, force: true });
    });
    beforeEach(() => {
      workshop = new Workshop();
      nextChroot++;
    });
    afterEach(() => workshop.close());

    const address = (chroot = `/c${nextChroot}`): string =>
      `zookeeper://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}${chroot}`;

    function credentials(text: string): string {
      const file = workshop.write(`credentials-${text.length}`, text);
      chmodSync(file, 0o600);
      return `coordinator.credentials-file=${file}`;
    }

    function set(settings: readonly string[]): string[] {
      return settings.flatMap((setting) => ['--set', setting]);
    }

    async function leader(): Promise<TestZooKeeperServer> {
      for (const server of servers) if ((await server.mode()) === 'leader') return server;
      throw new Error('the ensemble has no leader');
    }

    it('keeps every row in order, and every task where it is, while servers and sessions go and come back', async () => {
      const cluster = new DevCluster(workshop);
      const sinks = join(workshop.directory, 'sinks');
      mkdirSync(sinks);
      vi.stubEnv('FAULTS_DIRECTORY', sinks);
      const settings = [...SETTINGS, credentials('operator:three of them\n')];
      await cluster.ask('--supervisors', '3', '--coordinator', address(), ...set(settings));
      await cluster.submit(APP, '--workers', '3', '--set', MAX_PENDING);
      const pids = await cluster.untilRunning(NAME);
      await cluster.untilRowsFlow(NAME);
      const untilReady = async (): Promise<void> => {
        await cluster.untilStatus('ready', ({ state }) => state === 'ready');
        await cluster.untilRowsFlow(NAME);
      };
      /** Rows need no coordinator. */
      const awayWhileRowsFlow = async (): Promise<void> => {
        const before = highestNumber(sinks);
        await pause(AWAY_MS);
        expect(highestNumber(sinks)).toBeGreaterThan(before);
      };

      const killed = await leader();
      await killed.stop();
      await awayWhileRowsFlow();
      await untilReady();
      killed.start();
      await killed.ready();

      const [, second, third] = servers;
      await Promise.all([second!.stop(), third!.stop()]);
      await awayWhileRowsFlow();
      const words = ['rebalance', NAME, '-n', '1', '--directory', cluster.directory];
      const refused = await workshop.run(words);
      expect(refused.stderr).toContain('COORDINATOR_UNAVAILABLE');
      expect(refused.code).toBe(4);
      for (const server of [second!, third!]) server.start();
      await Promise.all(servers.map((server) => server.ready()));
      await untilReady();

      for (const daemon of ['nimbus', 'supervisor-s2']) {
        const pid = await cluster.pidOf(daemon);
        process.kill(pid, 'SIGSTOP');
        await awayWhileRowsFlow();
        process.kill(pid, 'SIGCONT');
        await untilReady();
      }

      expect(await cluster.untilRunning(NAME)).toEqual(pids);
      const rows = highestNumber(sinks) + READ_AHEAD;
      writeFileSync(join(sinks, 'end.new'), String(rows));
      renameSync(join(sinks, 'end.new'), join(sinks, 'end'));
      await cluster.untilTopology('its end', NAME, ({ phase }) => phase.kind === 'finished');
      expect(accountForRows(sinks, rows, [0, 0])).toMatchObject({
        lost: 0,
        duplicates: 0,
        outOfOrder: 0,
        resets: 0,
      });
      expect(accountForLives(sinks)).toMatchObject({ moves: 0, aliveTwice: 0 });
      await cluster.ask('stop');
      await cluster.untilNothingRuns();
    });

    async function expectRefusal(
      code: ErrorCode,
      says: RegExp,
      coordinator: string,
      ...settings: string[]
    ): Promise<void> {
      const cluster = new DevCluster(workshop, `refused-${code}`);
      const exitCode = code === 'COORDINATOR_ADDRESS_INVALID' ? 2 : 1;
      const startedMs = performance.now();
      const ended = await cluster.dev('--coordinator', coordinator, ...set([...SETTINGS, ...settings]));
      expect(ended.stderr).toContain(`${code}: `);
      expect(ended.stderr).toMatch(says);
      expect(ended.stderr).toContain(ERROR_TABLE[code].action);
      expect(ended.stderr).not.toContain('secret');
      expect(ended.code).toBe(exitCode);
      expect(performance.now() - startedMs).toBeLessThan(30_000);
      await cluster.untilNothingRuns();
    }

    it.each([
      'zookeeper://',
      'zookeeper://127.0.0.1:99999/isobar',
      'zookeeper://u:secret@127.0.0.1:2181/isobar',
      'zookeeper://127.0.0.1:2181/zookeeper',
      'zookeper://127.0.0.1:2181/isobar',
      'http://127.0.0.1:2181',
    ])('does not start over %s', async (wrong) => {
      await expectRefusal('COORDINATOR_ADDRESS_INVALID', /is no address of a coordinator/, wrong);
    });

    it('does not start where nobody listens, nobody answers, or something else does', async () => {
      await expectRefusal('COORDINATOR_UNAVAILABLE', /127\.0\.0\.1:1\b/, 'zookeeper://127.0.0.1:1/isobar');
      const silent = createServer(() => undefined).listen(0, '127.0.0.1');
      const other = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      }).listen(0, '127.0.0.1');
      await until('both listen', () => silent.listening && other.listening);
      const at = (server: typeof silent): string => {
        const found = server.address();
        return `127.0.0.1:${typeof found === 'object' ? (found?.port ?? 0) : 0}`;
      };
      await expectRefusal('COORDINATOR_UNAVAILABLE', /127\.0\.0\.1/, `zookeeper://${at(silent)}/isobar`);
      await expectRefusal(
        'COORDINATOR_UNAVAILABLE',
        /no ZooKeeper server/,
        `zookeeper://${at(other)}/isobar`,
      );
      silent.close();
      other.close();
    });

    it("does not start where the nodes are for other credentials, or somebody else's", async () => {
      const cluster = new DevCluster(workshop);
      const owner = credentials('owner:secret\n');
      await cluster.ask('--coordinator', address(), ...set([...SETTINGS, owner]));
      await cluster.ask('stop');
      const denied = 'COORDINATOR_ACCESS_DENIED';
      await expectRefusal(denied, /refuses access/, address());
      await expectRefusal(denied, /refuses access/, address(), credentials('stranger:secret\n'));
      await expectRefusal(
        'COORDINATOR_CREDENTIALS_INVALID',
        /user:password/,
        address(),
        credentials('secret'),
      );
      const below = new DevCluster(workshop, 'below');
      await below.ask('--coordinator', address('/others/inner'), ...set(SETTINGS));
      await below.ask('stop');
      await expectRefusal('COORDINATOR_DATA_FOREIGN', /nodes inner, and no marker/, address('/others'));
    });
  },
);
