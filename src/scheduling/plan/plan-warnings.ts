/** What an operator should know about a placement, as rules with sentences. */
import type { ClusterSnapshot, PlacedWorker } from '../cluster-snapshot.js';
import type { ImaginedCluster } from './imagined-cluster.js';
import { neverFits } from '../never-fits.js';
import { executorLoads } from '../load/index.js';
import type { PlacementMetrics } from './placement-metrics.js';

/** What each rule means, for the head of a list. */
export const WARNING_RULES = {
  'empty-cluster': 'there is nothing to place, or nowhere to place it',
  'never-fits': 'no machine that is there could hold it, however empty',
  'not-settled': 'another round would still change something',
  'offers-unknown': 'machines do not say what they offer, so the strategy resource-aware uses none of them',
  blacklisted: 'nothing new is placed there for now',
  'idle-machines': 'machines have nothing to do while others have much',
  'hot-machine':
    'another placement of the same workers would be more even; only load-balance.mode tasks goes by load, and what runs and has state moves only by isobar rebalance NAME',
  'heavy-worker': 'no placement of these workers is even; more of them (topology.workers) would be',
  'over-committed': 'more is asked of machines than they offer; the strategy resource-aware looks at that',
  'single-point-of-failure': 'it stands still when one machine is lost; more workers would spread it',
  'fewer-workers': 'there are fewer workers than wanted',
  'mode-ignored': 'only the strategy balanced reads load-balance.mode',
  'workers-ignored': 'the strategy resource-aware opens workers by heap',
  'counts-adjusted': 'counts are not what was asked for',
  'shared-host': 'each supervisor of a host counts as a machine of its own',
} as const;

export type WarningRule = keyof typeof WARNING_RULES;

export interface PlanWarning {
  readonly rule: WarningRule;
  /** The machine or topology that it is about; null: the cluster. */
  readonly subject: string | null;
  /** Without what the rule says already. */
  readonly text: string;
}

interface Planned {
  readonly cluster: ImaginedCluster;
  readonly strategy: string;
  /** After the last round. */
  readonly snapshot: ClusterSnapshot;
  readonly metrics: PlacementMetrics;
  readonly isSettled: boolean;
  readonly maxRounds: number;
}

/** A machine is hot from this multiple of the mean load on, if another placement would be more even. */
const HOT = 1.25;

/** In the order of urgency of their rules. */
export function planWarnings(planned: Planned): readonly PlanWarning[] {
  return [
    ...clusterWarnings(planned),
    ...unsatisfiable(planned),
    ...hotMachines(planned),
    ...heavyWorkers(planned),
    ...overCommitted(planned),
    ...singlePoints(planned),
    ...workerCounts(planned),
    ...ignoredSettings(planned),
    ...adjustments(planned),
    ...sharedHosts(planned),
  ];
}

function clusterWarnings({ cluster, strategy, metrics, isSettled, maxRounds }: Planned): PlanWarning[] {
  const warnings: PlanWarning[] = [];
  const warn = (rule: WarningRule, text: string): void => void warnings.push({ rule, subject: null, text });
  if (metrics.machines.length === 0)
    warn('empty-cluster', 'the cluster has no machine; --add-supervisor slots=4 adds one');
  else if (metrics.slots === 0) warn('empty-cluster', 'no machine offers a slot');
  if (cluster.topologies.length === 0) warn('empty-cluster', 'there is no topology');
  if (!isSettled) {
    warn('not-settled', `after ${maxRounds} ${maxRounds === 1 ? 'round' : 'rounds'}; --rounds allows more`);
  }
  const silent = metrics.machines.filter(({ offeredCpuPercent }) => offeredCpuPercent === null).length;
  if (strategy === 'resource-aware' && silent > 0)
    warn('offers-unknown', `${silent} of ${metrics.machines.length} machines; give cpuPercent and memoryMb`);
  for (const host of cluster.blacklistedHosts ?? [])
    warnings.push({ rule: 'blacklisted', subject: host, text: `host ${host}` });
  const idle = metrics.machines.filter(({ workers, slots }) => workers === 0 && slots > 0).length;
  const canSpread = metrics.machines.some(({ workers }) => workers > 1);
  if (idle > 0 && canSpread && strategy !== 'resource-aware') {
    warn(
      'idle-machines',
      `${idle} of ${metrics.machines.length} machines ${idle === 1 ? 'has' : 'have'} no worker, others several`,
    );
  }
  return warnings;
}

function unsatisfiable({ snapshot, strategy }: Planned): PlanWarning[] {
  return snapshot.topologies.flatMap((topology) =>
    neverFits(topology, snapshot.supervisors, strategy).map(
      (text): PlanWarning => ({ rule: 'never-fits', subject: topology.id, text: `${topology.id} ${text}` }),
    ),
  );
}

/** The strategy resource-aware fills machines on purpose, by resources and not by load. */
function hotMachines({ metrics, strategy }: Planned): PlanWarning[] {
  if (strategy === 'resource-aware') return [];
  const { machineLoad, lowestMaxLoad, machines } = metrics;
  const level = Math.max(lowestMaxLoad, machineLoad.mean * HOT);
  return machines
    .filter(({ load }) => load > level * (1 + 1e-9))
    .sort((a, b) => b.load - a.load || (a.id < b.id ? -1 : 1))
    .map(({ id, load }) => ({
      rule: 'hot-machine',
      subject: id,
      text: `${id} carries ${figure(load)}, the mean is ${figure(machineLoad.mean)}; with these workers no machine need carry more than about ${figure(lowestMaxLoad)}`,
    }));
}

/** Workers so heavy that no placement of them can be even: what is left is to split them. */
function heavyWorkers({ snapshot, metrics, strategy }: Planned): PlanWarning[] {
  const { mean } = metrics.machineLoad;
  if (metrics.machines.length < 2 || strategy === 'resource-aware') return [];
  return snapshot.topologies.flatMap((topology): PlanWarning[] => {
    const loadOf = executorLoads(topology);
    let heaviest = 0;
    for (const { executors } of snapshot.placement.get(topology.id) ?? []) {
      const loads = executors.map(([first]) => loadOf(first)).filter((load) => load > 0);
      // One executor alone cannot be split by more workers.
      if (loads.length > 1)
        heaviest = Math.max(
          heaviest,
          loads.reduce((sum, load) => sum + load, 0),
        );
    }
    if (heaviest <= mean * HOT) return [];
    return [
      {
        rule: 'heavy-worker',
        subject: topology.id,
        text: `a worker of ${topology.name ?? topology.id} weighs ${figure(heaviest)}, all of a machine ${figure(mean)} on average`,
      },
    ];
  });
}

/** What machines have not got, where the strategy does not look at it. */
function overCommitted({ metrics }: Planned): PlanWarning[] {
  return metrics.machines.flatMap((machine): PlanWarning[] => {
    const parts: string[] = [];
    const { cpuPercent, memoryMb, offeredCpuPercent, offeredMemoryMb } = machine;
    if (offeredCpuPercent !== null && cpuPercent > offeredCpuPercent + 1e-6)
      parts.push(`${figure(cpuPercent)} % of a core asked, ${figure(offeredCpuPercent)} % offered`);
    if (offeredMemoryMb !== null && memoryMb > offeredMemoryMb + 1e-6)
      parts.push(`${figure(memoryMb)} MB asked, ${figure(offeredMemoryMb)} MB offered`);
    if (parts.length === 0) return [];
    return [{ rule: 'over-committed', subject: machine.id, text: `${machine.id}: ${parts.join('; ')}` }];
  });
}

/** A topology, or a component with several executors, whose executors are all on one of several machines. */
function singlePoints({ snapshot, metrics }: Planned): PlanWarning[] {
  if (metrics.machines.filter(({ slots }) => slots > 0).length < 2) return [];
  return snapshot.topologies.flatMap((topology): PlanWarning[] => {
    const workers = snapshot.placement.get(topology.id) ?? [];
    const name = topology.name ?? topology.id;
    const loadOf = executorLoads(topology);
    const counted = topology.executors.filter(({ range }) => loadOf(range[0]) > 0).length;
    if (workers.length === 0 || counted < 2) return [];
    const machines = new Set(workers.map(({ supervisor }) => supervisor));
    if (machines.size === 1) {
      const [machine] = machines;
      const way = topology.workers === 1 ? ', in its one worker' : '';
      return [
        {
          rule: 'single-point-of-failure',
          subject: topology.id,
          text: `all of ${name} runs on ${machine}${way}`,
        },
      ];
    }
    return onOneMachine(topology, workers).map(({ component, count, machine }) => ({
      rule: 'single-point-of-failure',
      subject: topology.id,
      text: `all ${count} executors of "${component}" of ${name} run on ${machine}`,
    }));
  });
}

function onOneMachine(
  { executors, components = [] }: ClusterSnapshot['topologies'][number],
  workers: readonly PlacedWorker[],
): { readonly component: string; readonly count: number; readonly machine: string }[] {
  const system = new Set(components.filter(({ kind }) => kind === 'system').map(({ id }) => id));
  const componentOf = new Map(executors.map(({ range, component }) => [range[0], component]));
  const places = new Map<string, { count: number; readonly machines: Set<string> }>();
  for (const worker of workers) {
    for (const [task] of worker.executors) {
      const component = componentOf.get(task);
      if (component === undefined || system.has(component)) continue;
      const place = places.get(component) ?? { count: 0, machines: new Set() };
      places.set(component, place);
      place.count++;
      place.machines.add(worker.supervisor);
    }
  }
  return [...places].flatMap(([component, { count, machines }]) => {
    const [machine] = machines;
    return machines.size === 1 && machine !== undefined && count > 1 ? [{ component, count, machine }] : [];
  });
}

function workerCounts({ strategy, snapshot }: Planned): PlanWarning[] {
  if (strategy === 'resource-aware') return [];
  return snapshot.topologies.flatMap(({ id, name, workers: wanted, executors }): PlanWarning[] => {
    const running = snapshot.placement.get(id)?.length ?? 0;
    const possible = Math.min(wanted, executors.length);
    if (running === 0 || running >= possible) return [];
    const text = `${name ?? id} has ${running} of ${possible} workers`;
    return [{ rule: 'fewer-workers', subject: id, text }];
  });
}

/** Settings that somebody has given and the strategy does not read. */
function ignoredSettings({ cluster, strategy }: Planned): PlanWarning[] {
  const warnings: PlanWarning[] = [];
  if (strategy !== 'balanced') {
    const given = cluster.topologies.filter(({ given }) => given.has('load-balance.mode'));
    if (given.length > 0) {
      warnings.push({
        rule: 'mode-ignored',
        subject: null,
        text: `it is given for ${named(given.map(({ id }) => id))}; this plan uses ${strategy}`,
      });
    }
  }
  if (strategy === 'resource-aware') {
    const given = cluster.topologies.filter(
      ({ given, plan }) => given.has('topology.workers') && plan.topologyWorkers > 1,
    );
    if (given.length > 0) {
      warnings.push({
        rule: 'workers-ignored',
        subject: null,
        text: `topology.workers is given for ${named(given.map(({ id }) => id))}`,
      });
    }
  }
  return warnings;
}

function adjustments({ cluster }: Planned): PlanWarning[] {
  return cluster.topologies.flatMap(({ id, plan }) =>
    plan.adjustments.map(
      (text) => ({ rule: 'counts-adjusted', subject: id, text: `${id}: ${text}` }) as const,
    ),
  );
}

function sharedHosts({ snapshot }: Planned): PlanWarning[] {
  const byHost = new Map<string, number>();
  for (const { host } of snapshot.supervisors) byHost.set(host, (byHost.get(host) ?? 0) + 1);
  return [...byHost].flatMap(([host, count]): PlanWarning[] =>
    count < 2
      ? []
      : [
          {
            rule: 'shared-host',
            subject: host,
            text: `host ${host} has ${count}`,
          },
        ],
  );
}

const MAX_NAMED = 3;

function named(ids: readonly string[]): string {
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : '';
  return `${ids.slice(0, MAX_NAMED).join(', ')}${more}`;
}

function figure(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}
