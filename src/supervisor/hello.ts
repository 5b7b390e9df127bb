/** Whether a process that says hello is, or may become, the worker of its slot. Pure. */
import type { WorkerHello } from '../coordination/index.js';
import { workerOf, type Desired, type SlotState } from './slot-plan.js';

export type HelloVerdict = 'accept' | 'adopt' | 'refuse';

/**
 * Accepts the slot's own worker unless it is being stopped. Adopts a process that this supervisor does not know (its
 * records were lost) if the slot has no worker, is assigned to the same topology, and nothing newer was launched in it.
 * Refuses everybody else: that process has been replaced.
 *
 * @param newestGeneration the highest generation, of the hello's topology, that this slot is known to have had
 */
export function judgeHello(
  state: SlotState,
  desired: Desired,
  hello: Pick<WorkerHello, 'workerId' | 'topologyId' | 'generation'>,
  newestGeneration: number,
): HelloVerdict {
  const worker = workerOf(state);
  if (worker?.workerId === hello.workerId) return state.kind === 'stopping' ? 'refuse' : 'accept';
  if (worker !== undefined || state.kind === 'launching') return 'refuse';
  const isWanted = desired.kind === 'worker' && desired.topologyId === hello.topologyId;
  return isWanted && hello.generation >= newestGeneration ? 'adopt' : 'refuse';
}
