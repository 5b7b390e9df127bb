/** What a load-balance mode means for each step: how slots are filled, which machines give slots, who gets which slot. */
import {
  localInputPreferredSharing,
  type SharingGraph,
  subtaskIndexSharing,
  type SlotCounts,
  type SlotSharing,
  taskBalancedSharing,
} from '../../slot-sharing/index.js';
import type { LoadBalanceMode } from '../../resources.js';
import type { MachineChoice } from '../../slot-matching/index.js';

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
