/** The built scheduler that the cases call: types from the build, code loaded from beside this bench. */
import type * as Base from '../../build/base/index.js';
import type * as Balance from '../../build/scheduling/balance/index.js';
import type * as Scheduling from '../../build/scheduling/index.js';
import { loadBuilt } from '../load-built.js';

export interface Library {
  readonly scheduling: typeof Scheduling;
  readonly balance: typeof Balance;
  readonly settings: Base.Settings;
}

export type {
  ClusterComponent,
  ClusterSnapshot,
  ClusterSupervisor,
  ClusterTopology,
  PlacedWorker,
  Placement,
  PlannedExecutor,
  SchedulingOutcome,
  SchedulingResult,
  Strategy,
} from '../../build/scheduling/index.js';

export async function loadLibrary(): Promise<Library> {
  const { DEFAULT_SETTINGS } = await loadBuilt<typeof Base>('base/index.js');
  return {
    scheduling: await loadBuilt<typeof Scheduling>('scheduling/index.js'),
    balance: await loadBuilt<typeof Balance>('scheduling/balance/index.js'),
    settings: DEFAULT_SETTINGS,
  };
}
