/**
 * The counts of one component: configuration → tasks and executors. What a submission may ask for is checked in
 * `submission.ts` (as Storm's server does) and `plan-topology.ts` (as Isobar does).
 */

/** What is asked for one component, its own configuration already laid over that of topology and cluster. */
export interface ComponentRequest {
  readonly id: string;
  /** Parallelism hint; null: none was given, which means 1. */
  readonly hint: number | null;
  readonly tasks: number | null;
  /** Upper limit of tasks; it does not limit the stored executors. */
  readonly maxTasks: number | null;
}

export interface ComponentCounts {
  readonly id: string;
  readonly tasks: number;
  /** The hint as it was asked for; a rebalance starts from it. */
  readonly storedExecutors: number;
  /** Executors that will exist: never more than tasks. */
  readonly executors: number;
}

/** Normalises the counts of one component. Source: Storm's `normalizeTopology`. */
export function normaliseComponent({ id, hint, tasks, maxTasks }: ComponentRequest): ComponentCounts {
  const storedExecutors = hint ?? 1;
  const asked = tasks ?? storedExecutors;
  const count = maxTasks === null ? asked : Math.min(maxTasks, asked);
  return {
    id,
    tasks: count,
    storedExecutors,
    executors: Math.max(0, Math.min(storedExecutors, count)),
  };
}

/** A limit that a topology exceeds. */
export interface ExceededLimit {
  readonly what: 'workers' | 'executors';
  readonly asked: number;
  readonly limit: number;
}

/**
 * The first limit exceeded, workers before executors. Executors are the sum of the hints of user components: not
 * reduced to tasks, without system components.
 */
export function exceededLimit(
  asked: { readonly workers: number; readonly executors: number },
  limits: { readonly maxWorkers: number | null; readonly maxExecutors: number | null },
): ExceededLimit | undefined {
  if (limits.maxWorkers !== null && asked.workers > limits.maxWorkers) {
    return { what: 'workers', asked: asked.workers, limit: limits.maxWorkers };
  }
  if (limits.maxExecutors !== null && asked.executors > limits.maxExecutors) {
    return { what: 'executors', asked: asked.executors, limit: limits.maxExecutors };
  }
  return undefined;
}
