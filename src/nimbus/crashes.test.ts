/**
 * Nimbus killed at any point of a submission, a rebalance or a kill: after the n-th write to the coordinator its connection is
 * gone, with the write done or not, and another Nimbus goes on. Nothing is lost, and no worker starts anew.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IsobarError } from '../base/index.js';
import type { Coordination } from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { RebalanceRequest } from './rebalance.js';
import { described, NimbusHarness, until } from './testing/nimbus-harness.js';

const WRITES = new Set<PropertyKey>([
  'createTopology',
  'updateTopology',
  'removeTopology',
  'writeAssignment',
  'storeHandovers',
]);
const MOST_WRITES = 12;

/** Where it breaks: at the n-th write (from 1), before or after it has taken effect. */
interface Break {
  readonly at: number;
  readonly isDone: boolean;
}

function breaking(coordination: Coordination, { at, isDone }: Break, onBreak: () => void): Coordination {
  let writes = 0;
  let isBroken = false;
  const gone = (): Promise<never> =>
    Promise.reject(new IsobarError('COORDINATOR_UNAVAILABLE', 'killed here'));
  return new Proxy(coordination, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...values: unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(member, target, values);
        if (name === 'close' || String(name).startsWith('watch') || name === 'onReconnect') return call();
        if (isBroken) return gone();
        if (!WRITES.has(name) || ++writes < at) return call();
        isBroken = true;
        const settled = isDone ? Promise.resolve(call()).catch(() => undefined) : Promise.resolve();
        return settled.then(() => {
          onBreak();
          return gone();
        });
      };
    },
  });
}

let cluster: NimbusHarness;

beforeEach(async () => {
  cluster = await NimbusHarness.create();
  await cluster.announce('s1', [1, 2, 3, 4]);
});
afterEach(() => cluster.close());

const LIVE: RebalanceRequest = {
  workers: 3,
  executors: { count: 1 },
  resources: {},
  waitMs: null,
  fromScratch: false,
  preview: false,
  requestId: 'rebalance',
};

const SUBMISSION = {
  description: described('words'),
  code: '// words',
  settings: { 'topology.workers': 2 },
  requestId: 'submission',
};

/** Does `act` with a Nimbus that breaks; resolves to whether it broke. The next Nimbus is another one, and whole. */
async function withBreak(point: Break, act: () => Promise<unknown>): Promise<boolean> {
  let [hasBroken, isOver] = [false, false];
  await cluster.restartNimbus((own) => breaking(own, point, () => (hasBroken = true)));
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  // Killed processes answer nobody: a request may stay without an answer.
  await Promise.race([
    act().catch(() => undefined),
    untilTrue(() => hasBroken || isOver).then(() => pause(30)),
  ]);
  await pause(5);
  isOver = true;
  const didBreak = hasBroken;
  await cluster.restartNimbus();
  return didBreak;
}

async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

async function runningOnce(): Promise<Assignment> {
  const { topologyId } = await cluster.nimbus.submit(SUBMISSION);
  const assignment = await cluster.assigned(topologyId, ({ slots }) => slots.length === 2);
  await cluster.report('s1', [assignment]);
  return assignment;
}

async function allRecords() {
  return (await cluster.outside.listTopologies()).map(({ value }) => value);
}

const POINTS: readonly Break[] = Array.from({ length: MOST_WRITES }, (_, index) => [
  { at: index + 1, isDone: false },
  { at: index + 1, isDone: true },
]).flat();

describe('a Nimbus that is killed at any write', () => {
  it('of a submission leaves nothing half done: sent again it is the same topology, placed once', async () => {
    for (const point of POINTS) {
      const didBreak = await withBreak(point, () => cluster.nimbus.submit(SUBMISSION));
      const { topologyId } = await cluster.nimbus.submit(SUBMISSION);
      const assignment = await cluster.assigned(topologyId, ({ slots }) => slots.length === 2);
      expect([point, (await allRecords()).length, assignment.version]).toEqual([point, 1, 1]);
      await cluster.nimbus.kill('words', 0);
      await until('the removal', async () => (await allRecords()).length === 0);
      if (!didBreak) return;
    }
    expect.fail('a submission has more writes than expected');
  });

  it('of a rebalance carries it out once, and no worker that stays starts anew', async () => {
    for (const point of POINTS) {
      const before = await runningOnce();
      const { topologyId } = before;
      const didBreak = await withBreak(point, () => cluster.nimbus.rebalance('words', LIVE));
      await cluster.report('s1', [before]);
      await cluster.nimbus.rebalance('words', LIVE);
      const after = await cluster.carryOut(topologyId, ['s1']);
      expect(await cluster.outside.listHandovers()).toEqual([]);
      expect((await cluster.record(topologyId))?.desired?.revision).toBe(1);
      expect([point, after.revision, after.slots.length]).toEqual([point, 1, 3]);
      const same = after.slots.filter((slot) =>
        before.slots.some(
          (old) => old.port === slot.port && JSON.stringify(old.executors) === JSON.stringify(slot.executors),
        ),
      );
      for (const { port, startedMs } of same) {
        expect(startedMs).toBe(before.slots.find((old) => old.port === port)?.startedMs);
      }
      await cluster.report('s1', []);
      await cluster.nimbus.kill('words', 0);
      await until('the removal', async () => (await allRecords()).length === 0);
      if (!didBreak) return;
    }
    expect.fail('a rebalance has more writes than expected');
  });

  it('of a kill goes on to remove everything, and touches no other topology', async () => {
    const other = await cluster.submit('other', 1);
    const kept = await cluster.assigned(other, ({ slots }) => slots.length === 1);
    for (const point of POINTS) {
      const { topologyId } = await runningOnce();
      const didBreak = await withBreak(point, async () => {
        await cluster.nimbus.kill('words', 0);
        await cluster.report('s1', []);
        await cluster.settle();
      });
      await cluster.report('s1', []);
      const isThere = (await cluster.record(topologyId)) !== undefined;
      if (isThere) await cluster.nimbus.kill('words', 0).catch(() => undefined);
      await until('the removal', async () => (await allRecords()).length === 1);
      expect(await cluster.outside.readAssignment(topologyId)).toBeUndefined();
      expect(await cluster.outside.readAssignment(other)).toEqual(kept);
      expect(await cluster.blobStore.has((await cluster.record(other))?.codeHash ?? '')).toBe(true);
      if (!didBreak) return;
    }
    expect.fail('a kill has more writes than expected');
  });
});
