/**
 * What every adapter of the coordination port must do, as one suite that each of them runs. Adapters differ in the
 * harness that they bring: how a client connects, how time passes, how a link is cut.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hasCode } from '../base/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { Coordination, SupervisorRecord, TopologyRecord } from './coordination.js';
import type { Handover } from './handover.js';
import type { CuttableLink } from './cuttable-link.conformance.js';
import type { FoldedHeartbeat, TaskReport, WorkerHeartbeat } from './heartbeat.js';

export interface CoordinationClient {
  readonly coordination: Coordination;
  /** Between this client and the coordinator. */
  readonly link: Pick<CuttableLink, 'cut' | 'isolate' | 'restore'>;
}

export interface CoordinationHarness {
  readonly sessionTimeoutMs: number;
  /** A client with a session of its own. */
  connect(): Promise<CoordinationClient>;
  /** Lets time pass for the coordinator and all clients; what they send meanwhile arrives. */
  pass(ms: number): Promise<void>;
  stopCoordinator(): Promise<void>;
  startCoordinator(): Promise<void>;
  /** Nodes created, written or removed: differences count. */
  changes(): Promise<number>;
  close(): Promise<void>;
}

export interface CoordinationSuiteOptions {
  readonly name: string;
  readonly create: () => Promise<CoordinationHarness>;
  /** Titles of tests that an adapter cannot pass, each with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
  /** Why none can run here. */
  readonly skipAll?: string | undefined;
}

const EXECUTORS_OF_BIG_ASSIGNMENT = 50_000;

export function coordinationSuite({ name, create, skip = {}, skipAll }: CoordinationSuiteOptions): void {
  const title = `coordination over ${name}`;
  describe.skipIf(skipAll !== undefined)(skipAll === undefined ? title : `${title} (${skipAll})`, () => {
    let harness: CoordinationHarness;
    const claim = (title: string, run: () => Promise<void>): void => {
      const reason = skip[title];
      if (reason === undefined) it(title, run);
      else it.skip(`${title} (${reason})`, run);
    };

    beforeEach(async () => {
      harness = await create();
    });
    afterEach(async () => {
      await harness.close();
    });

    async function connect(): Promise<Coordination> {
      return (await harness.connect()).coordination;
    }

    /** Waits until `condition` holds, while time passes. An unavailable coordinator is not yet an answer. */
    async function eventually(condition: () => Promise<boolean> | boolean): Promise<void> {
      for (let round = 0; round < 2000; round++) {
        try {
          if (await condition()) return;
        } catch (error) {
          if (!hasCode(error, 'COORDINATOR_UNAVAILABLE')) throw error;
        }
        await harness.pass(20);
      }
      throw new Error(`never came true: ${condition.toString()}`);
    }

    describe('topologies', () => {
      claim('reads back what was created, whatever its id', async () => {
        const [writer, reader] = [await connect(), await connect()];
        for (const id of ['plain-1', 'Zählwerk/…/🌍', '..', '.', '', '\ud800 alone', '%0041', 'a\0b']) {
          await writer.createTopology(topology(id));
          expect((await reader.readTopology(id))?.value).toEqual(topology(id));
        }
        expect(await reader.listTopologies()).toHaveLength(8);
        expect(await reader.readTopology('missing')).toBeUndefined();
      });

      claim('refuses to create a topology twice', async () => {
        const coordination = await connect();
        await coordination.createTopology(topology('t'));
        await expect(coordination.createTopology(topology('t'))).rejects.toMatchObject({
          code: 'NODE_EXISTS',
        });
      });

      claim('lets one of two writers of the same version win', async () => {
        const [one, two] = [await connect(), await connect()];
        await one.createTopology(topology('t'));
        const { version } = (await one.readTopology('t'))!;
        const outcomes = await Promise.allSettled([
          one.updateTopology({ ...topology('t'), name: 'one' }, version),
          two.updateTopology({ ...topology('t'), name: 'two' }, version),
        ]);
        expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
        expect(outcomes.find((outcome) => outcome.status === 'rejected')?.reason).toMatchObject({
          code: 'VERSION_CONFLICT',
        });
        const after = (await two.readTopology('t'))!;
        expect(after.version).toBe(version + 1);
        await two.updateTopology({ ...topology('t'), name: 'three' }, after.version);
        expect((await one.readTopology('t'))?.value.name).toBe('three');
      });

      claim('refuses to update a topology that does not exist', async () => {
        const coordination = await connect();
        await expect(coordination.updateTopology(topology('t'), 0)).rejects.toMatchObject({
          code: 'NODE_MISSING',
        });
      });

      claim(
        'removes a topology with its assignment, positions and generation, and again without harm',
        async () => {
          const coordination = await connect();
          for (const id of ['gone', 'stays']) {
            await coordination.createTopology(topology(id));
            await coordination.writeAssignment(assignment(id, 1, 10));
            await coordination.nextGeneration(id);
            await coordination.storePositions(id, 's1', [{ task: 1, generation: 1, position: 7 }]);
          }
          await coordination.removeTopology('gone');
          await coordination.removeTopology('gone');
          expect((await coordination.listTopologies()).map((entry) => entry.value.id)).toEqual(['stays']);
          expect((await coordination.listAssignments()).map((entry) => entry.topologyId)).toEqual(['stays']);
          expect(await coordination.readAssignment('gone')).toBeUndefined();
          expect(await coordination.readPositions('gone')).toEqual([]);
          expect(await coordination.readPositions('stays')).toHaveLength(1);
        },
      );

      claim('keeps nothing for a topology that has been removed', async () => {
        const coordination = await connect();
        const late = [{ task: 1, generation: 1, position: 7 }];
        await expect(coordination.storePositions('gone', 's1', late)).rejects.toMatchObject({
          code: 'NODE_MISSING',
        });
        await expect(coordination.nextGeneration('gone')).rejects.toMatchObject({ code: 'NODE_MISSING' });
      });

      claim('keeps a record of several megabytes, and its updates', async () => {
        const [writer, reader] = [await connect(), await connect()];
        const big = (text: string, words: number): TopologyRecord => ({
          ...topology('t'),
          settings: { text: noise(words, text) },
        });
        await writer.createTopology(big('é🌍', 600_000));
        expect((await reader.readTopology('t'))?.value).toEqual(big('é🌍', 600_000));
        await writer.updateTopology(big('ab', 400_000), 0);
        expect((await reader.readTopology('t'))?.value).toEqual(big('ab', 400_000));
        await writer.updateTopology(topology('t'), 1);
        expect(await reader.readTopology('t')).toEqual({ value: topology('t'), version: 2 });
      });
    });

    describe('watches', () => {
      claim('tells of an added, a changed and a removed topology, and a reader then sees it', async () => {
        const [writer, watcher] = [await connect(), await connect()];
        let names: string[] = [];
        const read = async (): Promise<void> => {
          names = (await watcher.listTopologies()).map((entry) => entry.value.name);
        };
        watcher.watchTopologies(() => readTold(read));
        await writer.createTopology(topology('t'));
        await eventually(() => names.join() === 'name of t');
        await writer.updateTopology({ ...topology('t'), name: 'renamed' }, 0);
        await eventually(() => names.join() === 'renamed');
        await writer.removeTopology('t');
        await eventually(() => names.length === 0);
      });

      claim('names what changed, or nothing: who reads only what is named misses nothing', async () => {
        const [writer, watcher] = [await connect(), await connect()];
        const topologies = new Map<string, string>();
        const versions = new Map<string, number>();
        const read = async (id: string): Promise<void> => {
          const record = await watcher.readTopology(id);
          if (record === undefined) topologies.delete(id);
          else topologies.set(id, record.value.name);
        };
        watcher.watchTopologies((ids) =>
          readTold(async () => {
            for (const id of ids ?? [...(await watcher.listTopologyIds()), ...topologies.keys()]) {
              await read(id);
            }
          }),
        );
        watcher.watchAssignments((ids) =>
          readTold(async () => {
            for (const one of ids ?? ['a/b', 'plain']) {
              versions.set(one, (await watcher.readAssignment(one))?.version ?? 0);
            }
          }),
        );
        for (const id of ['a/b', 'plain', 'gone']) await writer.createTopology(topology(id));
        await writer.updateTopology({ ...topology('a/b'), name: 'new' }, 0);
        await writer.writeAssignment(assignment('a/b', 1, 2));
        await writer.writeAssignment(assignment('plain', 1, 2));
        await writer.writeAssignment(assignment('plain', 2, 2));
        await writer.removeTopology('gone');
        await eventually(
          () => versions.get('a/b') === 1 && versions.get('plain') === 2 && topologies.size === 2,
        );
        await eventually(
          () => topologies.get('a/b') === 'new' && topologies.get('plain') === 'name of plain',
        );
        expect([...(await watcher.listTopologyIds())].sort()).toEqual(['a/b', 'plain']);
      });

      claim('tells each kind of watcher', async () => {
        const [writer, watcher] = [await connect(), await connect()];
        const told = new Set<string>();
        watcher.watchLeader(() => told.add('leader'));
        watcher.watchSupervisors(() => told.add('supervisors'));
        watcher.watchAssignments(() => told.add('assignments'));
        watcher.watchHeartbeats(() => told.add('heartbeats'));
        await writer.tryLead('n1');
        await writer.announceSupervisor(supervisor('s1'));
        await writer.writeAssignment(assignment('t', 1, 5));
        await writer.publishHeartbeat(heartbeat('s1', 1));
        await eventually(() => told.size === 4);
      });

      claim('calls nobody who has stopped watching', async () => {
        const [writer, watcher] = [await connect(), await connect()];
        const [stopped, watching] = [vi.fn(), vi.fn()];
        const stop = watcher.watchTopologies(stopped);
        watcher.watchTopologies(watching);
        stop();
        stop();
        await writer.createTopology(topology('t'));
        await eventually(() => watching.mock.calls.length > 0);
        expect(stopped).not.toHaveBeenCalled();
      });

      claim('loses no change however the connection is cut', async () => {
        const writer = await connect();
        const { coordination: watcher, link } = await harness.connect();
        let seen = 0;
        const read = async (): Promise<void> => {
          seen = (await watcher.listTopologies()).length;
        };
        watcher.watchTopologies(() => readTold(read));
        for (let index = 0; index < 30; index++) {
          await writer.createTopology(topology(`t${index}`));
          if (index % 3 === 0) link.cut();
          if (index % 5 === 0) await harness.pass(7);
        }
        await eventually(() => seen === 30);
      });

      claim('goes on after a callback that throws', async () => {
        const [writer, watcher] = [await connect(), await connect()];
        const next = vi.fn();
        watcher.watchTopologies(() => {
          throw new Error('from a watcher');
        });
        watcher.watchTopologies(next);
        await writer.createTopology(topology('t'));
        await eventually(() => next.mock.calls.length > 0);
      });
    });

    describe('leadership', () => {
      claim('goes to exactly one of many', async () => {
        const candidates = await Promise.all(Array.from({ length: 8 }, connect));
        const led = await Promise.all(candidates.map((candidate, index) => candidate.tryLead(`n${index}`)));
        expect(led.filter((leads) => leads)).toHaveLength(1);
        const leader = led.indexOf(true);
        expect(await candidates[leader]!.tryLead(`n${leader}`)).toBe(true);
        expect(await candidates[(leader + 1) % 8]!.tryLead('again')).toBe(false);
      });

      claim('is free when the leader closes, and its watchers are told', async () => {
        const [leader, standby] = [await connect(), await connect()];
        expect(await leader.tryLead('n1')).toBe(true);
        let leads = false;
        const retry = async (): Promise<void> => {
          if (await standby.tryLead('n2')) leads = true;
        };
        let lastTry = Promise.resolve();
        const stopWatching = standby.watchLeader(() => {
          lastTry = lastTry.then(retry);
        });
        await leader.close();
        await eventually(() => leads);
        // What is heard later must not ask a connection that is closed.
        stopWatching();
        await lastTry;
      });

      claim('stays with a leader that was cut off for less than its time-out', async () => {
        const { coordination: leader, link } = await harness.connect();
        const standby = await connect();
        await leader.tryLead('n1');
        link.isolate();
        await harness.pass(harness.sessionTimeoutMs / 2);
        expect(await standby.tryLead('n2')).toBe(false);
        link.restore();
        await eventually(() => leader.tryLead('n1'));
        await harness.pass(harness.sessionTimeoutMs * 2);
        expect(await standby.tryLead('n2')).toBe(false);
      });

      claim('moves on from a leader that is cut off for longer', async () => {
        const { coordination: leader, link } = await harness.connect();
        const standby = await connect();
        await leader.tryLead('n1');
        link.isolate();
        await eventually(() => standby.tryLead('n2'));
        link.restore();
        const back = vi.fn();
        leader.onReconnect(back);
        await eventually(() => back.mock.calls.length > 0);
        expect(await leader.tryLead('n1')).toBe(false);
      });
    });

    describe('supervisors', () => {
      claim('are known while their session lives', async () => {
        const [first, second, reader] = [await connect(), await connect(), await connect()];
        await first.announceSupervisor(supervisor('s1'));
        await second.announceSupervisor(supervisor('s2'));
        await first.announceSupervisor({ ...supervisor('s1'), cores: 16 });
        expect(await reader.listSupervisors()).toEqual([
          { ...supervisor('s1'), cores: 16 },
          supervisor('s2'),
        ]);
        await harness.pass(harness.sessionTimeoutMs * 3);
        expect(await reader.listSupervisors()).toHaveLength(2);
        await first.close();
        await eventually(async () => (await reader.listSupervisors()).length === 1);
        await second.withdrawSupervisor('s2');
        await second.withdrawSupervisor('s2');
        expect(await reader.listSupervisors()).toEqual([]);
      });

      claim('are gone after the time-out, not before', async () => {
        const { coordination, link } = await harness.connect();
        const reader = await connect();
        await coordination.announceSupervisor(supervisor('s1'));
        link.isolate();
        await harness.pass(harness.sessionTimeoutMs * 0.5);
        expect(await reader.listSupervisors()).toHaveLength(1);
        await harness.pass(harness.sessionTimeoutMs * 1.1);
        expect(await reader.listSupervisors()).toEqual([]);
      });

      claim(
        'are announced again by themselves after an expired session, before onReconnect is called',
        async () => {
          const { coordination, link } = await harness.connect();
          const reader = await connect();
          await coordination.announceSupervisor(supervisor('s1'));
          await coordination.publishWorkerLiveness(worker('w1', 1));
          link.isolate();
          await harness.pass(harness.sessionTimeoutMs * 2);
          expect(await reader.listSupervisors()).toEqual([]);
          expect(await reader.listWorkerLiveness()).toEqual([]);
          let known: Promise<readonly SupervisorRecord[]> | undefined;
          coordination.onReconnect(() => {
            known ??= coordination.listSupervisors();
          });
          link.restore();
          await eventually(() => known !== undefined);
          expect(await known).toEqual([supervisor('s1')]);
          expect(await reader.listWorkerLiveness()).toEqual([worker('w1', 1)]);
        },
      );

      claim('belong to the newest session that announces them', async () => {
        const [old, fresh, reader] = [await connect(), await connect(), await connect()];
        await old.announceSupervisor(supervisor('s1'));
        await fresh.announceSupervisor({ ...supervisor('s1'), startedMs: 2 });
        await old.withdrawSupervisor('s1');
        await old.close();
        await harness.pass(harness.sessionTimeoutMs);
        expect(await reader.listSupervisors()).toEqual([{ ...supervisor('s1'), startedMs: 2 }]);
      });
    });

    describe('assignments', () => {
      claim('follow one another version by version', async () => {
        const [one, two] = [await connect(), await connect()];
        await expect(one.writeAssignment(assignment('t', 2, 3))).rejects.toMatchObject({
          code: 'VERSION_CONFLICT',
        });
        await one.writeAssignment(assignment('t', 1, 3));
        await expect(two.writeAssignment(assignment('t', 1, 4))).rejects.toMatchObject({
          code: 'VERSION_CONFLICT',
        });
        await two.writeAssignment(assignment('t', 2, 4));
        for (const version of [1, 2, 4, 0, -1, 2.5]) {
          await expect(one.writeAssignment(assignment('t', version, 5))).rejects.toMatchObject({
            code: 'VERSION_CONFLICT',
          });
        }
        expect(await one.readAssignment('t')).toEqual(assignment('t', 2, 4));
      });

      claim(`of ${EXECUTORS_OF_BIG_ASSIGNMENT} executors are read whole while they change`, async () => {
        const [writer, reader] = [await connect(), await connect()];
        const big = (version: number): Assignment =>
          assignment('big', version, EXECUTORS_OF_BIG_ASSIGNMENT + version);
        await writer.writeAssignment(big(1));
        const seen: Assignment[] = [];
        let isWriting = true;
        const readAlong = async (): Promise<void> => {
          while (isWriting) {
            const current = await reader.readAssignment('big');
            if (current !== undefined) seen.push(current);
          }
        };
        const reading = readAlong();
        for (let version = 2; version <= 6; version++) await writer.writeAssignment(big(version));
        isWriting = false;
        await reading;
        // Before comparing, which keeps this process from hearing its coordinator for seconds.
        const listed = await reader.listAssignments();
        expect(listed).toEqual([big(6)]);
        expect(seen.length).toBeGreaterThan(0);
        for (const current of seen) expect(current).toEqual(big(current.version));
      });

      claim('written by two at once have one winner, large or small', async () => {
        const [one, two] = [await connect(), await connect()];
        for (const executors of [10, EXECUTORS_OF_BIG_ASSIGNMENT]) {
          const id = `t${executors}`;
          await one.writeAssignment(assignment(id, 1, executors));
          const outcomes = await Promise.allSettled([
            one.writeAssignment(assignment(id, 2, executors)),
            two.writeAssignment(assignment(id, 2, executors + 1)),
          ]);
          expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
          const winner = outcomes[0].status === 'fulfilled' ? executors : executors + 1;
          expect(await two.readAssignment(id)).toEqual(assignment(id, 2, winner));
        }
      });
    });

    describe('generations and positions', () => {
      claim('never gives a generation twice', async () => {
        const clients = await Promise.all(Array.from({ length: 4 }, connect));
        await clients[0]!.createTopology(topology('t'));
        await clients[0]!.createTopology(topology('u'));
        const given = await Promise.all(
          Array.from({ length: 100 }, (_, index) => clients[index % 4]!.nextGeneration('t')),
        );
        expect(new Set(given).size).toBe(100);
        expect(Math.min(...given)).toBe(1);
        expect(await clients[1]!.nextGeneration('t')).toBeGreaterThan(Math.max(...given));
        expect(await clients[1]!.nextGeneration('u')).toBe(1);
      });

      claim('keeps the entry of the highest generation for each task, over all machines', async () => {
        const [one, two] = [await connect(), await connect()];
        await one.createTopology(topology('t'));
        await one.storePositions('t', 's1', [
          { task: 1, generation: 1, position: { offset: 10 } },
          { task: 2, generation: 4, position: 'four' },
        ]);
        await two.storePositions('t', 's2', [
          { task: 1, generation: 2, position: [20] },
          { task: 2, generation: 3, position: 'three' },
          { task: 3, generation: 1, position: null },
        ]);
        // The task came back to the first machine's worker of before, which has not noticed.
        await one.storePositions('t', 's1', [{ task: 1, generation: 1, position: { offset: 99 } }]);
        expect(await two.readPositions('t')).toEqual([
          { task: 1, generation: 2, position: [20] },
          { task: 2, generation: 4, position: 'four' },
          { task: 3, generation: 1, position: null },
        ]);
      });

      claim('leaves out entries of an older generation, and takes later ones of the same', async () => {
        const coordination = await connect();
        await coordination.createTopology(topology('t'));
        await coordination.storePositions('t', 's1', [{ task: 1, generation: 2, position: 10 }]);
        await coordination.storePositions('t', 's1', [
          { task: 1, generation: 1, position: 99 },
          { task: 2, generation: 1, position: 5 },
        ]);
        await coordination.storePositions('t', 's1', [{ task: 1, generation: 2, position: 11 }]);
        expect(await coordination.readPositions('t')).toEqual([
          { task: 1, generation: 2, position: 11 },
          { task: 2, generation: 1, position: 5 },
        ]);
      });

      claim('folds positions that two processes of one machine store at once', async () => {
        const [one, two] = [await connect(), await connect()];
        await one.createTopology(topology('t'));
        await Promise.all(
          Array.from({ length: 20 }, (_, task) =>
            [one, two][task % 2]!.storePositions('t', 's1', [{ task, generation: 1, position: task }]),
          ),
        );
        expect((await one.readPositions('t')).map((entry) => entry.position)).toEqual(
          Array.from({ length: 20 }, (_, task) => task),
        );
      });

      claim('keeps the positions of 20,000 tasks of one machine', async () => {
        const [one, two] = [await connect(), await connect()];
        await one.createTopology(topology('t'));
        const at = (offset: number) =>
          Array.from({ length: 20_000 }, (_, task) => ({ task, generation: 1, position: task + offset }));
        await one.storePositions('t', 's1', at(0));
        await two.storePositions('t', 's1', at(5));
        expect(await one.readPositions('t')).toEqual(at(5));
        await one.removeTopology('t');
        expect(await one.readPositions('t')).toEqual([]);
      });
    });

    describe('handovers', () => {
      const released = (task: number): Handover => ({
        task,
        move: 2,
        step: { kind: 'released', state: { kind: 'saved', hash: 'abc', bytes: 3 } },
      });

      claim(
        'are kept per topology and writer, replaced as a whole, and gone when there are none',
        async () => {
          const [one, two] = [await connect(), await connect()];
          await one.storeHandovers('a/b', 's1', [released(1), released(2)]);
          await two.storeHandovers('a/b', 's2', [
            { task: 3, move: 2, step: { kind: 'taken', generation: 9 } },
          ]);
          await two.storeHandovers('other', 's1', [released(7)]);
          const of = async (topologyId?: string): Promise<string[]> =>
            (await two.listHandovers(topologyId))
              .map(
                ({ topologyId: id, writer, handovers }) =>
                  `${id} ${writer} ${handovers.map(({ task }) => task).join()}`,
              )
              .sort();
          expect(await of('a/b')).toEqual(['a/b s1 1,2', 'a/b s2 3']);
          expect(await of()).toEqual(['a/b s1 1,2', 'a/b s2 3', 'other s1 7']);
          await one.storeHandovers('a/b', 's1', [released(2)]);
          expect(await of('a/b')).toEqual(['a/b s1 2', 'a/b s2 3']);
          await one.storeHandovers('a/b', 's1', []);
          await one.storeHandovers('a/b', 's1', []);
          expect(await of('a/b')).toEqual(['a/b s2 3']);
        },
      );

      claim('are told to whoever watches, go with their topology, and survive the coordinator', async () => {
        const [writer, watcher] = [await connect(), await connect()];
        let steps: string[] = [];
        watcher.watchHandovers((ids) =>
          readTold(async () => {
            if (ids !== undefined && !ids.includes('t')) return;
            steps = (await watcher.listHandovers('t')).flatMap(({ handovers }) =>
              handovers.map(({ step }) => step.kind),
            );
          }),
        );
        await writer.createTopology(topology('t'));
        await writer.storeHandovers('t', 's1', [released(1)]);
        await eventually(() => steps.join() === 'released');
        await harness.stopCoordinator();
        await harness.startCoordinator();
        await eventually(async () => (await writer.listHandovers('t')).length === 1);
        await writer.removeTopology('t');
        await eventually(() => steps.length === 0);
      });
    });

    describe('heartbeats', () => {
      claim('are one for each supervisor, the newest', async () => {
        const [one, two, reader] = [await connect(), await connect(), await connect()];
        await one.publishHeartbeat(heartbeat('s1', 1));
        await two.publishHeartbeat(heartbeat('s2', 7));
        await one.publishHeartbeat(heartbeat('s1', 2));
        expect(await reader.listHeartbeats()).toEqual([heartbeat('s1', 2), heartbeat('s2', 7)]);
      });

      claim('are one write each, of ten executors or of thousands', async () => {
        const [one, reader] = [await connect(), await connect()];
        for (const tasks of [10, 1000, 5000]) {
          // The first may remove what a larger one before it has left.
          await one.publishHeartbeat(busyHeartbeat(1, tasks));
          const before = await harness.changes();
          for (let sequence = 2; sequence <= 11; sequence++)
            await one.publishHeartbeat(busyHeartbeat(sequence, tasks));
          expect((await harness.changes()) - before, `${tasks} tasks`).toBe(10);
          expect(await reader.readHeartbeat('s1')).toEqual(busyHeartbeat(11, tasks));
        }
      });

      claim('may be larger than a node', async () => {
        const [one, reader] = [await connect(), await connect()];
        for (const [sequence, slots] of [
          [1, 8000],
          [2, 8001],
          [3, 1],
          [4, 8000],
        ] as const) {
          await one.publishHeartbeat(heartbeat('s1', sequence, slots));
          expect(await reader.listHeartbeats()).toEqual([heartbeat('s1', sequence, slots)]);
        }
      });

      claim(
        'can be followed one by one, by the names that a watch tells or else by all of them',
        async () => {
          const [one, two, follower] = [await connect(), await connect(), await connect()];
          const seen = new Map<string, number>();
          let unread: Set<string> | 'all' = new Set<string>();
          follower.watchHeartbeats((ids) => {
            if (ids === undefined || unread === 'all') unread = 'all';
            else for (const id of ids) unread.add(id);
          });
          const catchUp = async (): Promise<void> => {
            const now = unread;
            unread = new Set();
            if (now === 'all') {
              seen.clear();
              for (const { supervisorId, sequence } of await follower.listHeartbeats())
                seen.set(supervisorId, sequence);
              return;
            }
            for (const id of now) {
              const read = await follower.readHeartbeat(id);
              if (read === undefined) seen.delete(id);
              else seen.set(id, read.sequence);
            }
          };
          const shows = (...expected: (readonly [string, number])[]): (() => Promise<boolean>) => {
            const text = JSON.stringify(expected);
            return async () => {
              await catchUp();
              return JSON.stringify([...seen].sort(([a], [b]) => (a < b ? -1 : 1))) === text;
            };
          };
          await one.announceSupervisor(supervisor('s/1'));
          for (let sequence = 1; sequence <= 20; sequence++) {
            await one.publishHeartbeat(heartbeat('s/1', sequence, sequence % 5 === 0 ? 8000 : 2));
            if (sequence % 3 === 0) await two.publishHeartbeat(heartbeat('s 2', sequence));
            if (sequence % 4 === 0) await catchUp();
          }
          await eventually(shows(['s 2', 18], ['s/1', 20]));
          await one.withdrawSupervisor('s/1');
          await eventually(shows(['s 2', 18]));
          expect(await follower.readHeartbeat('s/1')).toBeUndefined();
        },
      );

      claim('have last reports that somebody may acknowledge, whom their supervisor then hears', async () => {
        const [leader, coordination] = [await connect(), await connect()];
        await coordination.announceSupervisor(supervisor('s1'));
        expect(await coordination.readAcknowledged('s1')).toEqual([]);
        let heard: readonly string[] = [];
        coordination.watchAcknowledged('s1', () =>
          readTold(async () => {
            heard = await coordination.readAcknowledged('s1');
          }),
        );
        await leader.acknowledgeReports('s1', ['w1', 'w2']);
        await eventually(() => heard.join() === 'w1,w2');
        await leader.acknowledgeReports('s1', ['w3']);
        await eventually(() => heard.join() === 'w3');
        expect(await leader.readAcknowledged('another')).toEqual([]);
        await coordination.withdrawSupervisor('s1');
        expect(await leader.readAcknowledged('s1')).toEqual([]);
      });

      claim('of a withdrawn supervisor are gone', async () => {
        const coordination = await connect();
        await coordination.announceSupervisor(supervisor('s1'));
        await coordination.publishHeartbeat(heartbeat('s1', 1));
        await coordination.withdrawSupervisor('s1');
        expect(await coordination.listHeartbeats()).toEqual([]);
      });

      claim('of a worker without supervisor go with its session or when withdrawn', async () => {
        const [one, two, reader] = [await connect(), await connect(), await connect()];
        await one.publishWorkerLiveness(worker('w1', 1));
        await one.publishWorkerLiveness(worker('w1', 2));
        await two.publishWorkerLiveness(worker('w2', 1));
        expect(await reader.listWorkerLiveness()).toEqual([worker('w1', 2), worker('w2', 1)]);
        await one.withdrawWorkerLiveness('w1');
        expect(await reader.listWorkerLiveness()).toEqual([worker('w2', 1)]);
        await two.close();
        await eventually(async () => (await reader.listWorkerLiveness()).length === 0);
      });
    });

    describe('a coordinator that is away', () => {
      claim('makes every call reject with COORDINATOR_UNAVAILABLE', async () => {
        const coordination = await connect();
        await harness.stopCoordinator();
        await harness.pass(100);
        const calls: readonly (() => Promise<unknown>)[] = [
          () => coordination.tryLead('n'),
          () => coordination.announceSupervisor(supervisor('s')),
          () => coordination.withdrawSupervisor('s'),
          () => coordination.listSupervisors(),
          () => coordination.createTopology(topology('t')),
          () => coordination.listTopologies(),
          () => coordination.readTopology('t'),
          () => coordination.updateTopology(topology('t'), 0),
          () => coordination.removeTopology('t'),
          () => coordination.readAssignment('t'),
          () => coordination.listAssignments(),
          () => coordination.writeAssignment(assignment('t', 1, 1)),
          () => coordination.nextGeneration('t'),
          () => coordination.readPositions('t'),
          () => coordination.storePositions('t', 's', [{ task: 1, generation: 1, position: 1 }]),
          () => coordination.publishHeartbeat(heartbeat('s', 1)),
          () => coordination.listHeartbeats(),
          () => coordination.readHeartbeat('s'),
          () => coordination.acknowledgeReports('s', ['w']),
          () => coordination.readAcknowledged('s'),
          () => coordination.publishWorkerLiveness(worker('w', 1)),
          () => coordination.withdrawWorkerLiveness('w'),
          () => coordination.listWorkerLiveness(),
        ];
        for (const call of calls) {
          await expect(call(), call.toString()).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
        }
      });

      claim('makes calls that are under way reject, not hang', async () => {
        const { coordination, link } = await harness.connect();
        const underWay = Array.from({ length: 50 }, (_, index) =>
          coordination.createTopology(topology(`t${index}`)),
        );
        link.cut();
        for (const outcome of await Promise.allSettled(underWay)) {
          if (outcome.status === 'rejected') {
            expect(outcome.reason).toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
          }
        }
      });

      claim('comes back with everything, and its sessions go on', async () => {
        const [leader, reader] = [await connect(), await connect()];
        await leader.tryLead('n1');
        await leader.announceSupervisor(supervisor('s1'));
        await leader.createTopology(topology('t'));
        await leader.updateTopology({ ...topology('t'), name: 'new' }, 0);
        await leader.writeAssignment(assignment('t', 1, EXECUTORS_OF_BIG_ASSIGNMENT));
        await leader.storePositions('t', 's1', [{ task: 1, generation: 1, position: 1 }]);
        const generation = await leader.nextGeneration('t');
        const [watched, reconnected] = [vi.fn(), vi.fn()];
        reader.watchTopologies(watched);
        reader.onReconnect(reconnected);
        await harness.stopCoordinator();
        // Longer than a time-out: while the coordinator is away no session can end.
        await harness.pass(harness.sessionTimeoutMs * 2);
        await harness.startCoordinator();
        await eventually(() => reconnected.mock.calls.length > 0 && watched.mock.calls.length > 0);
        expect(await reader.tryLead('n2')).toBe(false);
        expect(await reader.listSupervisors()).toEqual([supervisor('s1')]);
        await eventually(() => leader.tryLead('n1'));
        await harness.pass(harness.sessionTimeoutMs * 2);
        expect(await reader.tryLead('n2')).toBe(false);
        expect(await reader.readTopology('t')).toEqual({
          value: { ...topology('t'), name: 'new' },
          version: 1,
        });
        expect(await reader.readAssignment('t')).toEqual(assignment('t', 1, EXECUTORS_OF_BIG_ASSIGNMENT));
        expect(await reader.readPositions('t')).toHaveLength(1);
        expect(await reader.nextGeneration('t')).toBeGreaterThan(generation);
      });

      claim('ends the sessions that do not come back within a full time-out after its restart', async () => {
        const { coordination: leader, link } = await harness.connect();
        const reader = await connect();
        await leader.tryLead('n1');
        await harness.stopCoordinator();
        link.isolate();
        await harness.startCoordinator();
        await eventually(async () => (await reader.listTopologies()).length === 0);
        await harness.pass(harness.sessionTimeoutMs * 0.6);
        expect(await reader.tryLead('n2')).toBe(false);
        await harness.pass(harness.sessionTimeoutMs);
        expect(await reader.tryLead('n2')).toBe(true);
      });
    });

    claim('calls onReconnect after each lost connection, and not after it was stopped', async () => {
      const { coordination, link } = await harness.connect();
      const [kept, stopped] = [vi.fn(), vi.fn()];
      coordination.onReconnect(kept);
      coordination.onReconnect(stopped)();
      for (let round = 1; round <= 3; round++) {
        link.cut();
        await eventually(() => kept.mock.calls.length >= round);
      }
      expect(stopped).not.toHaveBeenCalled();
    });

    claim('closes more than once without harm, and refuses calls afterwards', async () => {
      const coordination = await connect();
      await coordination.close();
      await coordination.close();
      await expect(coordination.listTopologies()).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
    });
  });
}

export function topology(id: string): TopologyRecord {
  return {
    id,
    name: `name of ${id}`,
    submittedMs: 1,
    codeHash: 'c0de',
    descriptionHash: 'de5c',
    settings: { 'topology.workers': 2 },
    secret: '5ec4e7',
    phase: { kind: 'active' },
  };
}

export function supervisor(id: string): SupervisorRecord {
  return {
    id,
    host: 'localhost',
    rack: 'r1',
    ports: [6700, 6701],
    cores: 4,
    memoryBytes: 1e9,
    owner: 'me',
    startedMs: 1,
  };
}

/** Numbers in an order that no compression knows of. */
function scrambled(index: number): number {
  const mixed = Math.imul(index ^ (index >>> 15), 0x85ebca6b);
  return (Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) ^ (mixed >>> 16)) >>> 0;
}

function noise(words: number, between: string, from = 0): string {
  return Array.from({ length: words }, (_, index) => scrambled(from + index).toString(36)).join(between);
}

/** What one worker with so many tasks says at full load. */
function busyHeartbeat(sequence: number, tasks: number): FoldedHeartbeat {
  const { slots, ...rest } = heartbeat('s1', sequence, 1);
  const report = (_: unknown, index: number): TaskReport => {
    const count = scrambled(index % 50) * sequence;
    const counts = { emitted: count, transferred: count, executed: count, acked: count };
    const none = { failed: 0, replayed: 0, deadLetters: 0, unreplayable: 0 };
    const state = { queued: scrambled(index) % 100, pending: 0, ended: false, stopped: false, movable: true };
    return {
      task: index,
      component: 'count',
      ...counts,
      ...none,
      ...state,
      busyMs: count % 1e6,
      generation: 3,
    };
  };
  const own = { ...worker('w1', sequence), tasks: Array.from({ length: tasks }, report) };
  return { ...rest, slots: [{ ...slots[0]!, workerId: 'w1', heartbeat: own }] };
}

export function assignment(topologyId: string, version: number, executors: number): Assignment {
  return {
    topologyId,
    version,
    tasks: [{ component: 'a', first: 1, last: executors }],
    slots: [
      {
        supervisor: 's1',
        host: 'localhost',
        port: 6700,
        // Many of them are to stay large when they are compressed.
        executors: Array.from({ length: executors }, (_, index) =>
          executors < 20_000
            ? ([index + 1, index + 1] as const)
            : ([scrambled(2 * index), scrambled(2 * index + 1)] as const),
        ),
        startedMs: 1_700_000_000_000 + version,
      },
    ],
  };
}

function heartbeat(supervisorId: string, sequence: number, slots = 2): FoldedHeartbeat {
  return {
    supervisorId,
    pid: 1,
    sequence,
    slots: Array.from({ length: slots }, (_, index) => ({
      port: 6700 + index,
      state: 'empty',
      topologyId: null,
      workerId: slots < 100 ? null : noise(12, '', 12 * index),
      pid: null,
      restarts: 0,
      lastProblem: null,
      heartbeat: null,
      heartbeatMs: null,
    })),
    lastReports: [],
  };
}

export function worker(workerId: string, sequence: number): WorkerHeartbeat {
  return {
    workerId,
    topologyId: 't',
    supervisorId: 's1',
    port: 6700,
    generation: 1,
    pid: 1,
    startedMs: 1,
    assignmentVersion: 1,
    ready: true,
    sequence,
    cpuMicros: 0,
    rssBytes: 0,
    threads: [],
    tasks: [],
    components: [],
    errors: [],
    lostStates: [],
    oldestPending: null,
    deadLetterFiles: [],
  };
}

/**
 * Reads what a watch has told of. One that meets a coordinator that is away, or a connection that the end of the test has closed,
 * is none: the watch tells again, or nobody asks any more.
 */
function readTold(read: () => Promise<void>): void {
  void read().catch((error: unknown) => {
    if (!hasCode(error, 'COORDINATOR_UNAVAILABLE')) throw error;
  });
}
