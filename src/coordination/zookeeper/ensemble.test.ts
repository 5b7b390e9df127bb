/** An ensemble of three: what its clients notice when servers are killed, stopped and cut off from one another. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { hasCode, silentLogger, systemClock } from '../../base/index.js';
import { connectCoordination } from '../connect.js';
import type { Coordination } from '../coordination.js';
import { assignment, supervisor, topology } from '../coordination.conformance.js';
import {
  startEnsemble,
  type TestZooKeeperServer,
  zooKeeperMissing,
} from './zookeeper-servers.conformance.js';

const SESSION_TIMEOUT_MS = 6000;
const missing = await zooKeeperMissing();

describe.skipIf(missing !== undefined)(
  `an ensemble of three ZooKeeper servers${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let root: string;
    let servers: readonly TestZooKeeperServer[] = [];
    let nextChroot = 1;
    let chroot: string;
    const clients: Coordination[] = [];

    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), 'isobar-ensemble-'));
      servers = await startEnsemble(root, 3);
    });
    afterAll(async () => {
      await Promise.all(servers.map((server) => server.stop()));
      rmSync(root, { recursive: true, force: true });
    });
    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.close()));
      nextChroot++;
    });

    async function connect(only?: TestZooKeeperServer): Promise<Coordination> {
      chroot = `/c${nextChroot}`;
      const named = only === undefined ? servers : [only];
      const client = await connectCoordination({
        address: `zookeeper://${named.map(({ port }) => `127.0.0.1:${port}`).join(',')}${chroot}`,
        process: { pid: process.pid, startTime: '' },
        directory: mkdtempSync(join(root, 'daemon-')),
        settings: { 'coordinator.session-timeout': SESSION_TIMEOUT_MS },
        clock: systemClock,
        logger: silentLogger,
      });
      clients.push(client);
      return client;
    }

    async function eventually(condition: () => Promise<boolean> | boolean): Promise<void> {
      await vi.waitFor(
        async () => {
          expect(await condition()).toBe(true);
        },
        { timeout: 40_000, interval: 20 },
      );
    }

    /** The first answer: servers that have just come back may drop a connection once more while they settle. */
    async function answerOf<T>(ask: () => Promise<T>): Promise<T> {
      const answers: T[] = [];
      await eventually(async () => {
        try {
          answers.push(await ask());
          return true;
        } catch (error) {
          if (hasCode(error, 'COORDINATOR_UNAVAILABLE')) return false;
          throw error;
        }
      });
      return answers[0]!;
    }

    async function leader(): Promise<TestZooKeeperServer> {
      for (const server of servers) if ((await server.mode()) === 'leader') return server;
      throw new Error('the ensemble has no leader');
    }

    it('shows a client of one server what a client of another has written', async () => {
      const [one, other] = [await connect(servers[0]), await connect(servers[2])];
      await one.createTopology(topology('t'));
      await one.writeAssignment(assignment('t', 1, 50_000));
      await eventually(async () => (await other.readAssignment('t')) !== undefined);
      expect(await other.readAssignment('t')).toEqual(assignment('t', 1, 50_000));
      expect(await other.nextGeneration('t')).toBe(1);
      expect(await one.tryLead('n1')).toBe(true);
      expect(await other.tryLead('n2')).toBe(false);
    });

    it('keeps sessions, watches and all that was acknowledged when its leader is killed', async () => {
      const [daemon, other] = [await connect(), await connect()];
      await daemon.announceSupervisor(supervisor('s1'));
      expect(await daemon.tryLead('n1')).toBe(true);
      let seen = 0;
      const look = async (): Promise<void> => {
        try {
          seen = (await other.listTopologies()).length;
        } catch (error) {
          if (!hasCode(error, 'COORDINATOR_UNAVAILABLE')) throw error;
        }
      };
      other.watchTopologies(() => void look());
      const acknowledged: string[] = [];
      let isWriting = true;
      const write = async (): Promise<void> => {
        for (let index = 0; isWriting; index++) {
          const id = `t${index}`;
          try {
            await daemon.createTopology(topology(id));
            acknowledged.push(id);
          } catch (error) {
            if (!hasCode(error, 'COORDINATOR_UNAVAILABLE')) throw error;
          }
          await sleep(5);
        }
      };
      const writing = write();
      await eventually(() => acknowledged.length > 20);
      const killed = await leader();
      await killed.stop();
      const before = acknowledged.length;
      await eventually(() => acknowledged.length > before + 20);
      isWriting = false;
      await writing;
      killed.start();
      await killed.ready();
      const stored = (await answerOf(() => daemon.listTopologies())).map(({ value }) => value.id);
      expect(stored).toEqual(expect.arrayContaining(acknowledged));
      await eventually(() => seen === stored.length);
      await eventually(() => daemon.tryLead('n1'));
      expect(await answerOf(() => other.tryLead('n2'))).toBe(false);
      await eventually(async () => (await other.listSupervisors()).length === 1);
    });

    it('cannot be asked while its majority is lost, and goes on with every session when it is back', async () => {
      const [daemon, other] = [await connect(), await connect()];
      await daemon.announceSupervisor(supervisor('s1'));
      await daemon.createTopology(topology('t'));
      expect(await daemon.tryLead('n1')).toBe(true);
      const back = vi.fn();
      daemon.onReconnect(back);
      const [, second, third] = servers;
      await Promise.all([second!.stop(), third!.stop()]);
      await eventually(async () => {
        try {
          await daemon.updateTopology({ ...topology('t'), name: 'while away' }, 0);
          return false;
        } catch (error) {
          return hasCode(error, 'COORDINATOR_UNAVAILABLE');
        }
      });
      // Longer than a session: nobody is there to end one.
      await sleep(SESSION_TIMEOUT_MS * 1.5);
      await expect(other.tryLead('n2')).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
      for (const server of [second!, third!]) server.start();
      await eventually(() => back.mock.calls.length > 0);
      expect(await answerOf(() => daemon.tryLead('n1'))).toBe(true);
      expect(await answerOf(() => other.tryLead('n2'))).toBe(false);
      expect(await answerOf(() => other.listSupervisors())).toEqual([supervisor('s1')]);
      await Promise.all(servers.map((server) => server.ready()));
    });

    it('is left by clients for another server when theirs says nothing', async () => {
      const all = await Promise.all(Array.from({ length: 6 }, () => connect()));
      await all[0]!.createTopology(topology('t'));
      await Promise.all(all.map((client, index) => client.announceSupervisor(supervisor(`s${index}`))));
      const quiet = await leader();
      quiet.pause();
      try {
        for (const client of all) {
          await eventually(async () => {
            try {
              return (await client.listSupervisors()).length === all.length;
            } catch (error) {
              if (hasCode(error, 'COORDINATOR_UNAVAILABLE')) return false;
              throw error;
            }
          });
        }
        await eventually(async () => {
          try {
            await all[0]!.createTopology(topology('u'));
            return true;
          } catch (error) {
            return hasCode(error, 'NODE_EXISTS');
          }
        });
      } finally {
        quiet.resume();
      }
      await quiet.ready();
    });
  },
);
