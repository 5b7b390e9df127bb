import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FoldedHeartbeat, WorkerHeartbeat } from '../coordination/index.js';
import { NimbusHarness, until } from './testing/nimbus-harness.js';

let harness: NimbusHarness;

beforeEach(async () => {
  harness = await NimbusHarness.create();
});

afterEach(async () => {
  await harness.close();
});

const published = (): Promise<FoldedHeartbeat> =>
  until('a heartbeat', () => harness.outside.readHeartbeat('s1'));

/** The worker of slot 1 has counted, has ended, and has a successor that has counted nothing. */
async function succeeded(id: string, acked: number): Promise<WorkerHeartbeat> {
  const assignment = await harness.assigned(id, ({ slots }) => slots.length > 0);
  await harness.report('s1', [assignment], () => ({ acked }));
  const { slots, ...rest } = await published();
  const last = slots[0]!.heartbeat!;
  const workerId = `${last.workerId}-next`;
  const fresh = last.tasks.map((task) => ({ ...task, acked: 0 }));
  await harness.outside.publishHeartbeat({
    ...rest,
    sequence: rest.sequence + 1,
    slots: slots.map((slot) => ({
      ...slot,
      workerId,
      heartbeat: { ...last, workerId, generation: 2, tasks: fresh },
    })),
    lastReports: [last],
  });
  return last;
}

const acknowledged = async (): Promise<string> => (await harness.outside.readAcknowledged('s1')).join();

async function ackedTotal(): Promise<number> {
  const { topologies } = await harness.nimbus.status();
  return topologies[0]?.components.reduce((sum, { acked }) => sum + acked, 0) ?? 0;
}

describe('last reports', () => {
  it('are acknowledged once what they say is stored, and count over a restart of Nimbus', async () => {
    await harness.announce('s1', [1]);
    const id = await harness.submit('words', 1);
    // Two tasks of two components; Nimbus may not have seen the heartbeat before the last report came.
    const { workerId } = await succeeded(id, 5);
    await until('the totals', async () => (await ackedTotal()) === 20);
    // Totals are written at most once a second.
    await until('the acknowledgement', async () => {
      harness.clock.advance(100);
      return (await acknowledged()) === workerId;
    });
    const { slots, ...rest } = await published();
    await harness.outside.publishHeartbeat({ ...rest, sequence: 100, slots, lastReports: [] });
    await harness.restartNimbus();
    await until('the totals again', async () => (await ackedTotal()) === 20);
  });

  it('of a topology that has been removed are acknowledged, since nobody wants them', async () => {
    await harness.announce('s1', [1]);
    const id = await harness.submit('words', 1);
    const { workerId } = await succeeded(id, 5);
    await until('the acknowledgement', async () => {
      harness.clock.advance(100);
      return (await acknowledged()) === workerId;
    });
    await harness.nimbus.kill('words', 0);
    const { slots, ...rest } = await published();
    const [other] = rest.lastReports;
    const late = { ...other!, workerId: 'late' };
    await harness.outside.publishHeartbeat({ ...rest, sequence: 100, slots: [], lastReports: [late] });
    await until('the removal', async () => (await harness.record(id)) === undefined);
    await until('the acknowledgement of the late one', async () => {
      harness.clock.advance(100);
      return (await acknowledged()) === 'late';
    });
    expect(slots).toHaveLength(1);
  });
});
