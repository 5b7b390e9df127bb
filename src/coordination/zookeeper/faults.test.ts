/** What ZooKeeper can do to a client, with a real server: lost answers, lost data, silence, and a process that comes back. */
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hasCode, silentLogger } from '../../base/index.js';
import { assignment, supervisor, topology } from '../coordination.conformance.js';
import {
  createZooKeeperHarness,
  SESSION_TIMEOUT_MS,
  stopSharedServer,
  type ZooKeeperHarness,
} from './zookeeper-harness.conformance.js';
import { zooKeeperMissing } from './zookeeper-servers.conformance.js';

const missing = await zooKeeperMissing();
afterAll(stopSharedServer);

describe.skipIf(missing !== undefined)(
  `a client of ZooKeeper${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let harness: ZooKeeperHarness;
    beforeEach(async () => {
      harness = await createZooKeeperHarness();
    });
    afterEach(async () => {
      await harness.close();
    });

    async function eventually(condition: () => Promise<boolean> | boolean): Promise<void> {
      await vi.waitFor(
        async () => {
          expect(await condition()).toBe(true);
        },
        { timeout: 30_000, interval: 20 },
      );
    }

    describe('whose answer is lost', () => {
      it('knows that a creation was done', async () => {
        const { coordination, link } = await harness.connect();
        link.muteServer();
        const created = coordination.createTopology(topology('t'));
        const other = (await harness.connect()).coordination;
        await eventually(async () => (await other.readTopology('t')) !== undefined);
        link.cut();
        await created;
        expect(await coordination.readTopology('t')).toEqual({ value: topology('t'), version: 0 });
      });

      it('knows that a conditional write was done, and does not do it twice', async () => {
        const { coordination, link } = await harness.connect();
        const other = (await harness.connect()).coordination;
        await coordination.createTopology(topology('t'));
        link.muteServer();
        const renamed = { ...topology('t'), name: 'renamed' };
        const updated = coordination.updateTopology(renamed, 0);
        await eventually(async () => (await other.readTopology('t'))?.version === 1);
        link.cut();
        await updated;
        expect(await other.readTopology('t')).toEqual({ value: renamed, version: 1 });
      });

      it('is told of a conflict where somebody else has written instead', async () => {
        const { coordination, link } = await harness.connect();
        const other = (await harness.connect()).coordination;
        await coordination.createTopology(topology('t'));
        await other.updateTopology({ ...topology('t'), name: 'other' }, 0);
        link.muteServer();
        const updated = coordination.updateTopology({ ...topology('t'), name: 'own' }, 0);
        await harness.pass(100);
        link.cut();
        await expect(updated).rejects.toMatchObject({ code: 'VERSION_CONFLICT' });
      });

      it('is told that nobody knows where others have gone on since', async () => {
        const { coordination, link } = await harness.connect();
        const other = (await harness.connect()).coordination;
        await coordination.createTopology(topology('t'));
        link.muteServer();
        const updated = coordination.updateTopology({ ...topology('t'), name: 'own' }, 0);
        await eventually(async () => (await other.readTopology('t'))?.version === 1);
        await other.updateTopology({ ...topology('t'), name: 'other' }, 1);
        link.cut();
        await expect(updated).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
      });

      it('has a removal done once', async () => {
        const { coordination, link } = await harness.connect();
        const other = (await harness.connect()).coordination;
        await coordination.createTopology(topology('t'));
        link.muteServer();
        const removed = coordination.removeTopology('t');
        await harness.pass(100);
        link.cut();
        await removed;
        expect(await other.listTopologies()).toEqual([]);
      });

      it('knows that it leads', async () => {
        const { coordination, link } = await harness.connect();
        const other = (await harness.connect()).coordination;
        link.muteServer();
        const led = coordination.tryLead('n1');
        // Nobody else may try before: of two that try at once either may lead.
        await harness.pass(100);
        link.cut();
        expect(await led).toBe(true);
        expect(await other.tryLead('n2')).toBe(false);
      });

      it('gets a generation that nobody else got', async () => {
        const { coordination, link } = await harness.connect();
        const other = (await harness.connect()).coordination;
        await coordination.createTopology(topology('t'));
        const given = [await other.nextGeneration('t')];
        link.muteServer();
        const next = coordination.nextGeneration('t');
        await harness.pass(100);
        given.push(await other.nextGeneration('t'));
        link.cut();
        given.push(await next, await other.nextGeneration('t'));
        expect(new Set(given).size).toBe(4);
      });
    });

    it('finds a server away that is silent, though it takes connections, and goes on when it speaks again', async () => {
      const { coordination } = await harness.connect();
      await coordination.createTopology(topology('t'));
      harness.server.pause();
      try {
        const sinceMs = performance.now();
        await expect(coordination.listTopologies()).rejects.toMatchObject({
          code: 'COORDINATOR_UNAVAILABLE',
        });
        expect(performance.now() - sinceMs).toBeLessThan(SESSION_TIMEOUT_MS * 2);
        await expect(coordination.createTopology(topology('u'))).rejects.toMatchObject({
          code: 'COORDINATOR_UNAVAILABLE',
        });
      } finally {
        harness.server.resume();
      }
      await eventually(async () => (await coordination.readTopology('t')) !== undefined);
    });

    describe('whose data are gone', () => {
      it('says so, takes nothing for removed, and goes on when they are restored', async () => {
        const { coordination } = await harness.connect();
        await coordination.createTopology(topology('t'));
        await coordination.writeAssignment(assignment('t', 1, 3));
        await coordination.announceSupervisor(supervisor('s1'));
        const seen: unknown[] = [];
        const look = async (): Promise<void> => {
          try {
            seen.push(
              (await coordination.listAssignments()).length,
              (await coordination.listTopologies()).length,
            );
          } catch (error) {
            seen.push(error);
          }
        };
        coordination.watchAssignments(() => void look());
        await harness.stopCoordinator();
        const kept = join(harness.root, 'kept');
        cpSync(harness.server.dataDirectory, kept, { recursive: true });
        harness.server.wipe();
        await harness.startCoordinator();
        await eventually(async () => {
          await look();
          return hasCode(seen.at(-1), 'COORDINATOR_DATA_LOST');
        });
        await expect(coordination.createTopology(topology('u'))).rejects.toMatchObject({
          code: 'COORDINATOR_DATA_LOST',
        });
        const back = vi.fn();
        coordination.onReconnect(back);
        await harness.stopCoordinator();
        harness.server.wipe();
        cpSync(kept, harness.server.dataDirectory, { recursive: true });
        await harness.startCoordinator();
        await eventually(() => back.mock.calls.length > 0);
        expect((await coordination.listTopologies()).map(({ value }) => value.id)).toEqual(['t']);
        await eventually(async () => (await coordination.listSupervisors()).length === 1);
        expect(seen).not.toContain(0);
      });

      it('is not let in again without them', async () => {
        const { coordination, directory } = await harness.connect();
        await coordination.createTopology(topology('t'));
        await coordination.close();
        await harness.stopCoordinator();
        harness.server.wipe();
        await harness.startCoordinator();
        await expect(harness.connect({ directory })).rejects.toMatchObject({ code: 'COORDINATOR_DATA_LOST' });
        // Giving them up is removing the memory.
        rmSync(join(directory, 'coordinator-memory.json'));
        const { coordination: anew } = await harness.connect({ directory });
        expect(await anew.listTopologies()).toEqual([]);
      });

      it('says so when somebody has removed them under its feet', async () => {
        const { coordination } = await harness.connect();
        await coordination.createTopology(topology('t'));
        await harness.admin((client) => client.remove(`${harness.chroot}/cluster`));
        await eventually(async () => {
          try {
            await coordination.listTopologies();
            return false;
          } catch (error) {
            return hasCode(error, 'COORDINATOR_DATA_LOST');
          }
        });
      });
    });

    describe('of a process that comes back', () => {
      it('sets free at once what the process before held', async () => {
        const before = await harness.connect();
        await before.coordination.announceSupervisor(supervisor('s1'));
        expect(await before.coordination.tryLead('n1')).toBe(true);
        // As after `kill -9`: nobody ends the session.
        before.link.isolate();
        const sinceMs = performance.now();
        const { coordination } = await harness.connect({ directory: before.directory });
        expect(await coordination.tryLead('n2')).toBe(true);
        expect(performance.now() - sinceMs).toBeLessThan(SESSION_TIMEOUT_MS / 2);
        await coordination.announceSupervisor({ ...supervisor('s1'), startedMs: 2 });
        await harness.pass(SESSION_TIMEOUT_MS * 1.5);
        expect(await coordination.listSupervisors()).toEqual([{ ...supervisor('s1'), startedMs: 2 }]);
        expect(await coordination.tryLead('n2')).toBe(true);
      });

      it('replaces what the process before announced, though that still counts as alive', async () => {
        const before = await harness.connect();
        await before.coordination.announceSupervisor(supervisor('s1'));
        before.link.isolate();
        // Another directory: the session before is not known.
        const { coordination } = await harness.connect();
        await coordination.announceSupervisor({ ...supervisor('s1'), startedMs: 2 });
        await harness.pass(SESSION_TIMEOUT_MS * 1.5);
        expect(await coordination.listSupervisors()).toEqual([{ ...supervisor('s1'), startedMs: 2 }]);
      });
    });

    describe('with access rules', () => {
      function credentials(text: string): string {
        const file = join(harness.root, `credentials-${text.replaceAll(':', '-')}`);
        writeFileSync(file, text, { mode: 0o600 });
        return file;
      }

      it('keeps others out, those with other credentials and those without', async () => {
        const own = credentials('isobar:secret');
        const { coordination } = await harness.connect({ credentialsFile: own });
        await coordination.createTopology(topology('t'));
        await coordination.writeAssignment(assignment('t', 1, 50_000));
        await coordination.tryLead('n1');
        for (const other of [{}, { credentialsFile: credentials('isobar:other') }]) {
          await expect(harness.connect(other)).rejects.toMatchObject({ code: 'COORDINATOR_ACCESS_DENIED' });
        }
        const { coordination: second } = await harness.connect({ credentialsFile: own });
        expect(await second.readAssignment('t')).toEqual(assignment('t', 1, 50_000));
        await harness.admin(async (client) => {
          for (const path of [
            '',
            '/cluster',
            '/topologies',
            '/topologies/t',
            '/leader',
            '/assignments/t',
            '/chunks',
          ]) {
            expect((await client.getData(harness.chroot + path)).isDone, path).toBe(false);
          }
        });
      });

      it('leaves nodes above the chroot, which it had to make, to everybody, and closes the chroot itself', async () => {
        const place = `${harness.chroot}/shared/team`;
        const { coordination } = await harness.connect({
          place,
          credentialsFile: credentials('isobar:secret'),
        });
        await coordination.createTopology(topology('t'));
        await harness.admin(async (client) => {
          for (const path of [harness.chroot, `${harness.chroot}/shared`]) {
            expect(await client.isOpenToAll(path), path).toBe(true);
          }
          const others = await client.create(
            `${harness.chroot}/shared/others`,
            Buffer.alloc(0),
            false,
            'everybody',
          );
          expect(others.isDone).toBe(true);
          for (const path of ['', '/cluster', '/topologies']) {
            expect((await client.getData(place + path)).isDone, path).toBe(false);
          }
        });
      });

      it('goes on with them over a new connection and a new session', async () => {
        const { coordination, link } = await harness.connect({
          credentialsFile: credentials('isobar:secret'),
        });
        await coordination.announceSupervisor(supervisor('s1'));
        const back = vi.fn();
        coordination.onReconnect(back);
        link.cut();
        await eventually(() => back.mock.calls.length === 1);
        expect(await coordination.listSupervisors()).toHaveLength(1);
        link.isolate();
        await harness.pass(SESSION_TIMEOUT_MS * 1.5);
        link.restore();
        await eventually(() => back.mock.calls.length === 2);
        expect(await coordination.listSupervisors()).toEqual([supervisor('s1')]);
      });

      it('warns where anybody may write', async () => {
        const warn = vi.fn();
        const logger = { ...silentLogger, warn };
        await harness.connect({ logger });
        expect(warn.mock.calls.map(([event]) => event as unknown)).toEqual(['coordination.open-to-all']);
        warn.mockClear();
        await harness.connect({ logger, credentialsFile: credentials('isobar:secret') });
        expect(warn.mock.calls.map(([event]) => event as unknown)).toEqual(['coordination.open-to-all']);
      });
    });

    describe('that is sent to the wrong place', () => {
      it('refuses what is not of Isobar', async () => {
        await harness.admin(async (client) => {
          await client.create('/tests', Buffer.alloc(0), false, 'everybody');
          await client.create(harness.chroot, Buffer.alloc(0), false, 'everybody');
          await client.create(`${harness.chroot}/brokers`, Buffer.from('kafka'), false, 'everybody');
        });
        await expect(harness.connect()).rejects.toMatchObject({
          code: 'COORDINATOR_DATA_FOREIGN',
          message: expect.stringContaining('nodes brokers') as string,
        });
        await harness.admin(async (client) => {
          await client.create(`${harness.chroot}/cluster`, Buffer.from('a b c'), false, 'everybody');
        });
        await expect(harness.connect()).rejects.toMatchObject({ code: 'COORDINATOR_DATA_FOREIGN' });
      });

      it("refuses another version's data", async () => {
        await harness.connect();
        const marker = Buffer.from(JSON.stringify({ kind: 'isobar', format: 2, cluster: 'c' }));
        await harness.admin((client) => client.setData(`${harness.chroot}/cluster`, marker, -1));
        await expect(harness.connect()).rejects.toMatchObject({
          code: 'STATE_VERSION_UNKNOWN',
          details: { expected: 'format 1', found: 'format 2' },
        });
      });

      it("refuses another cluster's data", async () => {
        const { coordination, directory } = await harness.connect();
        await coordination.close();
        const another = await createZooKeeperHarness();
        try {
          await another.connect();
          await expect(another.connect({ directory })).rejects.toMatchObject({
            code: 'COORDINATOR_DATA_FOREIGN',
          });
        } finally {
          await another.close();
        }
      });

      it('makes no cluster where it is a worker', async () => {
        await expect(harness.connect({ directory: null })).rejects.toMatchObject({
          code: 'COORDINATOR_DATA_LOST',
        });
        const { coordination } = await harness.connect();
        await coordination.createTopology(topology('t'));
        const { coordination: worker } = await harness.connect({ directory: null });
        expect(await worker.listTopologies()).toHaveLength(1);
      });
    });

    it('does not mind how many make the cluster at once', async () => {
      const clients = await Promise.all(Array.from({ length: 8 }, () => harness.connect()));
      await clients[0]!.coordination.createTopology(topology('t'));
      for (const { coordination } of clients) {
        await eventually(async () => (await coordination.listTopologies()).length === 1);
      }
    });
  },
);
