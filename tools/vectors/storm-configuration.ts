/** Reads numbers of a Storm configuration as the vectors give it: only keys that differ from Storm's defaults. */
import { z } from 'zod';
import type { MetricsConsumer } from '../../src/scheduling/index.js';

export type StormConfiguration = Readonly<Record<string, unknown>>;

/** Defaults of the keys that the vectors use; keys without a default are null. */
const DEFAULTS: StormConfiguration = {
  'topology.workers': 1,
  'topology.eventlogger.executors': 0,
  'topology.ras.acker.executors.per.worker': 1,
  'topology.component.cpu.pcore.percent': 10,
  'topology.component.resources.onheap.memory.mb': 128,
  'topology.component.resources.offheap.memory.mb': 0,
  'worker.heap.memory.mb': 768,
  'topology.worker.max.heap.size.mb': 768,
  'topology.priority': 29,
  'topology.scheduler.strategy': 'DefaultResourceAwareStrategy',
  'topology.ras.constraint.max.state.search': 10_000,
  'resource.aware.scheduler.constraint.max.state.search': 100_000,
  'storm.worker.min.cpu.pcore.percent': 0,
  'nimbus.even.rebalance.max.free.per.topology': 0,
  'nimbus.even.rebalance.idle.supervisor.min.stable.rounds': 3,
  'supervisor.monitor.frequency.secs': 3,
};

/** Lays configurations over Storm's defaults, weakest first. */
export function configuration(...layers: readonly StormConfiguration[]): StormConfiguration {
  return Object.assign({}, DEFAULTS, ...layers) as StormConfiguration;
}

/** A number, or null if it is not set. */
export function numberOrNull(conf: StormConfiguration, key: string): number | null {
  return (
    z
      .number({ error: `${key} must be a number` })
      .nullish()
      .parse(conf[key]) ?? null
  );
}

/** A number that has a default. */
export function number(conf: StormConfiguration, key: string): number {
  return z.number({ error: `${key} must be a number` }).parse(conf[key]);
}

const consumersSchema = z
  .array(z.object({ class: z.string(), 'parallelism.hint': z.int().optional() }))
  .nullish();

export function metricsConsumers(conf: StormConfiguration): MetricsConsumer[] {
  const registered = consumersSchema.parse(conf['topology.metrics.consumer.register']) ?? [];
  return registered.map((one) => ({ className: one.class, parallelism: one['parallelism.hint'] ?? 1 }));
}

/** The on-heap or off-heap request of a component by the topology's configuration alone, MB. */
export function memoryMb(
  conf: StormConfiguration,
  kind: 'onheap' | 'offheap',
  component: 'acker' | 'user',
): number {
  const legacyKey = `topology.component.resources.${kind}.memory.mb`;
  const map =
    z.record(z.string(), z.number()).nullish().parse(conf['topology.component.resources.map']) ?? {};
  const ofAcker =
    component === 'acker' ? numberOrNull(conf, `topology.acker.resources.${kind}.memory.mb`) : null;
  return map[`${kind}.memory.mb`] ?? map[legacyKey] ?? ofAcker ?? number(conf, legacyKey);
}
