import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDirectory, silentLogger, systemClock, processIdentity } from '../../base/index.js';
import type { Coordination } from '../coordination.js';
import { assignment, supervisor, topology } from '../coordination.conformance.js';

import { connectEmbeddedCoordination } from './client.js';
import { LOG_NAME } from './commit-log.js';
import { FaultyFiles, type FaultyOperation } from './faulty-files.conformance.js';
import { type EmbeddedCoordinator, openEmbeddedCoordinator } from './server.js';

const OWN = processIdentity(process.pid)!;

describe('the embedded coordinator on its disk', () => {
  let root: string;
  let files: FaultyFiles;
  const open: { close(): Promise<void> }[] = [];

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'isobar-durability-'));
    files = new FaultyFiles();
  });
  afterEach(async () => {
    files.failing.clear();
    for (const closeable of open.splice(0).reverse()) await closeable.close();
    await rm(root, { recursive: true, force: true });
  });

  const directory = (): string => join(root, 'state');

  async function start(
    options: { directory?: string; compactionBytes?: number } = {},
  ): Promise<EmbeddedCoordinator> {
    const server = await openEmbeddedCoordinator({
      directory: options.directory ?? directory(),
      socketPath: join(root, 'sockets', `c${open.length}`),
      clock: systemClock,
      logger: silentLogger,
      sessionTimeoutMs: 60_000,
      files,
      ...(options.compactionBytes === undefined ? {} : { compactionBytes: options.compactionBytes }),
    });
    open.push(server);
    return server;
  }

  async function connect(server: EmbeddedCoordinator): Promise<Coordination> {
    const coordination = await connectEmbeddedCoordination({
      socketPath: server.socketPath,
      process: OWN,
      clock: systemClock,
      logger: silentLogger,
      sessionTimeoutMs: 60_000,
    });
    open.push(coordination);
    return coordination;
  }

  async function idsAfterRestart(): Promise<readonly string[]> {
    const coordination = await connect(await start());
    return (await coordination.listTopologies()).map((entry) => entry.value.id);
  }

  /** A state directory in which three topologies were created, each in a commit of its own. */
  async function writeThree(): Promise<{ log: Buffer; lastStart: number }> {
    const server = await start();
    const coordination = await connect(server);
    let lastStart = 0;
    for (const id of ['t1', 't2', 't3']) {
      lastStart = server.logBytes;
      await coordination.createTopology(topology(id));
    }
    const log = readFileSync(join(directory(), LOG_NAME));
    await coordination.close();
    await server.close();
    return { log, lastStart };
  }

  it('starts from a log whose last record is torn at any byte, and goes on from there', async () => {
    const { log, lastStart } = await writeThree();
    expect(log.length - lastStart).toBeGreaterThan(200);
    for (let length = lastStart; length <= log.length; length++) {
      const torn = join(root, `torn-${length}`);
      await mkdir(torn);
      await writeFile(join(torn, LOG_NAME), log.subarray(0, length));
      const expected = length === log.length ? 3 : 2;
      // Every eighth one with a whole server that writes again, the others by their count.
      if (length % 8 !== 0 && length !== log.length) {
        const server = await start({ directory: torn });
        expect(server.nodeCount).toBe(expected);
        await server.close();
        continue;
      }
      const server = await start({ directory: torn });
      const coordination = await connect(server);
      expect(await coordination.listTopologies()).toHaveLength(expected);
      await coordination.createTopology(topology('after'));
      await coordination.close();
      await server.close();
      const again = await start({ directory: torn });
      expect(again.nodeCount).toBe(expected + 1);
      await again.close();
    }
  });

  it('refuses a log with a flipped byte, names file and offset, and leaves the file as it is', async () => {
    const { log } = await writeThree();
    const path = join(directory(), LOG_NAME);
    for (let place = 0; place < log.length; place += 13) {
      const damaged = Buffer.from(log);
      damaged[place]! ^= 0x10;
      writeFileSync(path, damaged);
      await expect(start()).rejects.toMatchObject({
        code: expect.stringMatching(/^STATE_(DAMAGED|VERSION_UNKNOWN)$/) as string,
        message: expect.stringContaining(path) as string,
      });
      expect(readFileSync(path).equals(damaged)).toBe(true);
    }
    writeFileSync(path, log);
    expect(await idsAfterRestart()).toEqual(['t1', 't2', 't3']);
  });

  it('refuses the state of another version', async () => {
    await mkdir(directory());
    writeFileSync(join(directory(), LOG_NAME), 'isobar-coordinator-log 2\n');
    await expect(start()).rejects.toMatchObject({ code: 'STATE_VERSION_UNKNOWN' });
  });

  it('has one owner, also when many start at once, and the next when it closes', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => start()));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused).toHaveLength(4);
    for (const outcome of refused) expect(outcome.reason).toMatchObject({ code: 'STATE_DIRECTORY_OWNED' });
    await expect(start()).rejects.toMatchObject({ code: 'STATE_DIRECTORY_OWNED' });
    for (const server of open.splice(0)) await server.close();
    await start();
  });

  it('takes over from an owner that was killed, and from a lock file that a crash left empty', async () => {
    await mkdir(directory());
    lockDirectory(directory(), { pid: 999_999_999, startTime: '1' }, () => true);
    await expect(async () => lockDirectory(directory(), OWN, () => true)).rejects.toMatchObject({
      code: 'STATE_DIRECTORY_OWNED',
      details: { pid: 999_999_999 },
    });
    const server = await start();
    await server.close();
    const owners = join(directory(), 'owners');
    for (const name of readdirSync(owners)) writeFileSync(join(owners, name), '');
    await start();
  });

  it('keeps few lock files, however often it is opened', async () => {
    for (let round = 0; round < 30; round++) await (await start()).close();
    expect(readdirSync(join(directory(), 'owners')).length).toBeLessThan(12);
  });

  it.each(['write', 'sync'] as const)(
    'fails a write when the disk refuses to %s, loses nothing else, and recovers',
    async (operation) => {
      const coordination = await connect(await start());
      await coordination.createTopology(topology('before'));
      for (let round = 0; round < 3; round++) {
        files.failing.set(operation, 'ENOSPC');
        for (const id of ['refused-1', 'refused-2']) {
          await expect(coordination.createTopology(topology(id))).rejects.toMatchObject({
            code: 'STATE_DIRECTORY_UNUSABLE',
            message: expect.stringContaining('ENOSPC') as string,
          });
        }
        await expect(
          coordination.updateTopology({ ...topology('before'), name: 'x' }, 0),
        ).rejects.toMatchObject({
          code: 'STATE_DIRECTORY_UNUSABLE',
        });
        // Reads and heartbeats go on, and see nothing of what was refused.
        expect((await coordination.listTopologies()).map((entry) => entry.value.name)).toContain(
          'name of before',
        );
        expect(await coordination.readTopology('refused-1')).toBeUndefined();
        await coordination.publishHeartbeat({
          supervisorId: 's1',
          pid: 1,
          sequence: round,
          slots: [],
          lastReports: [],
        });
        expect((await coordination.listHeartbeats())[0]?.sequence).toBe(round);
        files.failing.clear();
        await coordination.createTopology(topology(`after-${round}`));
      }
      for (const closeable of open.splice(0).reverse()) await closeable.close();
      expect(await idsAfterRestart()).toEqual(['after-0', 'after-1', 'after-2', 'before']);
    },
  );

  it('does not bring back at the next start what it has refused', async () => {
    const coordination = await connect(await start());
    await coordination.createTopology(topology('before'));
    files.failing.set('sync', 'EIO');
    await expect(coordination.createTopology(topology('refused'))).rejects.toThrow();
    files.failing.clear();
    for (const closeable of open.splice(0).reverse()) await closeable.close();
    expect(await idsAfterRestart()).toEqual(['before']);
  });

  it('does not write behind bytes of a failed write that it could not cut off', async () => {
    const coordination = await connect(await start());
    await coordination.createTopology(topology('before'));
    files.failing.set('write', 'ENOSPC').set('truncate', 'EIO');
    await expect(coordination.createTopology(topology('refused, with a rather long name'))).rejects.toThrow();
    files.failing.delete('write');
    await expect(coordination.createTopology(topology('x'))).rejects.toMatchObject({
      code: 'STATE_DIRECTORY_UNUSABLE',
    });
    files.failing.clear();
    await coordination.createTopology(topology('y'));
    for (const closeable of open.splice(0).reverse()) await closeable.close();
    expect(await idsAfterRestart()).toEqual(['before', 'y']);
  });

  it('fails only the writes of a commit that the disk refuses, and answers each request', async () => {
    const server = await start();
    const [one, two] = [await connect(server), await connect(server)];
    await one.createTopology(topology('t'));
    files.failing.set('write', 'ENOSPC');
    const outcomes = await Promise.allSettled([
      one.createTopology(topology('a')),
      two.createTopology(topology('a')),
      one.listTopologies(),
      two.publishHeartbeat({ supervisorId: 's', pid: 1, sequence: 1, slots: [], lastReports: [] }),
      two.readTopology('a'),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
    expect(outcomes[4]).toMatchObject({ value: undefined });
  });

  it('lets sessions start and end while the disk is full, and remembers them when it is not', async () => {
    const server = await start();
    const leader = await connect(server);
    await leader.tryLead('n1');
    files.failing.set('write', 'ENOSPC');
    const standby = await connect(server);
    expect(await standby.tryLead('n2')).toBe(false);
    await leader.close();
    await expect(standby.tryLead('n2')).rejects.toMatchObject({ code: 'STATE_DIRECTORY_UNUSABLE' });
    files.failing.clear();
    expect(await standby.tryLead('n2')).toBe(true);
    expect(server.sessionCount).toBe(1);
    await server.close();
    const again = await start();
    expect(again.sessionCount).toBe(1);
    expect(again.nodeCount).toBe(1);
  });

  it('shares one sync among writes that come together, and spends none on heartbeats and ephemerals', async () => {
    const coordination = await connect(await start());
    files.syncs = 0;
    await Promise.all(
      Array.from({ length: 200 }, (_, index) => coordination.createTopology(topology(`t${index}`))),
    );
    expect(files.syncs).toBeGreaterThan(0);
    expect(files.syncs).toBeLessThan(100);
    files.syncs = 0;
    await coordination.publishHeartbeat({
      supervisorId: 's1',
      pid: 1,
      sequence: 1,
      slots: [],
      lastReports: [],
    });
    await coordination.announceSupervisor(supervisor('s1'));
    expect(files.syncs).toBe(0);
  });

  it('keeps its log bounded, whatever is written how often', async () => {
    const server = await start({ compactionBytes: 50_000 });
    const coordination = await connect(server);
    await coordination.createTopology(topology('t'));
    for (let version = 0; version < 500; version++) {
      await coordination.updateTopology(
        { ...topology('t'), name: 'n'.repeat(1000) + String(version) },
        version,
      );
      expect(server.logBytes).toBeLessThan(50_000 + 4 * 10_000);
    }
    for (let version = 1; version <= 4; version++) {
      await coordination.writeAssignment(assignment('t', version, 50_000 + version));
    }
    const nodes = server.nodeCount;
    await coordination.writeAssignment(assignment('t', 5, 50_005));
    expect(server.nodeCount).toBe(nodes);
    await coordination.removeTopology('t');
    expect(server.nodeCount).toBe(0);
  });

  it.each(['open', 'write', 'sync', 'rename', 'syncDirectory'] as const)(
    'loses nothing when a compaction fails to %s',
    async (operation: FaultyOperation) => {
      const server = await start({ compactionBytes: 2000 });
      const coordination = await connect(server);
      let acknowledged = 0;
      await coordination.createTopology(topology('t'));
      for (let round = 0; round < 60; round++) {
        if (round % 10 === 3) files.failing.set(operation, 'EIO');
        if (round % 10 === 7) files.failing.clear();
        try {
          await coordination.updateTopology({ ...topology('t'), name: `n${round}` }, acknowledged);
          acknowledged++;
        } catch (error) {
          expect(error).toMatchObject({ code: 'STATE_DIRECTORY_UNUSABLE' });
        }
      }
      expect(acknowledged).toBeGreaterThan(30);
      for (const closeable of open.splice(0).reverse()) await closeable.close();
      const again = await connect(await start());
      expect((await again.readTopology('t'))?.version).toBe(acknowledged);
    },
  );

  it('is not disturbed by a snapshot that a crash left half written', async () => {
    await writeThree();
    writeFileSync(join(directory(), `${LOG_NAME}.new`), 'half');
    expect(await idsAfterRestart()).toEqual(['t1', 't2', 't3']);
  });

  it('refuses a directory that it cannot use, and says why', async () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    for (const unusable of [file, join(file, 'below')]) {
      await expect(start({ directory: unusable })).rejects.toMatchObject({
        code: 'STATE_DIRECTORY_UNUSABLE',
        message: expect.stringContaining(unusable) as string,
      });
    }
    for (const operation of ['read', 'open', 'write', 'sync', 'rename'] as const) {
      files.failing.set(operation, 'EROFS');
      await expect(start()).rejects.toMatchObject({
        code: 'STATE_DIRECTORY_UNUSABLE',
        message: expect.stringContaining('EROFS') as string,
      });
      files.failing.clear();
    }
    // A start that failed owns nothing.
    await start();
  });

  it('keeps its files to itself, since topologies have secrets', async () => {
    await writeThree();
    expect(statSync(directory()).mode & 0o077).toBe(0);
    expect(statSync(join(directory(), LOG_NAME)).mode & 0o077).toBe(0);
  });

  it('is copied with its directory', async () => {
    await writeThree();
    const copy = join(root, 'copy');
    await cp(directory(), copy, { recursive: true });
    chmodSync(copy, 0o700);
    expect(existsSync(join(copy, LOG_NAME))).toBe(true);
    const server = await start({ directory: copy });
    expect(server.nodeCount).toBe(3);
  });
});
