/** What a load-balance mode means for each step: how slots are filled, which machines give slots, who gets which slot. */
import {
  localInputPreferredSharing,
  type SharingGraph,
  subtaskIndexSharing,
  type SlotCounts,
  type SlotSharing,
  taskBalancedSharing,
} from '../../slot-sharing/index.js';
import type { MachineChoice } from '../../slot-matching/index.js';

/**
 * `none`: a machine is filled before the next one. `slots`: slots in use are spread over machines. `tasks`: tasks are spread
 * over slots and machines. `min-resources`: as few machines as possible.
 */
export type LoadBalanceMode = 'none' | 'slots' | 'tasks' | 'min-resources';

export type SlotSharingStrategy = 'local-input-preferred' | 'task-balanced' | 'subtask-index';

const SHARING: Record<SlotSharingStrategy, (graph: SharingGraph, counts?: SlotCounts) => SlotSharing> = {
  'local-input-preferred': localInputPreferredSharing,
  'task-balanced': taskBalancedSharing,
  'subtask-index': subtaskIndexSharing,
};

export function shareSlots(
  strategy: SlotSharingStrategy,
  graph: SharingGraph,
  counts?: SlotCounts,
): SlotSharing {
  return SHARING[strategy](graph, counts);
}

/** How Flink's resource manager chooses machines: balancing by tasks does not ask for good slots there. */
export function machineChoiceOf(mode: LoadBalanceMode): MachineChoice {
  switch (mode) {
    case 'slots':
      return 'least-utilised';
    case 'min-resources':
      return 'most-utilised';
    case 'none':
    case 'tasks':
      return 'any';
  }
}
