/** Slots are short because a machine is gone: topologies that have more than their share give one up, step by step. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../scheduling/index.js';
import { described, NimbusHarness } from './testing/nimbus-harness.js';

let cluster: NimbusHarness;
afterEach(() => cluster.close());

async function submit(name: string, workers: number, tasks: number, movable = true): Promise<string> {
  const description = described(name, tasks) as { components: { movable: boolean }[] };
  for (const one of description.components) one.movable = movable;
  const settings = { 'topology.workers': workers, 'topology.acker.executors': 0 };
  return (await cluster.nimbus.submit({ description, code: `// ${name}`, settings })).topologyId;
}

async function lose(supervisor: string): Promise<void> {
  await cluster.outside.withdrawSupervisor(supervisor);
  await cluster.settle();
  cluster.clock.advance(cluster.settings['supervisor.gone-grace'] + 1);
}

const places = ({ slots }: Assignment): readonly string[] =>
  slots.map(({ supervisor, port }) => `${supervisor}:${port}`);

describe('a topology whose only machine is gone, where all other slots are in use', () => {
  it('gets a slot of a topology with more than its share once that has given it up, and then nothing moves any more', async () => {
    cluster = await NimbusHarness.create();
    await cluster.announce('s1', [1, 2]);
    await cluster.announce('s2', [1, 2]);
    const big = await submit('big', 3, 3);
    const first = await cluster.assigned(big, ({ slots }) => slots.length === 3);
    const small = await submit('small', 1, 1);
    const before = await cluster.assigned(small, ({ slots }) => slots.length === 1);
    const { supervisor: lost } = before.slots[0]!;
    const left = lost === 's1' ? 's2' : 's1';
    for (const supervisor of ['s1', 's2']) await cluster.report(supervisor, [first, before]);
    await lose(lost);
    // While the slot is being given up it is its holder's, and no other one is asked for.
    await cluster.assigned(big, ({ moves }) => moves !== undefined);
    await cluster.settle();
    expect(await cluster.outside.readAssignment(small)).toEqual(before);
    const settled = await cluster.carryOut(big, [left]);
    expect(settled.slots).toHaveLength(1);
    const after = await cluster.assigned(small, ({ slots }) => slots[0]?.supervisor === left);
    expect([...places(settled), ...places(after)].sort()).toEqual([`${left}:1`, `${left}:2`]);
    for (let round = 0; round < 5; round++) {
      await cluster.report(left, [settled, after]);
      cluster.clock.advance(1001);
      await cluster.settle();
    }
    expect((await cluster.outside.readAssignment(big))?.version).toBe(settled.version);
    expect((await cluster.outside.readAssignment(small))?.version).toBe(after.version);
  });

  it('is given none where nothing may move, and told so', async () => {
    cluster = await NimbusHarness.create();
    await cluster.announce('s1', [1, 2]);
    const big = await submit('big', 2, 2, false);
    const first = await cluster.assigned(big, ({ slots }) => slots.length === 2);
    await cluster.report('s1', [first]);
    const small = await submit('small', 1, 1);
    await cluster.settle();
    expect((await cluster.outside.readAssignment(big))?.version).toBe(first.version);
    const status = (await cluster.nimbus.status()).topologies.find(({ id }) => id === small)!;
    expect(status.unplacedReason).toContain('not movable');
  });
});

describe('topologies that are submitted where there is no machine', () => {
  it('take a round of their own each, and none about all: nobody has a slot to give', async () => {
    cluster = await NimbusHarness.create();
    const roundsOf = async (name: string): Promise<number> => {
      const { rounds } = cluster.nimbus.counts;
      await submit(name, 1, 1);
      await cluster.settle();
      return cluster.nimbus.counts.rounds - rounds;
    };
    // The first may meet the one with which Nimbus begins.
    await roundsOf('one');
    expect([await roundsOf('two'), await roundsOf('three')]).toEqual([1, 1]);
  });
});

describe('a topology without a slot that is killed while others wait', () => {
  async function roundsOfKill(before: () => Promise<void>): Promise<number> {
    cluster = await NimbusHarness.create();
    await before();
    for (const name of ['one', 'two', 'three']) await submit(name, 1, 1);
    await cluster.settle();
    const { rounds } = cluster.nimbus.counts;
    await cluster.nimbus.kill('two', 0);
    await cluster.settle();
    expect((await cluster.nimbus.status()).topologies.map(({ name }) => name)).not.toContain('two');
    return cluster.nimbus.counts.rounds - rounds;
  }

  it('gives nobody anything: no round about the others follows, with no machine or none that is free', async () => {
    // One about itself.
    expect(await roundsOfKill(() => Promise.resolve())).toBe(1);
    await cluster.close();
    const holdAll = async (): Promise<void> => {
      await cluster.announce('s1', [1]);
      const holder = await submit('holder', 1, 1);
      const held = await cluster.assigned(holder, ({ slots }) => slots.length === 1);
      await cluster.report('s1', [held]);
    };
    expect(await roundsOfKill(holdAll)).toBe(1);
  });
});
