/** All operations that the product answers, by the name that cases use. */
import { runAssign, runFreeSlots, runQuery, runSortSlots } from './clusters.js';
import {
  runAckerCount,
  runAckersToBind,
  runComputeExecutors,
  runIntegerDivided,
  runPartitionFixed,
  runTaskInfo,
} from './counting.js';
import { runAliveExecutors, runStartTimes } from './living.js';
import { runFlinkEndToEnd } from './flink-end-to-end.js';
import {
  runAdaptiveMatch,
  runMachineChoice,
  runPoolSelect,
  runPreMapping,
  runRequestMatch,
} from './flink-matching.js';
import { runPoolTiming } from './flink-pool.js';
import { runSlotSharing } from './flink-sharing.js';
import type { Operation } from './operation.js';
import { runApply, runParseArguments, runTransition, runValidate } from './rebalancing.js';
import { runReschedule, runSchedule } from './scheduling.js';
import { runNormalise, runSystemTopology } from './submitting.js';

export const OPERATIONS: ReadonlyMap<string, Operation> = new Map([
  ['normalise', runNormalise],
  ['systemTopology', runSystemTopology],
  ['taskInfo', runTaskInfo],
  ['integerDivided', runIntegerDivided],
  ['partitionFixed', runPartitionFixed],
  ['computeExecutors', runComputeExecutors],
  ['ackerCount', runAckerCount],
  ['ackersToBind', runAckersToBind],
  ['query', runQuery],
  ['assign', runAssign],
  ['freeSlots', runFreeSlots],
  ['sortSlots', runSortSlots],
  ['schedule', runSchedule],
  ['reschedule', runReschedule],
  ['aliveExecutors', runAliveExecutors],
  ['startTimes', runStartTimes],
  ['REQUEST_MATCH', runRequestMatch],
  ['ADAPTIVE_MATCH', runAdaptiveMatch],
  ['PRE_MAPPING', runPreMapping],
  ['RM_ALLOCATE', runMachineChoice],
  ['POOL_SELECT', runPoolSelect],
  ['SLOT_SHARING', runSlotSharing],
  ['POOL_TIMING', runPoolTiming],
  ['END_TO_END', runFlinkEndToEnd],
  ['transition', runTransition],
  ['validate', runValidate],
  ['apply', runApply],
  ['parseArguments', runParseArguments],
]);

/** The operation that a case asks for: named, or told by the shape of its input as Flink's cases are. */
export function operationOf(input: Readonly<Record<string, unknown>>): string | undefined {
  const { op, kind } = input;
  if (typeof op === 'string') return op;
  if (typeof kind === 'string') return kind;
  if ('events' in input && 'config' in input) return 'POOL_TIMING';
  if ('vertices' in input && 'taskManagers' in input) return 'END_TO_END';
  return 'vertices' in input && 'strategy' in input ? 'SLOT_SHARING' : undefined;
}
