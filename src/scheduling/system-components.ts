/** Which components Isobar adds to a topology, and how many tasks they have. */
import { ACKER, EVENT_LOGGER, METRICS_PREFIX } from '../base/index.js';

/** A consumer of metrics, as a cluster's or topology's configuration registers it. */
export interface MetricsConsumer {
  readonly className: string;
  /** Executors and tasks. */
  readonly parallelism: number;
}

/** Component ids of metrics consumers: `__metrics_` and the class, from the second of a class on with `#2`, `#3`, … */
export function metricsConsumerIds(consumers: readonly MetricsConsumer[]): readonly string[] {
  const seen = new Map<string, number>();
  return consumers.map(({ className }) => {
    const count = (seen.get(className) ?? 0) + 1;
    seen.set(className, count);
    return `${METRICS_PREFIX}${className}${count === 1 ? '' : `#${count}`}`;
  });
}

export interface SystemCounts {
  readonly ackers: number;
  readonly eventLoggers: number;
  readonly metricsConsumers: readonly MetricsConsumer[];
}

/** Task counts of the system components that are scheduled; `__system` is not: every worker has its own. */
export function systemTaskCounts(
  counts: SystemCounts,
): readonly (readonly [component: string, tasks: number])[] {
  const ids = metricsConsumerIds(counts.metricsConsumers);
  return [
    [ACKER, counts.ackers],
    [EVENT_LOGGER, counts.eventLoggers],
    ...counts.metricsConsumers.map((consumer, index) => [ids[index]!, consumer.parallelism] as const),
  ];
}
