/** The heap limit of an executor thread, from what its executors have asked for. Pure. */

/** Below this a thread could not even load a topology's code. MB. */
const MINIMUM_MB = 32;

/**
 * The sum over the executors of a thread, MB; null (no limit of its own) as soon as one of them has asked for nothing in particular,
 * and while it has none.
 *
 * @param components of each executor of the thread
 * @param executorHeapMb what one executor asks for, by component
 */
export function threadHeapMb(
  components: readonly string[],
  executorHeapMb: Readonly<Record<string, number>>,
): number | null {
  let sumMb = 0;
  for (const component of components) {
    const heapMb = Object.hasOwn(executorHeapMb, component) ? executorHeapMb[component] : undefined;
    if (heapMb === undefined) return null;
    sumMb += heapMb;
  }
  return components.length === 0 ? null : Math.max(MINIMUM_MB, Math.ceil(sumMb));
}
