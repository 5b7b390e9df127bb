export { planSlotPool, slotPoolDueMs } from './plan-slot-pool.js';
export type {
  PoolRequest,
  SlotPoolAction,
  SlotPoolEvent,
  SlotPoolOptions,
  SlotPoolState,
} from './pool-state.js';
export { emptySlotPool } from './pool-state.js';
export { slotWaitOptions, waitBySettings } from './slot-wait.js';
export type { SlotNeed, SlotWaitDecision, SlotWaitOptions, SlotWaitState } from './slot-wait.js';
