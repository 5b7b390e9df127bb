/** A topology is placed as a whole once the supervisors that it needs are there, or on what is there once it has waited. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../scheduling/index.js';
import type { TopologyStatus } from './status.js';
import { NimbusHarness, until } from './testing/nimbus-harness.js';

const WAITS = { 'slot.request.max-interval': 20, 'slot.wait-timeout': 3000, 'topology.acker.executors': 0 };

let cluster: NimbusHarness;
afterEach(() => cluster.close());

async function statusOf(id: string): Promise<TopologyStatus> {
  return (await cluster.nimbus.status()).topologies.find((topology) => topology.id === id)!;
}

const perSupervisor = ({ slots }: Assignment): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { supervisor, executors } of slots)
    counts[supervisor] = (counts[supervisor] ?? 0) + executors.length;
  return counts;
};

describe('a topology that wants more slots than the first supervisor has', () => {
  it('is placed at once and evenly when the last supervisor that it needs has come', async () => {
    cluster = await NimbusHarness.create(WAITS);
    await cluster.announce('s1', [1, 2, 3, 4]);
    const id = await cluster.submit('words', 6, { tasks: 6 });
    cluster.clock.advance(20);
    await cluster.settle();
    expect(await cluster.outside.readAssignment(id)).toBeUndefined();
    expect(await statusOf(id)).toMatchObject({
      unplacedExecutors: 12,
      unplacedReason: expect.stringContaining('4 of 6 slots are free') as string,
    });
    await cluster.announce('s2', [1, 2, 3, 4]);
    const assignment = await cluster.assigned(id, ({ slots }) => slots.length === 6);
    expect(perSupervisor(assignment)).toEqual({ s1: 6, s2: 6 });
    expect(assignment.version).toBe(1);
    await until('no more lack', async () => (await statusOf(id)).unplacedExecutors === 0);
  });

  it('is placed on what is there when it has waited for slot.wait-timeout', async () => {
    cluster = await NimbusHarness.create(WAITS);
    await cluster.announce('s1', [1, 2]);
    const id = await cluster.submit('words', 6, { tasks: 6 });
    cluster.clock.advance(2999);
    await cluster.settle();
    expect(await cluster.outside.readAssignment(id)).toBeUndefined();
    cluster.clock.advance(1);
    const assignment = await cluster.assigned(id, ({ slots }) => slots.length === 2);
    expect(perSupervisor(assignment)).toEqual({ s1: 12 });
  });

  it('joins the workers that it has at once when a machine is lost and slots are short', async () => {
    cluster = await NimbusHarness.create({ ...WAITS, 'slot.wait-timeout': 600_000 });
    for (const supervisor of ['s1', 's2']) await cluster.announce(supervisor, [1, 2, 3]);
    const id = await cluster.submit('words', 6, { tasks: 6 });
    cluster.clock.advance(20);
    const first = await cluster.assigned(id, ({ slots }) => slots.length === 6);
    for (const supervisor of ['s1', 's2']) await cluster.report(supervisor, [first]);
    await cluster.outside.withdrawSupervisor('s2');
    await cluster.settle();
    cluster.clock.advance(cluster.settings['supervisor.gone-grace'] + 1);
    await cluster.settle();
    cluster.clock.advance(20);
    const fewer = await cluster.assigned(id, ({ slots }) =>
      slots.every(({ supervisor }) => supervisor === 's1'),
    );
    expect(perSupervisor(fewer)).toEqual({ s1: 12 });
    expect(fewer.slots).toHaveLength(3);
  });

  it.each(['none', 'slots'])('does not wait under the mode %s', async (mode) => {
    cluster = await NimbusHarness.create(WAITS);
    await cluster.announce('s1', [1, 2]);
    const id = await cluster.submit('words', 6, { tasks: 6, settings: { 'load-balance.mode': mode } });
    await cluster.assigned(id, ({ slots }) => slots.length === 2);
  });

  it('does not wait under the strategy even', async () => {
    cluster = await NimbusHarness.create({ ...WAITS, 'scheduling.strategy': 'even' });
    await cluster.announce('s1', [1, 2]);
    const id = await cluster.submit('words', 6, { tasks: 6 });
    await cluster.assigned(id, ({ slots }) => slots.length === 2);
  });

  it('does not hold up another topology', async () => {
    cluster = await NimbusHarness.create(WAITS);
    await cluster.announce('s1', [1, 2, 3]);
    const large = await cluster.submit('large', 6, { tasks: 6 });
    const small = await cluster.submit('small', 2);
    cluster.clock.advance(20);
    await cluster.assigned(small, ({ slots }) => slots.length === 2);
    expect(await cluster.outside.readAssignment(large)).toBeUndefined();
  });
});
