/**
 * A topology of BENCH_EXECUTORS executors of BENCH_TASKS tasks that does little: a tenth of them are spouts with positions, each task with ten rows
 * a second. What is measured is what its being there costs the coordinator.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from 'isobar';

const executors = Number(process.env['BENCH_EXECUTORS'] ?? 10);
/** Of each executor. */
const tasks = Number(process.env['BENCH_TASKS'] ?? 1);
const ROW_INTERVAL_MS = 100;

const ticks = spout({
  emits: { n: t.int32 },
  async *read(_context, from: number = 0) {
    for (let n = from; ; n++) {
      await pause(ROW_INTERVAL_MS);
      yield { row: { n }, position: n + 1 };
    }
  },
});

const sink = bolt({ takes: { n: t.int32 }, process: () => undefined });

export default topology('ticks', (b) => {
  const spouts = Math.max(1, Math.floor(executors / 10));
  const source = b.spout('ticks', ticks, { parallelism: spouts, tasks: spouts * tasks });
  b.bolt('sink', sink, { parallelism: executors - spouts, tasks: (executors - spouts) * tasks }).shuffle(
    source,
  );
});
