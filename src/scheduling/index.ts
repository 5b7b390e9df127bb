export type { AckerBinding, AckerEstimate, AckerEstimateInput } from './ackers.js';
export { ackerCount, ackersToBind, estimateAckers, hasAckers } from './ackers.js';
export type { ExecutorSigns, LivenessLimits, LivePlacement } from './alive-executors.js';
export { isAlive, livenessLimits, restrictToAlive } from './alive-executors.js';
export type { Assignment, ComponentTasks, ExecutorRange, SlotAssignment, TaskMove } from './assignment.js';
export { WorkingCluster } from './cluster.js';
export type {
  ClusterSnapshot,
  ClusterSupervisor,
  ClusterTopology,
  PlacedWorker,
  Placement,
  Slot,
} from './cluster-snapshot.js';
export { executorLoads, LoadMeter, typicalLoad } from './load/index.js';
export type { PlannedExecutor } from './executors.js';
export { computeExecutors, integerDivided, partitionFixed } from './executors.js';
export { numberTasks, totalTasks } from './numbering.js';
export type {
  Amounts,
  ClusterPlan,
  Explanation,
  ImaginedCluster,
  ImaginedTopology,
  Lack,
  MachineUse,
  Move,
  PlacementMetrics,
  PlanRule,
  PlanWarning,
  SlotTimeline,
  TimelineEvent,
} from './plan/index.js';
export {
  addSupervisors,
  explainExecutor,
  killWorkers,
  lackRuleText,
  PLAN_RULES,
  planCluster,
  removeSupervisors,
  slotTimeline,
  WARNING_RULES,
  withoutPlacement,
} from './plan/index.js';
export type {
  DesiredCounts,
  PlannableComponent,
  PlannableTopology,
  TopologyPlan,
} from './plan-topology.js';
export { planTopology } from './plan-topology.js';
export { RESOURCE_NAMES } from './placement-rules.js';
export type {
  DeadExecutor,
  PendingRebalance,
  RoundInput,
  RoundLogLine,
  RoundSupervisor,
  RoundTopology,
  SchedulingOutcome,
  TopologyFacts,
  TopologyOutcome,
  PlacementNeed,
} from './round-types.js';
export type { SupervisorUse, WorkerUse } from './resource-use.js';
export { sharedOnSupervisors, useOfSupervisors, useOfWorkers } from './resource-use.js';
export type { OpenRound } from './scheduling-round.js';
export { clusterTopologyOf, openRound, schedulingRound } from './scheduling-round.js';
export type {
  ClusterComponent,
  ComponentEdge,
  OfferedResources,
  PlacementConstraints,
  PlacementRules,
  RequestedResources,
  SharedMemory,
} from './resources.js';
export type { AskedMemory } from './worker-memory.js';
export { askedMemory, declaredHeapMb } from './worker-memory.js';
export type { StartTimes } from './start-times.js';
export { startTimes } from './start-times.js';
export type { EvenOptions } from './strategies/even/even.js';
export { evenStrategy } from './strategies/even/even.js';
export type { IdleSupervisorRules } from './strategies/even/idle-supervisors.js';
export { sortSlots } from './strategies/even/sort-slots.js';
export type {
  PlacementOutcome,
  ResourceAwareOptions,
  ResourceAwareResult,
} from './strategies/resource-aware/resource-aware.js';
export { resourceAwareStrategy } from './strategies/resource-aware/resource-aware.js';
export type { Shortage } from './strategies/resource-aware/shortage.js';
export type { TopologyOrder, UserGuarantees } from './strategies/resource-aware/topology-order.js';
export { STRATEGY_NAMES, strategyNamed } from './strategies/strategies.js';
export type { SchedulingResult, Strategy, Unplaced } from './strategies/strategy.js';
export type { DecisionPart, PartDecision } from './strategies/installed-strategies.js';
export {
  checkChosenStrategy,
  decideInParts,
  inParts,
  installedStrategies,
} from './strategies/installed-strategies.js';
export { readDecision } from './strategies/read-decision.js';
export { neverFits } from './never-fits.js';
export { validateAssignment } from './validate-assignment.js';
export { validateCapacity } from './validate-capacity.js';
export type {
  Refusal,
  Submission,
  SubmissionOutcome,
  SubmittedComponent,
  SubmittedCount,
  SubmittedInput,
} from './submission.js';
export { normaliseSubmission } from './submission.js';
export type { MetricsConsumer, SystemCounts } from './system-components.js';
export { systemTaskCounts } from './system-components.js';
export type {
  Graph,
  GraphComponent,
  GraphInput,
  GraphStream,
  SystemTopologyOptions,
} from './system-topology.js';
export { systemTopology } from './system-topology.js';
export type { MatchableSlot, SlotMatch, SlotRequest } from './slot-matching/index.js';
export {
  adaptiveMatches,
  chooseFreeSlots,
  chooseMachines,
  preferredMatcher,
  preMapping,
  simpleMatcher,
  tasksBalancedMatcher,
} from './slot-matching/index.js';
export { compareText } from './order.js';
export type { SlotPoolAction, SlotPoolEvent } from './slot-pool/index.js';
export {
  emptySlotPool,
  planSlotPool,
  slotPoolDueMs,
  slotWaitOptions,
  waitBySettings,
} from './slot-pool/index.js';
export type { SlotWaitState } from './slot-pool/index.js';
export type { SlotSharing } from './slot-sharing/index.js';
export {
  localInputPreferredSharing,
  subtaskIndexSharing,
  taskBalancedSharing,
} from './slot-sharing/index.js';
export { coldStart } from './strategies/balanced/cold-start.js';
export type { BalancedOptions } from './strategies/balanced/balanced.js';
export type { BalanceRules, LoadBalanceMode } from './resources.js';
export { defaultStrategy } from './strategies/default/default.js';
export type { BlacklistMemory, BlacklistRules } from './strategies/blacklist/blacklist.js';
export { EMPTY_BLACKLIST, planBlacklist, underBlacklist } from './strategies/blacklist/blacklist.js';
export { isolationStrategy } from './strategies/isolation/isolation.js';
export { multitenantStrategy } from './strategies/multitenant/multitenant.js';
