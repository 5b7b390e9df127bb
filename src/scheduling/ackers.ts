/**
 * How many ackers a topology has, and for the resource-aware scheduler how many go to each worker.
 * Source: Storm's `StormCommon.numStartExecutors` of the acker and `Nimbus.setUpAckerExecutorConfigs`.
 */

/** Acker tasks and executors: the setting, or one per worker. 0 turns acking off. */
export function ackerCount(asked: { readonly setting: number | null; readonly workers: number }): number {
  return asked.setting ?? asked.workers;
}

/** Is acking on? Decided by the setting alone. */
export function hasAckers(setting: number | null): boolean {
  return setting === null || setting > 0;
}

export interface AckerEstimateInput {
  /** User components after their tasks were normalised. */
  readonly components: readonly { readonly tasks: number; readonly onHeapMb: number }[];
  readonly workers: number;
  readonly ackers: number | null;
  readonly ackersPerWorker: number;
  readonly maxTasks: number | null;
  readonly ackerOnHeapMb: number;
  readonly ackerOffHeapMb: number;
  readonly workerMaxHeapMb: number;
  /** null: one per estimated worker. */
  readonly eventLoggers: number | null;
}

export interface AckerEstimate {
  readonly estimatedHeapMb: number;
  readonly estimatedWorkers: number;
  readonly ackers: number;
  readonly ackersPerWorker: number;
  readonly eventLoggers: number;
}

/**
 * Counts for the resource-aware scheduler, which ignores `topology.workers` and estimates workers from heap.
 * As in Storm the ignored setting still leaks into the estimate: without an acker setting it stands for the ackers' heap.
 */
export function estimateAckers(input: AckerEstimateInput): AckerEstimate {
  const { maxTasks } = input;
  const cap = (count: number): number => (maxTasks === null ? count : Math.min(maxTasks, count));
  const ackersForHeap = cap(ackerCount({ setting: input.ackers, workers: input.workers }));
  let estimatedHeapMb = ackersForHeap * (input.ackerOnHeapMb + input.ackerOffHeapMb);
  for (const { tasks, onHeapMb } of input.components) estimatedHeapMb += cap(tasks) * onHeapMb;
  const estimatedWorkers = Math.ceil(estimatedHeapMb / input.workerMaxHeapMb);
  const eventLoggers = input.eventLoggers ?? estimatedWorkers;
  if (input.ackers === null) {
    const { ackersPerWorker } = input;
    return {
      estimatedHeapMb,
      estimatedWorkers,
      ackers: estimatedWorkers * ackersPerWorker,
      ackersPerWorker,
      eventLoggers,
    };
  }
  const ackersPerWorker = estimatedWorkers === 0 ? 0 : Math.ceil(input.ackers / estimatedWorkers);
  return { estimatedHeapMb, estimatedWorkers, ackers: input.ackers, ackersPerWorker, eventLoggers };
}

export interface AckerBinding {
  readonly workerMaxHeapMb: number;
  /** On-heap request of the executor that opened the worker. */
  readonly executorOnHeapMb: number;
  readonly ackerOnHeapMb: number;
  readonly unassignedAckers: number;
  readonly ackersPerWorker: number;
  readonly executorIsAcker: boolean;
  readonly oneExecutorPerWorker: boolean;
  readonly oneComponentPerWorker: boolean;
}

/** How many ackers are bound to a worker that an ordinary executor has just opened. */
export function ackersToBind(binding: AckerBinding): number {
  if (binding.executorIsAcker || binding.oneExecutorPerWorker || binding.oneComponentPerWorker) return 0;
  const roomMb = Math.max(0, binding.workerMaxHeapMb - binding.executorOnHeapMb);
  const fitting = binding.ackerOnHeapMb > 0 ? Math.floor(roomMb / binding.ackerOnHeapMb) : Infinity;
  return Math.max(0, Math.min(fitting, binding.unassignedAckers, binding.ackersPerWorker));
}
