/** Flink's cases from a job to machines: sharing, choice of machines, matching. */
import { z } from 'zod';
import { coldStart } from '../../../src/scheduling/index.js';
import type { VectorCase } from '../read-cases.js';
import { descending, oneOf } from './flink-matching.js';
import { graphSchema } from './flink-sharing.js';
import { exact, type Facts } from './operation.js';

const MODES = { NONE: 'none', SLOTS: 'slots', TASKS: 'tasks', MIN_RESOURCES: 'min-resources' } as const;
const jobSchema = z.object({
  scheduler: z.enum(['DEFAULT', 'ADAPTIVE']).default('DEFAULT'),
  mode: z.enum(['NONE', 'SLOTS', 'TASKS', 'MIN_RESOURCES']),
  jobType: z.enum(['STREAMING', 'BATCH']).default('STREAMING'),
  taskManagers: z.array(z.object({ id: z.string(), slots: z.int() })),
});

export function runFlinkEndToEnd({ input }: VectorCase): Facts {
  const { scheduler, mode, jobType, taskManagers } = jobSchema.parse(input);
  const result = coldStart({
    graph: graphSchema.parse(input),
    mode: MODES[mode],
    isAdaptive: scheduler === 'ADAPTIVE',
    isBatch: jobType === 'BATCH',
    machines: taskManagers,
  });
  const { requiredSlots, slotsPerMachine, tasksPerMachine } = result;
  const byMachine = (counts: Int32Array): Record<string, number> =>
    Object.fromEntries(taskManagers.map(({ id }, index) => [id, counts[index] ?? 0]));
  if (slotsPerMachine === undefined) return { scheduled: exact(false), requiredSlots: exact(requiredSlots) };
  const sorted = descending(tasksPerMachine);
  return {
    scheduled: exact(true),
    requiredSlots: exact(requiredSlots),
    slotsPerTm: exact(byMachine(slotsPerMachine)),
    tasksPerTm: exact(byMachine(tasksPerMachine)),
    allowedSortedTasks: oneOf(sorted),
    sortedTasks: exact(sorted),
    range: exact((sorted[0] ?? 0) - (sorted.at(-1) ?? 0)),
    bestPossibleMaxOnSameSlots: { check: () => undefined },
    flinkAlsoReaches: { check: () => undefined },
  };
}
