import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NimbusHarness } from './testing/nimbus-harness.js';

let cluster: NimbusHarness;

beforeEach(async () => {
  cluster = await NimbusHarness.create();
});

afterEach(() => cluster.close());

describe('the picture of a cluster', () => {
  it('holds what the next round starts from: machines, graphs, settings and what runs', async () => {
    await cluster.announce('s1', [1, 2]);
    await cluster.announce('s2', [1]);
    const id = await cluster.submit('words', 2);
    const stored = await cluster.assigned(id, ({ slots }) => slots.length === 2);
    const picture = await cluster.nimbus.picture();
    expect(picture.settings).toMatchObject({ 'nimbus.round-interval': 1000 });
    expect(picture.supervisors.map((one) => [one.id, one.ports])).toEqual([
      ['s1', [1, 2]],
      ['s2', [1]],
    ]);
    expect(picture.topologies).toMatchObject([
      { id, name: 'words', desired: null, rebalance: null, silentSlots: [], stored },
    ]);
    expect(picture.topologies[0]!.description.components.map((one) => one.id)).toEqual(['lines', 'count']);
  });

  it('leaves out a topology that is being removed, and its slots', async () => {
    await cluster.announce('s1', [1, 2, 3]);
    const id = await cluster.submit('words', 2);
    await cluster.assigned(id, ({ slots }) => slots.length === 2);
    await cluster.nimbus.kill('words', 60_000);
    const { topologies, supervisors } = await cluster.nimbus.picture();
    expect(topologies).toEqual([]);
    expect(supervisors.map(({ ports }) => ports.length)).toEqual([1]);
  });
});
