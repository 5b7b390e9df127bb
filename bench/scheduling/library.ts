/** The built scheduler that the cases call: types from the build, code loaded from beside this bench. */
import type * as Base from '../../dist/base/index.js';
import type * as Balance from '../../dist/scheduling/balance/index.js';
import type * as Scheduling from '../../dist/scheduling/index.js';

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
} from '../../dist/scheduling/index.js';

export async function loadLibrary(): Promise<Library> {
  const { DEFAULT_SETTINGS } = await load<typeof Base>('base');
  return {
    scheduling: await load<typeof Scheduling>('scheduling'),
    balance: await load<typeof Balance>('scheduling/balance'),
    settings: DEFAULT_SETTINGS,
  };
}

async function load<T>(folder: string): Promise<T> {
  // Compiled beside it, from the sources that the type was taken from.
  return (await import(new URL(`../../${folder}/index.js`, import.meta.url).href)) as T;
}
