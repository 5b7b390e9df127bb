/** Operations about counts: integerDivided, partitionFixed, computeExecutors, taskInfo, ackerCount, ackersToBind. */
import { z } from 'zod';
import {
  ackerCount,
  ackersToBind,
  type ComponentTasks,
  computeExecutors,
  estimateAckers,
  type ExecutorRange,
  hasAckers,
  integerDivided,
  numberTasks,
  partitionFixed,
  systemTaskCounts,
  totalTasks,
} from '../../../src/scheduling/index.js';
import { configuration, memoryMb, metricsConsumers, number, numberOrNull } from '../storm-configuration.js';
import { configurationSchema, countsSchema, exact, type Operation, sets } from './operation.js';

export const runIntegerDivided: Operation = ({ input }) => {
  const { sum, pieces } = z.object({ sum: z.int(), pieces: z.int() }).parse(input);
  return { distribution: exact(Object.fromEntries(integerDivided(sum, pieces))) };
};

export const runPartitionFixed: Operation = ({ input }) => {
  const { maxChunks, items } = z.object({ maxChunks: z.int(), items: z.array(z.unknown()) }).parse(input);
  return { chunks: exact(partitionFixed(maxChunks, items)) };
};

const computeExecutorsSchema = z.object({
  componentToTasks: z.record(z.string(), z.array(z.int())),
  componentExecutors: z.record(z.string(), z.int().nullable()),
});

export const runComputeExecutors: Operation = ({ input }) => {
  const { componentToTasks, componentExecutors } = computeExecutorsSchema.parse(input);
  const counts = new Map(
    Object.entries(componentExecutors).flatMap(([id, count]) =>
      count === null ? [] : [[id, count] as const],
    ),
  );
  const executors: [...ExecutorRange, string][] = [];
  for (const [component, unordered] of Object.entries(componentToTasks)) {
    const tasks = unordered.sort((a, b) => a - b);
    const run = toRun(component, tasks);
    // A component's tasks are numbered without gaps; lists with gaps are split as lists.
    const ranges =
      run === undefined
        ? partitionFixed(counts.get(component) ?? 0, tasks).map(
            (chunk) => [chunk[0]!, chunk.at(-1)!] as const,
          )
        : computeExecutors([run], counts).map(({ range }) => range);
    executors.push(...ranges.map(([first, last]): [number, number, string] => [first, last, component]));
  }
  return { executors: exact(executors.sort(([a], [b]) => a - b)) };
};

function toRun(component: string, tasks: readonly number[]): ComponentTasks | undefined {
  const first = tasks[0];
  const last = tasks.at(-1);
  if (first === undefined || last === undefined || last - first !== tasks.length - 1) return undefined;
  return { component, first, last };
}

const taskInfoSchema = z.object({
  topologyConf: configurationSchema,
  clusterConf: configurationSchema,
  componentTasks: countsSchema,
});

export const runTaskInfo: Operation = ({ input }) => {
  const { topologyConf, clusterConf, componentTasks } = taskInfoSchema.parse(input);
  const conf = configuration(clusterConf, topologyConf);
  const workers = numberOrNull(conf, 'topology.workers') ?? 1;
  const numbered = numberTasks([
    ...Object.entries(componentTasks),
    ...systemTaskCounts({
      ackers: ackerCount({ setting: numberOrNull(conf, 'topology.acker.executors'), workers }),
      eventLoggers: numberOrNull(conf, 'topology.eventlogger.executors') ?? workers,
      metricsConsumers: metricsConsumers(conf),
    }),
  ]);
  const lists = numbered.map(({ component, first, last }) => [
    component,
    Array.from({ length: last - first + 1 }, (_, index) => first + index),
  ]);
  return { componentToTasks: exact(Object.fromEntries(lists)), totalTasks: exact(totalTasks(numbered)) };
};

const ackerCountSchema = z.object({
  resourceAware: z.boolean().default(false),
  topologyConf: configurationSchema,
  clusterConf: configurationSchema,
  components: z
    .array(z.object({ id: z.string(), tasks: z.int(), onHeapMb: z.number().optional() }))
    .default([]),
});

export const runAckerCount: Operation = ({ input }) => {
  const { resourceAware, topologyConf, clusterConf, components } = ackerCountSchema.parse(input);
  const conf = configuration(clusterConf, topologyConf);
  const setting = numberOrNull(conf, 'topology.acker.executors');
  const workers = numberOrNull(conf, 'topology.workers') ?? 1;
  if (!resourceAware) {
    const count = ackerCount({ setting, workers });
    return { ackerTasks: exact(count), ackerExecutors: exact(count), hasAckers: exact(hasAckers(setting)) };
  }
  const estimate = estimateAckers({
    components: components.map(({ tasks, onHeapMb }) => ({
      tasks,
      onHeapMb: onHeapMb ?? memoryMb(conf, 'onheap', 'user'),
    })),
    workers,
    ackers: setting,
    ackersPerWorker: number(conf, 'topology.ras.acker.executors.per.worker'),
    maxTasks: numberOrNull(conf, 'topology.max.task.parallelism'),
    ackerOnHeapMb: memoryMb(conf, 'onheap', 'acker'),
    ackerOffHeapMb: memoryMb(conf, 'offheap', 'acker'),
    workerMaxHeapMb:
      numberOrNull(conf, 'topology.worker.max.heap.size.mb') ?? number(conf, 'worker.heap.memory.mb'),
    eventLoggers: numberOrNull(conf, 'topology.eventlogger.executors'),
  });
  return {
    estimatedHeapMb: exact(estimate.estimatedHeapMb),
    estimatedWorkers: exact(estimate.estimatedWorkers),
    ackerExecutors: exact(estimate.ackers),
    ackersPerWorker: exact(estimate.ackersPerWorker),
    eventLoggerExecutors: exact(estimate.eventLoggers),
    hasAckers: exact(hasAckers(estimate.ackers)),
  };
};

const ackersToBindSchema = z.object({
  workerMaxHeapMb: z.number(),
  executorOnHeapMb: z.number(),
  ackerOnHeapMb: z.number(),
  unassignedAckers: z.int(),
  ackersPerWorker: z.int(),
  executorIsAcker: z.boolean().default(false),
  oneExecutorPerWorker: z.boolean().default(false),
  oneComponentPerWorker: z.boolean().default(false),
});

export const runAckersToBind: Operation = ({ input }) => ({
  ackersToBind: sets(ackersToBind(ackersToBindSchema.parse(input))),
});
