/** Each strategy of Storm's in a running Nimbus: what supervisors report and what settings say decides the placement. */
import { afterEach, describe, expect, it } from 'vitest';
import type { RawSettings } from '../base/index.js';
import type { Assignment } from '../scheduling/index.js';
import { described, NimbusHarness, until } from './testing/nimbus-harness.js';

let harness: NimbusHarness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

const MB = 1_048_576;

async function started(settings: RawSettings): Promise<NimbusHarness> {
  harness = await NimbusHarness.create(settings);
  return harness;
}

function announce(id: string, ports: readonly number[], cores: number, memoryMb: number): Promise<void> {
  return harness!.outside.announceSupervisor({
    id,
    host: `host-${id}`,
    rack: 'r',
    ports,
    cores,
    memoryBytes: memoryMb * MB,
    owner: 'o',
    startedMs: 0,
  });
}

function executorsOn(assignment: Assignment, supervisor: string): number {
  return assignment.slots
    .filter((slot) => slot.supervisor === supervisor)
    .reduce((sum, { executors }) => sum + executors.length, 0);
}

const QUIET = { 'topology.ackers': 0 };

describe('strategies in a running Nimbus', () => {
  it('resource-aware goes by the memory and cores that supervisors report, and says what a topology lacks', async () => {
    const { submit, assigned, nimbus } = bound(await started({ 'scheduling.strategy': 'resource-aware' }));
    await announce('large', [1, 2, 3], 4, 1024);
    await announce('small', [1, 2, 3], 1, 256);
    const settings = { ...QUIET, 'topology.component-heap': '256MB', 'topology.component-cpu': 50 };
    const first = await submit('first', 1, { tasks: 2, settings });
    const placed = await assigned(first, ({ slots }) => slots.length > 0);
    expect(executorsOn(placed, 'large') + executorsOn(placed, 'small')).toBe(4);
    expect(executorsOn(placed, 'small')).toBeLessThanOrEqual(1);
    const second = await submit('second', 1, { tasks: 2, settings });
    const lack = await until('a reason', async () => {
      const { topologies } = await nimbus().status();
      return topologies.find(({ id }) => id === second)?.unplacedReason ?? false;
    });
    expect(lack).toMatch(/memory|heap|MB/i);
  });

  it('a submission is told what no machine could ever hold, and not only when it has waited', async () => {
    const own = await started({ 'scheduling.strategy': 'resource-aware' });
    await announce('small', [1, 2, 3], 1, 256);
    await until('the machine', async () => (await own.nimbus.supervisors()).length === 1);
    const { notes } = await own.nimbus.submit({
      description: described('huge', 2),
      code: '// huge',
      sourceMap: '{}',
      settings: { ...QUIET, 'topology.component-cpu': 150 },
    });
    expect(notes.join('\n')).toMatch(
      /^Topology "huge" has no machine that could hold an executor .*150 % of a core/m,
    );
  });

  it('isolation keeps other topologies off the hosts of one that is named', async () => {
    const { submit, assigned } = bound(
      await started({ 'scheduling.strategy': 'isolation', 'scheduling.isolated-topologies': ['alone=1'] }),
    );
    await announce('a', [1, 2], 2, 1024);
    await announce('b', [1, 2], 2, 1024);
    const alone = await submit('alone', 1, { settings: QUIET });
    const own = await assigned(alone, ({ slots }) => slots.length === 1);
    const others = await submit('others', 3, { settings: QUIET });
    const { slots } = await assigned(others, (assignment) => assignment.slots.length > 0);
    expect(slots.map(({ supervisor }) => supervisor)).not.toContain(own.slots[0]!.supervisor);
    expect(slots).toHaveLength(2);
  });

  it('isolation clears one machine for a topology that comes later, and keeps to it while others are still leaving', async () => {
    const { submit, assigned } = bound(
      await started({ 'scheduling.strategy': 'isolation', 'scheduling.isolated-topologies': ['alone=1'] }),
    );
    const machines = ['a', 'b', 'c'];
    for (const machine of machines) await announce(machine, [1, 2], 2, 1024);
    const others = await submit('others', 3, { tasks: 6, settings: QUIET });
    const spread = await assigned(others, ({ slots }) => slots.length === 3);
    for (const machine of machines) await harness!.report(machine, [spread]);
    await harness!.settle();
    const alone = await submit('alone', 2, { settings: QUIET });
    // Nobody carries the moves out yet: what is being left is still held.
    const targets = new Set<string>();
    for (let turn = 0; turn < 8; turn++) {
      await round(1);
      for (const machine of machines) await harness!.report(machine, [spread]);
      targets.add(JSON.stringify((await harness!.outside.readAssignment(others))?.target?.slots));
    }
    expect(targets.size).toBe(1);
    const settled = await harness!.carryOut(others, machines);
    const own = await assigned(alone, ({ slots }) => slots.length === 2);
    const taken = new Set(own.slots.map(({ supervisor }) => supervisor));
    expect(taken.size).toBe(1);
    expect(settled.slots.some(({ supervisor }) => taken.has(supervisor))).toBe(false);
  });

  it("multitenant keeps a user's topologies within its pool", async () => {
    const { submit, assigned } = bound(
      await started({ 'scheduling.strategy': 'multitenant', 'scheduling.user-pools': ['ann=1'] }),
    );
    await announce('a', [1, 2], 2, 1024);
    await announce('b', [1, 2], 2, 1024);
    const ann = await submit('hers', 2, { settings: { ...QUIET, 'topology.owner': 'ann' } });
    const hers = await assigned(ann, ({ slots }) => slots.length === 2);
    expect(new Set(hers.slots.map(({ supervisor }) => supervisor)).size).toBe(1);
    const bob = await submit('his', 2, { settings: { ...QUIET, 'topology.owner': 'bob' } });
    const his = await assigned(bob, ({ slots }) => slots.length > 0);
    expect(his.slots.some(({ supervisor }) => supervisor === hers.slots[0]!.supervisor)).toBe(false);
  });

  it('a supervisor that lost slots in several rounds gets nothing new until its time is over', async () => {
    const { submit, assigned } = bound(
      await started({
        'scheduling.strategy': 'default',
        'scheduling.blacklist': true,
        'blacklist.tolerance-count': 2,
        'blacklist.tolerance-time': 10_000,
        'blacklist.resume-time': 60_000,
      }),
    );
    await announce('a', [1, 2, 3], 2, 1024);
    await announce('b', [1, 2, 3], 2, 1024);
    await assigned(await submit('first', 1, { settings: QUIET }), ({ slots }) => slots.length === 1);
    await round(4);
    await announce('a', [1, 2], 2, 1024);
    await round(4);
    const during = await assigned(
      await submit('during', 2, { settings: QUIET }),
      ({ slots }) => slots.length === 2,
    );
    expect(during.slots.map(({ supervisor }) => supervisor)).toEqual(['b', 'b']);
    await announce('a', [1, 2, 3], 2, 1024);
    await round(70);
    const after = await assigned(
      await submit('after', 2, { settings: QUIET }),
      ({ slots }) => slots.length === 2,
    );
    expect(after.slots.map(({ supervisor }) => supervisor)).toContain('a');
  });
});

/** So many periodic rounds. */
async function round(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    harness!.clock.advance(1000);
    await harness!.settle();
  }
}

function bound(
  own: NimbusHarness,
): Pick<NimbusHarness, 'submit' | 'assigned'> & { nimbus: () => NimbusHarness['nimbus'] } {
  return { submit: own.submit.bind(own), assigned: own.assigned.bind(own), nimbus: () => own.nimbus };
}
