/**
 * Strategies that an operator has installed, and how several strategies share one cluster: the cluster's own decides about all topologies
 * that have chosen none, and after it each chosen one about those that have chosen it, on what the others leave.
 *
 * I1: nobody sees, or gets, a slot that a topology of another strategy holds, nor, where the cluster's own strategy keeps to capacities,
 * more than the others leave of a machine. I2: what one strategy does wrong fails its own
 * topologies, which keep what they have, and nobody else's. Who runs a strategy, and for how long, is not decided here.
 */
import { closestName, IsobarError, type Settings } from '../../base/index.js';
import {
  type ClusterSnapshot,
  type ClusterSupervisor,
  type ClusterTopology,
  type PlacedWorker,
  type Placement,
} from '../cluster-snapshot.js';
import { compareText } from '../order.js';
import { useOfSupervisors } from '../resource-use.js';
import { assignmentInvalid, capacityRulesOf, validateAssignment } from '../validate-assignment.js';
import { PLACERS } from './resource-aware/placers.js';
import { STRATEGY_NAMES } from './strategies.js';
import type { SchedulingResult, Strategy, Unplaced } from './strategy.js';

const NAME = /^[a-z][a-z0-9-]{0,39}$/;

/**
 * Modules by the names under which topologies choose them: `name=path` entries of `scheduling.strategy-modules`.
 *
 * @throws SETTINGS_INVALID with all faults
 */
export function installedStrategies(settings: Settings): ReadonlyMap<string, string> {
  const modules = new Map<string, string>();
  const faults: { readonly name: string; readonly message: string }[] = [];
  const refuse = (message: string): void => {
    faults.push({ name: MODULES, message: `${MODULES}: ${message}` });
  };
  for (const entry of settings[MODULES]) {
    const split = entry.indexOf('=');
    const [name, path] = [entry.slice(0, Math.max(split, 0)), entry.slice(split + 1)];
    if (!NAME.test(name))
      refuse(`expected name=path with a name of a-z, 0-9 and -, found ${JSON.stringify(entry)}`);
    else if (!path.startsWith('/'))
      refuse(`expected the absolute path of a module for "${name}", found ${JSON.stringify(path)}`);
    else if (BUILT_IN.has(name)) refuse(`"${name}" is the name of a strategy that comes with Isobar`);
    else if (modules.has(name)) refuse(`"${name}" is given twice`);
    else modules.set(name, path);
  }
  if (faults.length > 0)
    throw new IsobarError('SETTINGS_INVALID', faults.map(({ message }) => message).join('\n'), { faults });
  return modules;
}

/** Strategies whose topologies count on what machines have left. */
const KEEPS_CAPACITY: ReadonlySet<string> = new Set(['resource-aware']);

const MODULES = 'scheduling.strategy-modules';
const BUILT_IN: ReadonlySet<string> = new Set([...STRATEGY_NAMES, ...Object.keys(PLACERS)]);

/**
 * Refuses what a topology names as its strategy if the cluster has nothing of that name.
 *
 * @throws SETTINGS_INVALID with the closest name
 */
export function checkChosenStrategy(chosen: string, installed: ReadonlyMap<string, string>): void {
  const known = [...Object.keys(PLACERS), ...installed.keys()];
  if (known.includes(chosen)) return;
  const setting = 'topology.scheduler-strategy';
  const closest = closestName(chosen, known);
  const message = `${setting}: there is no strategy "${chosen}"${closest === undefined ? '' : `; did you mean "${closest}"?`}`;
  throw new IsobarError('SETTINGS_INVALID', message, {
    expected: `one of ${known.join(', ')} (${MODULES} installs more)`,
    found: chosen,
    where: setting,
    faults: [{ name: setting, message }],
  });
}

/** What one strategy is asked: to place the topologies of the snapshot on the slots that it shows. */
export interface DecisionPart {
  /** Name of the strategy. */
  readonly strategy: string;
  readonly snapshot: ClusterSnapshot;
}

/** `failure`: the strategy threw, or never answered. */
export type PartDecision = SchedulingResult | { readonly failure: unknown };

/**
 * Asks one strategy after the other: `own` first, then the chosen ones in order of name. The caller answers each part.
 *
 * Cost: O(E + S) for each strategy that some topology has chosen, nothing where none has.
 */
export function* decideInParts(
  snapshot: ClusterSnapshot,
  own: string,
  installed: ReadonlyMap<string, string>,
): Generator<DecisionPart, SchedulingResult, PartDecision> {
  const byName = new Map<string, ClusterTopology[]>();
  for (const topology of snapshot.topologies) {
    const chosen = topology.rules?.strategy ?? '';
    const name = installed.has(chosen) ? chosen : own;
    byName.set(name, [...(byName.get(name) ?? []), topology]);
  }
  const others = [...byName.keys()].filter((name) => name !== own).sort(compareText);
  if (others.length === 0) {
    const decision = yield { strategy: own, snapshot };
    return 'failure' in decision ? failed(snapshot, decision.failure) : decision;
  }
  const whole = new Merged(snapshot, KEEPS_CAPACITY.has(own));
  for (const strategy of byName.has(own) ? [own, ...others] : others) {
    const part = whole.part(byName.get(strategy)!);
    const decision = yield { strategy, snapshot: part };
    whole.add(part, 'failure' in decision ? failed(part, decision.failure) : decision);
  }
  return whole.result();
}

/** The same at once, for strategies that are called directly. */
export function inParts(
  own: string,
  installed: ReadonlyMap<string, string>,
  named: (name: string) => Strategy,
): Strategy {
  return (snapshot) => {
    const parts = decideInParts(snapshot, own, installed);
    let step = parts.next();
    while (step.done !== true) step = parts.next(attempt(named, step.value));
    return step.value;
  };
}

function attempt(named: (name: string) => Strategy, { strategy, snapshot }: DecisionPart): PartDecision {
  try {
    return named(strategy)(snapshot);
  } catch (failure) {
    return { failure };
  }
}

/** Everybody keeps what they have, and the reason. */
function failed({ topologies, placement }: ClusterSnapshot, failure: unknown): SchedulingResult {
  return {
    placement,
    unplaced: new Map(),
    failures: new Map(topologies.map(({ id }) => [id, failure])),
    steps: 0,
  };
}

/** What the strategies before have left, and have decided. */
class Merged {
  readonly #snapshot: ClusterSnapshot;
  readonly #placement: Map<string, readonly PlacedWorker[]>;
  readonly #unplaced = new Map<string, Unplaced>();
  readonly #failures = new Map<string, unknown>();
  readonly #notes: string[] = [];
  readonly #reservedHosts = new Set<string>();
  readonly #keepsCapacity: boolean;
  #steps = 0;

  constructor(snapshot: ClusterSnapshot, keepsCapacity: boolean) {
    this.#snapshot = snapshot;
    this.#keepsCapacity = keepsCapacity;
    this.#placement = new Map(snapshot.placement);
  }

  /** The cluster without all other topologies, their slots and what they use. */
  part(topologies: readonly ClusterTopology[]): ClusterSnapshot {
    const ids = new Set(topologies.map(({ id }) => id));
    const others = [...this.#placement].filter(([id]) => !ids.has(id));
    const held = new Map<string, { readonly ports: Set<number>; executors: number }>();
    for (const [, workers] of others) {
      for (const { supervisor, port, executors } of workers) {
        const there = held.get(supervisor) ?? { ports: new Set(), executors: 0 };
        held.set(supervisor, there);
        there.ports.add(port);
        there.executors += executors.length;
      }
    }
    const used = useOfSupervisors(
      { ...this.#snapshot, topologies: this.#snapshot.topologies.filter(({ id }) => !ids.has(id)) },
      new Map(others),
    );
    const left = (supervisor: ClusterSupervisor): ClusterSupervisor => {
      const { id, ports, otherLoad = 0, resources } = supervisor;
      const there = held.get(id);
      if (there === undefined) return supervisor;
      const use = used.get(id);
      return {
        ...supervisor,
        ports: ports.filter((port) => !there.ports.has(port)),
        otherLoad: otherLoad + there.executors,
        ...(resources === undefined
          ? {}
          : {
              resources: {
                ...resources,
                cpuPercent: Math.max(0, resources.cpuPercent - (use?.cpuPercent ?? 0)),
                memoryMb: Math.max(0, resources.memoryMb - (use?.memoryMb ?? 0)),
                ...(resources.generic === undefined
                  ? {}
                  : {
                      generic: Object.fromEntries(
                        Object.entries(resources.generic).map(([name, amount]) => [
                          name,
                          Math.max(0, amount - (use?.generic.get(name) ?? 0)),
                        ]),
                      ),
                    }),
              },
            }),
      };
    };
    return {
      ...this.#snapshot,
      supervisors: this.#snapshot.supervisors.map(left),
      topologies,
      placement: new Map([...this.#placement].filter(([id]) => ids.has(id))),
      ...(this.#reservedHosts.size === 0
        ? {}
        : {
            blacklistedHosts: new Set([...(this.#snapshot.blacklistedHosts ?? []), ...this.#reservedHosts]),
          }),
    };
  }

  add(part: ClusterSnapshot, result: SchedulingResult): void {
    const faults = validateAssignment(part, result, capacityRulesOf(result, this.#keepsCapacity));
    for (const { id } of part.topologies) {
      const fault = faults.get(id);
      if (result.failures.has(id)) {
        this.#failures.set(id, result.failures.get(id));
        continue;
      }
      if (fault !== undefined) {
        this.#failures.set(id, assignmentInvalid(id, fault));
        continue;
      }
      const workers = result.placement.get(id);
      if (workers === undefined) this.#placement.delete(id);
      else this.#placement.set(id, workers);
      const unplaced = result.unplaced.get(id);
      if (unplaced !== undefined) this.#unplaced.set(id, unplaced);
    }
    this.#notes.push(...(result.notes ?? []));
    for (const host of result.reservedHosts ?? []) this.#reservedHosts.add(host);
    this.#steps += result.steps;
  }

  result(): SchedulingResult {
    const placement: Placement = new Map([...this.#placement].sort(([a], [b]) => compareText(a, b)));
    return {
      placement,
      unplaced: this.#unplaced,
      failures: this.#failures,
      notes: this.#notes,
      reservedHosts: [...this.#reservedHosts].sort(compareText),
      steps: this.#steps,
    };
  }
}
