export type { ImaginedCluster, ImaginedTopology } from './imagined-cluster.js';
export {
  addSupervisors,
  killWorkers,
  removeSupervisors,
  withoutPlacement,
} from './imagined-cluster.js';
export { explainExecutor, type Explanation } from './explain-executor.js';
export type { Amounts, Lack } from './lacks.js';
export type { MachineUse, PlacementMetrics } from './placement-metrics.js';
export type { Move } from './placement-moves.js';
export type { ClusterPlan } from './plan-cluster.js';
export { planCluster } from './plan-cluster.js';
export type { SlotTimeline, TimelineEvent } from './slot-timeline.js';
export { slotTimeline } from './slot-timeline.js';
export { lackRuleText, PLAN_RULES, type PlanRule } from './plan-rules.js';
export type { PlanWarning } from './plan-warnings.js';
export { WARNING_RULES } from './plan-warnings.js';
