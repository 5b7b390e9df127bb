/** Operations of the scheduling round: aliveExecutors, startTimes. Times are seconds, as Storm keeps them. */
import { z } from 'zod';
import {
  type ExecutorRange,
  isAlive,
  livenessLimits,
  restrictToAlive,
  startTimes,
} from '../../../src/scheduling/index.js';
import { exact, type Facts, type Operation, rangeSchema, sets, workerSchema } from './operation.js';

const aliveSchema = z.object({
  nowSecs: z.number(),
  executors: z.array(
    z.object({
      id: rangeSchema,
      startTimeSecs: z.number().nullish(),
      lastHeartbeatSecs: z.number().nullish(),
    }),
  ),
  topologyWorkerTimeoutSecs: z.number().nullish(),
  nimbusTaskTimeoutSecs: z.number().default(30),
  nimbusTaskLaunchSecs: z.number().default(120),
  assignment: z.array(workerSchema).optional(),
  supervisorPorts: z.record(z.string(), z.array(z.int())).default({}),
});

export const runAliveExecutors: Operation = ({ input }) => {
  const parsed = aliveSchema.parse(input);
  const limits = livenessLimits({
    clusterTimeoutMs: parsed.nimbusTaskTimeoutSecs * 1000,
    topologyTimeoutMs:
      parsed.topologyWorkerTimeoutSecs == null ? null : parsed.topologyWorkerTimeoutSecs * 1000,
    launchTimeoutMs: parsed.nimbusTaskLaunchSecs * 1000,
  });
  const alive: ExecutorRange[] = [];
  const dead: ExecutorRange[] = [];
  for (const { id, startTimeSecs, lastHeartbeatSecs } of parsed.executors) {
    const signs = { startedMs: toMs(startTimeSecs), lastHeartbeatMs: toMs(lastHeartbeatSecs) };
    (isAlive(signs, limits, parsed.nowSecs * 1000) ? alive : dead).push(id);
  }
  const facts: Facts = {
    alive: sets(alive),
    dead: sets(dead),
    heartbeatTimeoutSecs: exact(limits.heartbeatTimeoutMs / 1000),
    launchTimeoutSecs: exact(limits.launchTimeoutMs / 1000),
  };
  if (parsed.assignment === undefined) return facts;
  const living = new Set(alive.map(String));
  const { workers, deadPorts } = restrictToAlive(parsed.assignment, (range) => living.has(String(range)));
  const visible = Object.entries(parsed.supervisorPorts).map(([id, ports]) => [
    id,
    ports.filter((port) => !(deadPorts.get(id)?.includes(port) ?? false)),
  ]);
  return {
    ...facts,
    deadPorts: { value: Object.fromEntries(deadPorts), compare: 'sets-without-empty' },
    visiblePorts: { value: Object.fromEntries(visible), compare: 'sets-without-empty' },
    schedulerAssignment: sets(
      workers.map(({ supervisor: node, port, executors }) => ({ node, port, executors })),
    ),
  };
};

function toMs(seconds: number | null | undefined): number | undefined {
  return seconds == null ? undefined : seconds * 1000;
}

const startTimesSchema = z.object({
  nowSecs: z.number(),
  oldStartTimes: z.record(z.string(), z.number()),
  oldAssignment: z.array(workerSchema),
  newAssignment: z.array(workerSchema),
});

export const runStartTimes: Operation = ({ input }) => {
  const { nowSecs, oldStartTimes, oldAssignment, newAssignment } = startTimesSchema.parse(input);
  const before = { workers: oldAssignment, times: new Map(Object.entries(oldStartTimes)) };
  const { changed, times } = startTimes(before, newAssignment, nowSecs);
  return { changedExecutors: sets(changed), startTimes: exact(Object.fromEntries(times)) };
};
