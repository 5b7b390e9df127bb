/** Slots are short because a machine is gone: a topology that lost its only worker gets a slot of one that has more than its share. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

let workshop: Workshop;
let cluster: DevCluster;
beforeEach(() => {
  workshop = new Workshop();
  cluster = new DevCluster(workshop);
});
afterEach(() => workshop.close());

/** A source and so many bolts, with a worker for each bolt. */
const app = (name: string, workers: number): string => `
  import { bolt, spout, t, topology } from 'isobar';
  const numbers = spout({
    emits: { n: t.int32 },
    async *read(_context, from = 0) {
      for (let n = from; ; n++) {
        yield { row: { n: n % 1000 }, position: n + 1 };
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  });
  const sink = bolt({ takes: { n: t.int32 }, process() {} });
  export default topology('${name}', { 'topology.workers': ${workers} }, (b) => {
    b.bolt('sink', sink, { parallelism: ${workers} }).shuffle(b.spout('numbers', numbers));
  });`;

it('is given up by one worker, whose executors go on, and both have all that they want when the machine returns', async () => {
  await cluster.ask('--supervisors', '2', '-s', 'supervisor.slots=2', '-s', 'slot.wait-timeout=500ms');
  await cluster.submit(workshop.write('big.ts', app('big', 3)));
  await cluster.untilRunning('big');
  await cluster.submit(workshop.write('small.ts', app('small', 1)));
  const [place = ''] = (await cluster.untilRunning('small')).keys();
  const [machine = ''] = place.split(':');
  await cluster.ask('supervisor', 'stop', machine, '--crash');
  const counts = async (small: number, big: number): Promise<void> => {
    for (const [name, workers] of [
      ['small', small],
      ['big', big],
    ] as const)
      await cluster.untilTopology(
        `${workers} workers of ${name}`,
        name,
        (status) => status.isReady && status.workers.length === workers && status.unplacedExecutors === 0,
      );
  };
  await counts(1, 1);
  await cluster.untilRowsFlow('small');
  await cluster.untilRowsFlow('big');
  await cluster.ask('supervisor', 'start', machine);
  await counts(1, 3);
  await cluster.untilRowsFlow('big');
  const { workers } = (await cluster.topology('small'))!;
  expect(workers.map(({ restarts }) => restarts)).toEqual([0]);
});
