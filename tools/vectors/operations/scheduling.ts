/** The operation schedule: one round of a scheduler, judged by its exact placement or by what holds in every order. */
import { z } from 'zod';
import {
  defaultStrategy,
  evenStrategy,
  type IdleSupervisorRules,
  isolationStrategy,
  multitenantStrategy,
  type PlacedWorker,
  type SchedulingResult,
  type Strategy,
  validateAssignment,
} from '../../../src/scheduling/index.js';
import { stableText } from '../compare.js';
import type { VectorCase } from '../read-cases.js';
import { configuration, number, type StormConfiguration } from '../storm-configuration.js';
import { exact, type Facts, NotSupported, type Operation, sets } from './operation.js';
import { runResourceAware } from './resource-aware.js';
import { snapshotSchema, toSnapshot } from './snapshot.js';

const SCHEDULERS = ['even', 'default', 'isolation', 'multitenant', 'resource-aware'];

export const runSchedule: Operation = (test) => {
  if (schedulerOf(test) === 'resource-aware') return runResourceAware(test);
  const strategyOf = STRATEGIES.get(schedulerOf(test));
  if (strategyOf === undefined) throw new NotSupported(`${schedulerOf(test)} scheduler`);
  const parsed = snapshotSchema.parse(test.input);
  const snapshot = toSnapshot(parsed);
  const result = strategyOf(configuration(parsed.conf))(snapshot);
  const [failure] = result.failures.values();
  const stormThrows = test.expected['error'] === true;
  if (failure !== undefined && !stormThrows) {
    return {
      error: exact(failure instanceof Error ? failure.message : 'a value that is no error was thrown'),
    };
  }
  const facts = factsOf(snapshot, result);
  if (!stormThrows) return facts;
  // Where Storm throws, an explicit error or a sound placement that leaves all live workers as they are is right.
  const mayMove = ['isolation', 'multitenant'].includes(schedulerOf(test));
  const problem = unsound(snapshot, result, !mayMove);
  return {
    ...facts,
    error: { check: () => problem },
    stormError: { check: () => undefined },
    reason: { check: () => undefined },
  };
};

/** A rebalance from scratch: what is asked about is not among the assignments, whatever is among them stays as in any round. */
export const runReschedule: Operation = ({ input }) => {
  const parsed = snapshotSchema.parse(input);
  const snapshot = toSnapshot(parsed);
  const strategy = defaultStrategy({ fillLiveWorkers: false, ...idleRules(configuration(parsed.conf)) });
  return factsOf(snapshot, strategy(snapshot));
};

const STRATEGIES: ReadonlyMap<string, (conf: StormConfiguration) => Strategy> = new Map([
  ['even', (conf) => evenStrategy({ fillLiveWorkers: false, ...idleRules(conf) })],
  ['default', (conf) => defaultStrategy({ fillLiveWorkers: false, ...idleRules(conf) })],
  [
    'isolation',
    (conf) =>
      isolationStrategy({
        fillLiveWorkers: false,
        clearsOthersOnFailure: true,
        machines: new Map(
          Object.entries(z.record(z.string(), z.int()).parse(conf['isolation.scheduler.machines'] ?? {})),
        ),
        ...idleRules(conf),
      }),
  ],
  [
    'multitenant',
    (conf) =>
      multitenantStrategy({
        fillLiveWorkers: false,
        userPools: new Map(
          Object.entries(z.record(z.string(), z.int()).parse(conf['multitenant.scheduler.user.pools'] ?? {})),
        ),
      }),
  ],
]);

/** The scheduler that a case means: it says so, its file is named after it, or its input shows it. */
function schedulerOf({ scheduler, file, input }: VectorCase): string {
  if (scheduler !== undefined) return scheduler;
  const byFile = SCHEDULERS.find((name) => file.startsWith(name));
  if (byFile !== undefined) return byFile;
  const { topologies, conf } = input;
  if (Array.isArray(topologies) && topologies.some((one: unknown) => has(one, 'components')))
    return 'resource-aware';
  if (has(conf, 'isolation.scheduler.machines')) return 'isolation';
  return has(conf, 'multitenant.scheduler.user.pools') ? 'multitenant' : 'default';
}

function has(value: unknown, key: string): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key);
}

function idleRules(conf: StormConfiguration): { idleSupervisors?: IdleSupervisorRules } {
  if (conf['nimbus.even.rebalance.idle.supervisor.enabled'] !== true) return {};
  const rounds = number(conf, 'nimbus.even.rebalance.idle.supervisor.min.stable.rounds');
  const roundSecs = Math.max(1, number(conf, 'supervisor.monitor.frequency.secs'));
  return {
    idleSupervisors: {
      maxMovesPerTopology: number(conf, 'nimbus.even.rebalance.max.free.per.topology'),
      minimumUptimeMs: Math.max(0, rounds) * roundSecs * 1000,
    },
  };
}

type Snapshot = ReturnType<typeof toSnapshot>;

function factsOf(snapshot: Snapshot, { placement, unplaced, reservedHosts }: SchedulingResult): Facts {
  const all = [...placement.values()];
  const totalWorkers = all.reduce((sum, workers) => sum + workers.length, 0);
  const kept = keptWorkers(snapshot, placement);
  const summaries = snapshot.topologies.map(({ id }) => [
    id,
    summaryOf(placement.get(id) ?? [], unplaced.get(id)?.executors.length ?? 0),
  ]);
  return {
    summary: { value: Object.fromEntries(summaries), compare: 'at-least' },
    totalWorkers: exact(totalWorkers),
    maxTotalWorkers: {
      check: (most) => (typeof most === 'number' && totalWorkers <= most ? undefined : String(totalWorkers)),
    },
    assignments: {
      value: Object.fromEntries([...placement].map(([id, workers]) => [id, workers.map(toVector)])),
      compare: 'sets-without-empty',
    },
    // Hosts that were blacklisted before stay so.
    reservedHosts: sets([...new Set([...(reservedHosts ?? []), ...(snapshot.blacklistedHosts ?? [])])]),
    orderDependent: { check: () => undefined },
    keptWorkers: {
      check: (wanted) => {
        const lost = (Array.isArray(wanted) ? wanted : []).filter((one) => !kept.has(stableText(one)));
        return lost.length === 0 ? undefined : `not kept: ${stableText(lost)}`;
      },
    },
    keptWorkerCount: sets(kept.size),
  };
}

function summaryOf(workers: readonly PlacedWorker[], unassigned: number): Record<string, unknown> {
  const perNode = new Map<string, number>();
  for (const { supervisor } of workers) perNode.set(supervisor, (perNode.get(supervisor) ?? 0) + 1);
  const descending = (counts: number[]): number[] => counts.sort((a, b) => b - a);
  return {
    workers: workers.length,
    nodes: perNode.size,
    executorsPerWorker: descending(workers.map(({ executors }) => executors.length)),
    workersPerNode: descending([...perNode.values()]),
    unassigned,
  };
}

function toVector({ supervisor, port, executors }: PlacedWorker): Record<string, unknown> {
  return { node: supervisor, port, executors };
}

/** Workers that are what they were, as texts of `{topology, node, port, executors}`. */
function keptWorkers(snapshot: Snapshot, placement: SchedulingResult['placement']): ReadonlySet<string> {
  const texts = (from: Snapshot['placement']): string[] =>
    [...from].flatMap(([topology, workers]) =>
      workers.map((worker) =>
        stableText({
          topology,
          ...toVector({ ...worker, executors: [...worker.executors].sort(([a], [b]) => a - b) }),
        }),
      ),
    );
  const after = new Set(texts(placement));
  return new Set(texts(snapshot.placement).filter((text) => after.has(text)));
}

/** Isolation and multitenant take workers from machines that they give to a topology; the others leave all as they are. */
function unsound(snapshot: Snapshot, result: SchedulingResult, keepsAll: boolean): string | undefined {
  const faults = [...validateAssignment(snapshot, result)].flatMap(([id, sentences]) =>
    sentences.map((sentence) => `${id}: ${sentence}`),
  );
  const before = [...snapshot.placement.values()].reduce((sum, workers) => sum + workers.length, 0);
  if (keepsAll && keptWorkers(snapshot, result.placement).size < before)
    faults.push('a live worker was changed');
  return faults.length === 0 ? undefined : faults.join('; ');
}
