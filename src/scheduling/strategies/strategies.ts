/** All strategies by the name that operators use for them. What a strategy needs to know comes from the cluster's settings. */
import { closestName, IsobarError, type Settings } from '../../base/index.js';
import { COMPONENT_CLASSES } from '../component-classes.js';
import { balancedStrategy } from './balanced/balanced.js';
import { type DefaultOptions, defaultStrategy } from './default/default.js';
import { evenStrategy } from './even/even.js';
import { isolationStrategy } from './isolation/isolation.js';
import { multitenantStrategy } from './multitenant/multitenant.js';
import { resourceAwareStrategy } from './resource-aware/resource-aware.js';
import type { Strategy } from './strategy.js';

/** Storm's defaults: searches for one topology in a round, and placements that one of them tries. */
const SEARCH_ATTEMPTS = 5;
const SEARCH_STATES = 100_000;

/** Part of the average load of a machine that moves must gain where loads are measured, so that placement does not flap. */
const MEASURED_LEAST_GAIN = 0.15;

const STRATEGIES: ReadonlyMap<string, (settings: Settings) => Strategy> = new Map<
  string,
  (settings: Settings) => Strategy
>([
  [
    'balanced',
    (settings) =>
      balancedStrategy({
        mode: 'tasks',
        improves: isOn(settings, 'load-balance.improvement', 'flink'),
        fairShares: isOn(settings, 'scheduling.fair-shares', 'flink'),
        classes: settings['scheduling.compatibility'].includes('flink')
          ? []
          : COMPONENT_CLASSES.filter((name) => settings['load-balance.classes'].includes(name)),
        spreadsComponents: isOn(settings, 'load-balance.spread-components', 'flink'),
        seesAllTopologies: isOn(settings, 'load-balance.all-topologies', 'flink'),
        keepsNeighbours: isOn(settings, 'load-balance.keep-neighbours', 'flink'),
        moveBudget: settings['scheduling.moves-per-round'],
        leastGain: settings['load-balance.load'] === 'measured' ? MEASURED_LEAST_GAIN : 0,
      }),
  ],
  ['even', (settings) => evenStrategy(defaultOptions(settings))],
  ['default', (settings) => defaultStrategy(defaultOptions(settings))],
  ['isolation', isolation],
  [
    'multitenant',
    (settings) =>
      multitenantStrategy({
        userPools: countsByName(settings, 'scheduling.user-pools'),
        fillLiveWorkers: isOn(settings, 'scheduling.join-live-workers', 'storm'),
      }),
  ],
  [
    'resource-aware',
    (settings) =>
      resourceAwareStrategy({
        asStorm: !isOn(settings, 'scheduling.place-what-fits', 'storm'),
        topologyOrder: 'default',
        guarantees: new Map(),
        minimumWorkerCpuPercent: 0,
        maxAttempts: SEARCH_ATTEMPTS,
        maxSearchStates: SEARCH_STATES,
      }),
  ],
]);

/** Improvements over another system, each with a switch of its own. */
type Switch =
  | 'scheduling.join-live-workers'
  | 'scheduling.keep-live-workers'
  | 'scheduling.fair-shares'
  | 'scheduling.isolation-spares-others'
  | 'scheduling.place-what-fits'
  | 'load-balance.improvement'
  | 'load-balance.spread-components'
  | 'load-balance.all-topologies'
  | 'load-balance.keep-neighbours';

/** Is the improvement wanted: neither switched off itself nor by the compatibility with the system that lacks it? */
function isOn(settings: Settings, name: Switch, over: 'storm' | 'flink'): boolean {
  return settings[name] && !settings['scheduling.compatibility'].includes(over);
}

function defaultOptions(settings: Settings): DefaultOptions {
  return {
    fillLiveWorkers: isOn(settings, 'scheduling.join-live-workers', 'storm'),
    fairShares: isOn(settings, 'scheduling.fair-shares', 'storm'),
    keepLiveWorkers: isOn(settings, 'scheduling.keep-live-workers', 'storm'),
  };
}

/** `name=count` entries of a setting. @throws SETTINGS_INVALID for an entry of another form */
function countsByName(
  settings: Settings,
  name: 'scheduling.user-pools' | 'scheduling.isolated-topologies',
): ReadonlyMap<string, number> {
  return new Map(
    settings[name].map((entry): [string, number] => {
      const split = entry.lastIndexOf('=');
      const count = Number(entry.slice(split + 1));
      if (split > 0 && Number.isInteger(count) && count > 0) return [entry.slice(0, split), count];
      throw new IsobarError(
        'SETTINGS_INVALID',
        `${name}: expected name=count with a count from 1, found "${entry}"`,
        {
          expected: 'name=count with a count from 1',
          found: entry,
          where: name,
        },
      );
    }),
  );
}

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

/** Hosts of their own for topologies that the settings name, or whose rules ask for machines. */
function isolation(settings: Settings): Strategy {
  const named = countsByName(settings, 'scheduling.isolated-topologies');
  return (snapshot) => {
    const asked = snapshot.topologies.flatMap(({ id, name, rules }): (readonly [string, number])[] =>
      rules?.isolatedMachines === undefined ? [] : [[name ?? id, rules.isolatedMachines]],
    );
    return isolationStrategy({
      ...defaultOptions(settings),
      machines: new Map([...asked, ...named]),
      clearsOthersOnFailure: !isOn(settings, 'scheduling.isolation-spares-others', 'storm'),
    })(snapshot);
  };
}
