/** Limits of a worker from its assignment, in a cluster of `isobar dev` under the strategy resource-aware. */
import { afterEach, expect, it } from 'vitest';
import { until, Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

const workshop = new Workshop();
afterEach(() => workshop.close());

/** Each thread says what heap it may have; the sink keeps 8 MB of a buffer for each row. */
const APP = `
import { setTimeout as pause } from 'node:timers/promises';
import { resourceLimits } from 'node:worker_threads';
import { bolt, spout, t, topology } from 'isobar';
const numbers = spout({
  emits: { n: t.int32 },
  async *read(context, from = 0) {
    for (let n = from; !context.signal.aborted; n++) {
      yield { row: { n }, position: n + 1 };
      await pause(10);
    }
  },
});
const keep = bolt({
  takes: { n: t.int32 },
  prepare(context) {
    const kept = [];
    console.log('heap ' + resourceLimits.maxOldGenerationSizeMb);
    return { process: () => void kept.push(Buffer.alloc(8 * 1048576, 1)) };
  },
});
export default topology('greedy', {
  'topology.ackers': 0,
  'topology.executor-threads': 1,
  'topology.component-heap': '50MB',
  'topology.component-off-heap': '20MB',
}, (b) => {
  b.bolt('keep', keep, { parallelism: 2 }).shuffle(b.spout('numbers', numbers));
});
`;

it('a worker that takes more than its executors asked for is stopped, says why, and runs again with the heap that they asked for', async () => {
  const cluster = new DevCluster(workshop);
  // The soft rules are switched off: whatever else this machine does, only the hard limit decides.
  await cluster.ask(
    ...['--supervisor', 'name=a,slots=2,memory=4GB,cores=4', '--set', 'scheduling.strategy=resource-aware'],
    ...['--set', 'supervisor.memory-hard-multiplier=1', '--set', 'supervisor.memory-hard-overage=32MB'],
    ...['--set', 'supervisor.memory-low=0', '--set', 'supervisor.memory-medium=0', '--set', 'metrics.port=0'],
  );
  await cluster.submit(workshop.write('app.ts', APP));
  const first = await cluster.untilRunning('greedy');
  const problem = await cluster.untilTopology('its worker is stopped', 'greedy', ({ workers }) => {
    const found = workers.find(({ lastProblem }) => lastProblem?.code === 'WORKER_MEMORY_EXCEEDED');
    return found?.lastProblem?.message;
  });
  // Three executors ask for 50 and 20 MB each; with the margin 338 MB, and 32 MB more are tolerated here.
  expect(problem).toMatch(
    /^worker greedy-\S+ \(pid \d+\) took \d+ MB, and its limit is 338 MB \(heap 150, off-heap 60, margin 128\): more than 370 MB is never left alone/,
  );
  const again = await cluster.untilTopology('another worker', 'greedy', ({ workers }) =>
    workers.map(({ pid }) => pid).find((pid) => pid !== null && ![...first.values()].includes(pid)),
  );
  expect(again).toBeGreaterThan(0);
  const { stdout } = await workshop.run(['logs', 'greedy', 'keep', '--directory', cluster.directory]);
  expect(stdout).toContain('heap 150');
  expect((await workshop.run(['kill', 'greedy', '-w', '0', '--directory', cluster.directory])).code).toBe(0);
  await cluster.ask('stop');
  await until('no process is left', () => workshop.processes().length === 0);
}, 300_000);
