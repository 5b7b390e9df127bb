/** The cluster of a case as a snapshot. */
import { z } from 'zod';
import type { ClusterSnapshot } from '../../../src/scheduling/index.js';
import { configurationSchema, workerSchema } from './operation.js';

export const snapshotSchema = z.object({
  supervisors: z.array(
    z.object({
      id: z.string(),
      host: z.string().optional(),
      ports: z.array(z.int()),
      uptimeSecs: z.number().optional(),
    }),
  ),
  topologies: z.array(
    z.object({
      id: z.string(),
      name: z.string().optional(),
      numWorkers: z.int().default(1),
      executors: z.array(z.tuple([z.int(), z.int(), z.string()])),
      owner: z.string().default('user'),
      conf: configurationSchema,
    }),
  ),
  assignments: z.record(z.string(), z.array(workerSchema)).default({}),
  blacklistedHosts: z.array(z.string()).default([]),
  scheduleOnly: z.array(z.string()).optional(),
  conf: configurationSchema,
});

export function toSnapshot(parsed: z.infer<typeof snapshotSchema>): ClusterSnapshot {
  return {
    supervisors: parsed.supervisors.map(({ id, host, ports, uptimeSecs }) => ({
      id,
      host: host ?? id,
      ports,
      ...(uptimeSecs === undefined ? {} : { uptimeMs: uptimeSecs * 1000 }),
    })),
    topologies: parsed.topologies.map(({ id, name, numWorkers, executors, owner, conf }) => ({
      id,
      ...(name === undefined ? {} : { name }),
      workers: numWorkers,
      executors: executors.map(([first, last, component]) => ({ range: [first, last], component })),
      owner,
      rules: rulesOf(conf),
    })),
    placement: new Map(Object.entries(parsed.assignments)),
    blacklistedHosts: new Set(parsed.blacklistedHosts),
    ...(parsed.scheduleOnly === undefined ? {} : { scheduleOnly: new Set(parsed.scheduleOnly) }),
  };
}

const rulesSchema = z.object({
  'topology.isolate.machines': z.int().nullish(),
  'topology.spread.components': z.array(z.string()).nullish(),
});

/** What multitenant looks at. */
function rulesOf(conf: unknown): NonNullable<ClusterSnapshot['topologies'][number]['rules']> {
  const parsed = rulesSchema.parse(conf ?? {});
  const machines = parsed['topology.isolate.machines'];
  return {
    ...(machines == null ? {} : { isolatedMachines: machines }),
    spreadComponents: parsed['topology.spread.components'] ?? [],
  };
}
