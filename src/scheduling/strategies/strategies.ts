/** All strategies by the name that operators use for them. What a strategy needs to know comes from the cluster's settings. */
import { closestName, IsobarError, type Settings } from '../../base/index.js';
import { balancedStrategy } from './balanced/balanced.js';
import { defaultStrategy } from './default/default.js';
import { evenStrategy } from './even/even.js';
import { isolationStrategy } from './isolation/isolation.js';
import { resourceAwareStrategy } from './resource-aware/resource-aware.js';
import type { Strategy } from './strategy.js';

/** Storm's defaults: searches for one topology in a round, and placements that one of them tries. */
const SEARCH_ATTEMPTS = 5;
const SEARCH_STATES = 100_000;

const STRATEGIES: ReadonlyMap<string, (settings: Settings) => Strategy> = new Map<
  string,
  (settings: Settings) => Strategy
>([
  [
    'balanced',
    (settings) =>
      balancedStrategy({
        mode: 'tasks',
        improves: true,
        moveBudget: settings['scheduling.moves-per-round'],
      }),
  ],
  ['even', () => evenStrategy({ fillLiveWorkers: true })],
  ['default', () => defaultStrategy({ fillLiveWorkers: true })],
  ['isolation', () => isolation],
  [
    'resource-aware',
    () =>
      resourceAwareStrategy({
        asStorm: false,
        topologyOrder: 'default',
        guarantees: new Map(),
        minimumWorkerCpuPercent: 0,
        maxAttempts: SEARCH_ATTEMPTS,
        maxSearchStates: SEARCH_STATES,
      }),
  ],
]);

/** Names of all strategies, the default first. */
export const STRATEGY_NAMES: readonly string[] = [...STRATEGIES.keys()];

/** @throws SETTINGS_INVALID for a name that no strategy has */
export function strategyNamed(name: string, settings: Settings): Strategy {
  const make = STRATEGIES.get(name);
  if (make !== undefined) return make(settings);
  const closest = closestName(name, STRATEGY_NAMES);
  throw new IsobarError(
    'SETTINGS_INVALID',
    `There is no strategy "${name}"${closest === undefined ? '' : `; did you mean "${closest}"?`}`,
    { expected: `one of ${STRATEGY_NAMES.join(', ')}`, found: name, where: 'scheduling.strategy' },
  );
}

/** Hosts of their own for topologies whose rules ask for machines. */
const isolation: Strategy = (snapshot) => {
  const asked = snapshot.topologies.flatMap(({ id, name, rules }): (readonly [string, number])[] =>
    rules?.isolatedMachines === undefined ? [] : [[name ?? id, rules.isolatedMachines]],
  );
  const options = { machines: new Map(asked), clearsOthersOnFailure: false, fillLiveWorkers: true };
  return isolationStrategy(options)(snapshot);
};
