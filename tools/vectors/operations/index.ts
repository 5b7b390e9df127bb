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
import type { Operation } from './operation.js';
import { runSchedule } from './scheduling.js';
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
  ['aliveExecutors', runAliveExecutors],
  ['startTimes', runStartTimes],
]);
