/**
 * One scheduling round as a pure function: who is alive → what is free → the strategy → checked assignments.
 *
 * R1: what is alive stays where it is, but for a rebalance that was asked for. R2: the same input gives the same output, whatever its order. R3: a topology that
 * fails keeps its assignment and its slots, and the others are placed as usual. R4: no executor is lost in silence.
 * Source: Storm's `mk-assignments`; unlike there an exception does not end the daemon.
 */
import { type ErrorRecord, toIsobarError } from '../base/index.js';
import { isAlive, type LivenessLimits, livenessLimits, restrictToAlive } from './alive-executors.js';
import type { Assignment, SlotAssignment } from './assignment.js';
import { WorkingCluster } from './cluster.js';
import {
  type ClusterSnapshot,
  type ClusterSupervisor,
  type ClusterTopology,
  type PlacedWorker,
  slotKey,
} from './cluster-snapshot.js';
import { isComplete } from './complete-placement.js';
import { indexExecutors, NO_EXECUTOR } from './executor-index.js';
import type { PlannedExecutor } from './executors.js';
import { supervisorsToNotify } from './notify.js';
import { compareRanges, compareText, inOrder } from './order.js';
import { factsOfSettings } from './placement-rules.js';
import { rebalanceInPlace } from './rebalance/rebalanced-workers.js';
import { withoutOverload } from './rebalance/without-overload.js';
import type {
  DeadExecutor,
  RoundInput,
  RoundLogLine,
  RoundSupervisor,
  RoundTopology,
  SchedulingOutcome,
  TopologyOutcome,
} from './round-types.js';
import type { LoadBalanceMode, LoadSource } from './resources.js';
import { changedWorkers } from './start-times.js';
import { slotsWanted } from './strategies/balanced/slot-groups.js';
import { evenStrategy } from './strategies/even/even.js';
import type { SchedulingResult, Unplaced } from './strategies/strategy.js';
import { assignmentInvalid, capacityRulesOf, validateAssignment } from './validate-assignment.js';

/** A topology whose stored assignment was read. */
interface ReadTopology {
  readonly topology: RoundTopology;
  readonly dead: readonly DeadExecutor[];
  readonly alive: readonly PlacedWorker[];
  readonly deadPorts: ReadonlyMap<string, readonly number[]>;
}

type Failures = Map<
  string,
  { readonly topology: RoundTopology; readonly error: ErrorRecord; readonly dead: readonly DeadExecutor[] }
>;

/** A round whose strategy has not answered yet. */
export interface OpenRound {
  /** What the strategy is to be asked. */
  readonly snapshot: ClusterSnapshot;
  /** Checks what it has answered, and decides. `asked`: the snapshot as it was shown, if some hosts were closed; not given: as it is. */
  finish(result: SchedulingResult, asked?: ClusterSnapshot): SchedulingOutcome;
}

/** Decides a round at once; nothing is thrown for what is wrong with one topology. Cost: O(E log E + S log M). */
export function schedulingRound(input: RoundInput): SchedulingOutcome {
  const { strategy, compatibility = false } = input;
  const schedule = strategy === 'even' ? evenStrategy({ fillLiveWorkers: !compatibility }) : strategy;
  const round = openRound(input);
  let result: SchedulingResult;
  try {
    result = schedule(round.snapshot);
  } catch (error) {
    const failures = new Map(round.snapshot.topologies.map(({ id }) => [id, error]));
    result = { placement: round.snapshot.placement, unplaced: new Map(), failures, steps: 0 };
  }
  return round.finish(result);
}

/** Everything that comes before the strategy is asked, for whoever asks it elsewhere. */
export function openRound(input: Omit<RoundInput, 'strategy' | 'compatibility'>): OpenRound {
  const failures: Failures = new Map();
  const readable: ReadTopology[] = [];
  const goneSupervisors = new Set(input.supervisors.filter(({ gone }) => gone === true).map(({ id }) => id));
  for (const topology of [...input.topologies].sort((a, b) => compareText(a.id, b.id))) {
    try {
      readable.push(readTopology(topology, goneSupervisors, input.nowMs));
    } catch (error) {
      failures.set(topology.id, { topology, error: failure(error, topology.id), dead: [] });
    }
  }

  const held = heldBack(input, readable, failures);
  const placed = readable.filter(({ topology }) => !held.has(topology.id));
  const { supervisors, hiddenSlots } = visibleSupervisors(
    input.supervisors,
    readable,
    [...failures.values(), ...held.values()].map(({ topology }) => topology),
  );
  const waiting = [...held.values()].reduce((sum, { wanted }) => sum + wanted, 0);
  const spokenFor = waiting + (input.spokenFor ?? 0);
  const snapshot: ClusterSnapshot = {
    supervisors,
    topologies: placed.map(({ topology }) => clusterTopologyOf(topology)),
    placement: new Map(placed.map(({ topology, alive }) => [topology.id, alive])),
    ...(spokenFor > 0 ? { spokenFor } : {}),
  };
  const shown = rebalanced(snapshot, placed);
  return {
    snapshot: shown,
    finish: (result, asked = shown) =>
      finishRound(input, { snapshot: asked, placed, held, failures: new Map(failures), hiddenSlots }, result),
  };
}

interface ReadRound {
  readonly snapshot: ClusterSnapshot;
  readonly placed: readonly ReadTopology[];
  readonly held: ReadonlyMap<string, HeldTopology>;
  readonly failures: Failures;
  readonly hiddenSlots: number;
}

function finishRound(
  input: Omit<RoundInput, 'strategy' | 'compatibility'>,
  { snapshot, placed, held, failures, hiddenSlots }: ReadRound,
  result: SchedulingResult,
): SchedulingOutcome {
  const faults = faultsOf(snapshot, result);
  const hosts = new Map(input.supervisors.map(({ id, host }) => [id, host]));
  const log: RoundLogLine[] = [];
  for (const { topology, dead } of placed) {
    const error = faults.get(topology.id);
    if (error !== undefined) failures.set(topology.id, { topology, error, dead });
  }
  const outcomes: TopologyOutcome[] = [...failures].map(([topologyId, { error, dead }]) => ({
    kind: 'failed',
    topologyId,
    error,
    dead,
    unplaced: [],
    unplacedReason: null,
  }));
  for (const { topology, reason, dead, unplaced } of held.values()) {
    const unplacedReason = `Topology "${topology.id}" ${reason}`;
    outcomes.push({ kind: 'unchanged', topologyId: topology.id, dead, unplaced, unplacedReason });
  }
  for (const read of placed) {
    const { id } = read.topology;
    if (failures.has(id)) continue;
    const workers = result.placement.get(id) ?? [];
    outcomes.push(outcomeOf(read, workers, result.unplaced.get(id), hiddenSlots, hosts, input.nowMs));
  }
  outcomes.sort((a, b) => compareText(a.topologyId, b.topologyId));
  // Who waits on purpose is no cause for alarm.
  for (const outcome of outcomes) log.push(...logOf(outcome, held.has(outcome.topologyId) ? 'info' : 'warn'));
  const isChanged = outcomes.some(({ kind }) => kind === 'changed');
  if (isChanged && result.notes !== undefined && result.notes.length > 0)
    log.push({ level: 'info', event: 'placement.balanced', fields: { notes: result.notes } });
  const waiting = outcomes.some(({ unplaced }) => unplaced.length > 0);
  // Only slots whose dead executors this round takes away are visible in the next one.
  const released = outcomes.some(({ kind, dead }) => kind === 'changed' && dead.length > 0);
  const runAgain = waiting && released && hiddenSlots > 0;
  return { topologies: outcomes, log, runAgain, decided: { snapshot, result } };
}

interface HeldTopology {
  readonly topology: RoundTopology;
  readonly reason: string;
  /** Slots that it waits for. */
  readonly wanted: number;
  readonly dead: readonly DeadExecutor[];
  readonly unplaced: readonly PlannedExecutor[];
}

/** Topologies that are to wait, by id. Cost: O(workers), and O(E + S) for each topology that needs a slot. */
function heldBack(
  { holds, supervisors }: Omit<RoundInput, 'strategy' | 'compatibility'>,
  readable: readonly ReadTopology[],
  failures: Failures,
): ReadonlyMap<string, HeldTopology> {
  const held = new Map<string, HeldTopology>();
  if (holds === undefined) return held;
  let free: ReadonlyMap<string, readonly string[]> | undefined;
  for (const { topology, alive, dead } of readable) {
    const { executors } = topology.plan;
    if (alive.reduce((sum, worker) => sum + worker.executors.length, 0) >= executors.length) continue;
    const wanted = slotsWanted(clusterTopologyOf(topology)) - alive.length;
    if (wanted <= 0) continue;
    free ??= freeSlots(supervisors, readable, failures);
    const reason = holds({ topologyId: topology.id, wanted, free, isRunning: alive.length > 0 });
    if (reason === null) continue;
    const running = new Set(alive.flatMap((worker) => worker.executors.map(([first]) => first)));
    const unplaced = executors.filter(({ range: [first] }) => !running.has(first));
    held.set(topology.id, { topology, reason, wanted, dead, unplaced });
  }
  return held;
}

/** Slots where something may be placed now and nothing is, by supervisor. */
function freeSlots(
  all: readonly RoundSupervisor[],
  readable: readonly ReadTopology[],
  failures: Failures,
): ReadonlyMap<string, readonly string[]> {
  const failed = [...failures.values()].map(({ topology }) => topology);
  const { supervisors } = visibleSupervisors(all, readable, failed);
  const used = new Set(readable.flatMap(({ alive }) => alive.map(slotKey)));
  return new Map(
    supervisors.map(({ id, ports }) => [
      id,
      ports.map((port) => slotKey({ supervisor: id, port })).filter((slot) => !used.has(slot)),
    ]),
  );
}

/** What strategies see of a topology. */
export function clusterTopologyOf({
  id,
  plan,
  settings,
  facts,
  measured,
}: Pick<RoundTopology, 'id' | 'plan' | 'settings' | 'facts' | 'measured'>): ClusterTopology {
  const sharing = settings['scheduling.slot-sharing'];
  const given = factsOfSettings(settings);
  return {
    ...given,
    ...facts,
    // What nobody says of a topology is as the settings say.
    ...(facts?.rules === undefined ? {} : { rules: { ...given.rules, ...facts.rules } }),
    id,
    workers: plan.topologyWorkers,
    executors: plan.executors,
    components: plan.components,
    ...(measured === undefined ? {} : { measured }),
    balance: {
      // The table of settings allows no other values.
      mode: settings['load-balance.mode'] as LoadBalanceMode,
      load: settings['scheduling.compatibility'].includes('flink')
        ? 'executors'
        : (settings['load-balance.load'] as LoadSource),
      ...(sharing === 'task-balanced' || sharing === 'local-input-preferred' ? { sharing } : {}),
    },
  };
}

function readTopology(
  topology: RoundTopology,
  goneSupervisors: ReadonlySet<string>,
  nowMs: number,
): ReadTopology {
  const { stored, settings, plan, rebalance } = topology;
  if (rebalance?.placement === 'from-scratch') return { topology, dead: [], alive: [], deadPorts: new Map() };
  const planned = indexExecutors(plan.executors);
  const limits = livenessLimits({
    clusterTimeoutMs: settings['topology.worker-timeout'],
    topologyTimeoutMs: null,
    launchTimeoutMs: settings['topology.worker-launch-timeout'],
  });
  // Mostly all of them live, and nothing else has to be known.
  if (goneSupervisors.size === 0 && stored !== undefined && isComplete(stored.slots, planned)) {
    if (allAlive(stored.slots, topology, limits, nowMs))
      return { topology, dead: [], alive: stored.slots, deadPorts: new Map() };
  }
  const dead: DeadExecutor[] = [];
  const { workers, deadPorts } = restrictToAlive(stored?.slots ?? [], (range, slot) => {
    const { supervisor, port, startedMs } = slot;
    const place = planned.indexOf(range);
    // An executor that the plan no longer has gives way without being called dead, unless a rebalance cuts it anew.
    if (place === NO_EXECUTOR && rebalance === undefined) return false;
    const component =
      planned.executors[place]?.component ??
      plan.tasks.find(({ first, last }) => first <= range[0] && range[0] <= last)?.component;
    if (component === undefined) return false;
    const lastHeartbeatMs = topology.lastHeartbeatMs(range[0]);
    const gone = goneSupervisors.size > 0 && goneSupervisors.has(supervisor);
    if (!gone && isAlive({ startedMs, lastHeartbeatMs }, limits, nowMs)) return true;
    const cause = gone ? 'gone' : lastHeartbeatMs === undefined ? 'never-started' : 'silent';
    dead.push({ range, component, supervisor, port, cause });
    return false;
  });
  dead.sort((a, b) => compareRanges(a.range, b.range));
  return { topology, dead, alive: workers, deadPorts };
}

function allAlive(
  slots: readonly SlotAssignment[],
  topology: RoundTopology,
  limits: LivenessLimits,
  nowMs: number,
): boolean {
  for (const { executors, startedMs } of slots) {
    for (let index = 0; index < executors.length; index++) {
      const lastHeartbeatMs = topology.lastHeartbeatMs(executors[index]![0]);
      if (!isAlive({ startedMs, lastHeartbeatMs }, limits, nowMs)) return false;
    }
  }
  return true;
}

/** The snapshot with the placement that rebalances ask for. */
function rebalanced(snapshot: ClusterSnapshot, readable: readonly ReadTopology[]): ClusterSnapshot {
  const pending = readable.filter(({ topology }) => topology.rebalance?.placement === 'few-moves');
  if (pending.length === 0) return snapshot;
  const cluster = new WorkingCluster(snapshot);
  for (const { topology, alive } of pending) {
    const { id, plan } = topology;
    rebalanceInPlace(cluster, {
      id,
      workers: alive,
      executors: plan.executors,
      wantedWorkers: plan.topologyWorkers,
    });
  }
  const heeding = pending.filter(
    ({ topology: { settings } }) => settings['scheduling.strategy'] === 'resource-aware',
  );
  const ids = new Set(heeding.map(({ topology }) => topology.id));
  return { ...snapshot, placement: withoutOverload(snapshot, cluster.placement(), ids) };
}

/** Supervisors with the ports on which something may be placed now. */
function visibleSupervisors(
  supervisors: readonly RoundSupervisor[],
  readable: readonly ReadTopology[],
  unchanged: readonly RoundTopology[],
): { readonly supervisors: ClusterSnapshot['supervisors']; readonly hiddenSlots: number } {
  const hidden = new Set<string>();
  for (const { deadPorts } of readable) {
    for (const [supervisor, ports] of deadPorts)
      for (const port of ports) hidden.add(slotKey({ supervisor, port }));
  }
  const held = new Set(unchanged.flatMap(({ stored }) => readableSlots(stored)));
  const isNoneHidden = hidden.size === 0 && held.size === 0;
  let hiddenSlots = 0;
  const isHidden = (id: string, port: number): boolean => hidden.has(slotKey({ supervisor: id, port }));
  const isOpen = (id: string, port: number): boolean =>
    !isHidden(id, port) && !held.has(slotKey({ supervisor: id, port }));
  const visible = inOrder(
    supervisors.filter(({ gone }) => gone !== true),
    (a, b) => compareText(a.id, b.id),
  ).map((supervisor): ClusterSupervisor => {
    const ports = isNoneHidden
      ? supervisor.ports
      : supervisor.ports.filter((port) => isOpen(supervisor.id, port));
    if (ports === supervisor.ports && supervisor.gone === undefined && isAscending(ports)) return supervisor;
    const { gone: _gone, ...facts } = supervisor;
    // Slots of workers that died are open in the next round.
    const hiddenHere =
      ports === supervisor.ports
        ? 0
        : supervisor.ports.filter((port) => isHidden(supervisor.id, port)).length;
    hiddenSlots += hiddenHere;
    const soonFree = (supervisor.soonFree ?? 0) + hiddenHere;
    return { ...facts, ports: [...ports].sort((x, y) => x - y), ...(soonFree > 0 ? { soonFree } : {}) };
  });
  return { supervisors: visible, hiddenSlots };
}

function isAscending(numbers: readonly number[]): boolean {
  for (let index = 1; index < numbers.length; index++)
    if (numbers[index - 1]! > numbers[index]!) return false;
  return true;
}

/** Slots of an assignment that could not be read as a whole: what can be made out of it stays reserved. */
function readableSlots(stored: unknown): string[] {
  const slots: unknown =
    typeof stored === 'object' && stored !== null && 'slots' in stored ? stored.slots : [];
  if (!Array.isArray(slots)) return [];
  return slots.flatMap((slot: unknown) => {
    if (typeof slot !== 'object' || slot === null || !('supervisor' in slot) || !('port' in slot)) return [];
    return typeof slot.supervisor === 'string' && typeof slot.port === 'number'
      ? [slotKey({ supervisor: slot.supervisor, port: slot.port })]
      : [];
  });
}

/** Checks what a strategy returned. */
function faultsOf(snapshot: ClusterSnapshot, result: SchedulingResult): ReadonlyMap<string, ErrorRecord> {
  const faults = new Map<string, ErrorRecord>();
  for (const [id, error] of result.failures) faults.set(id, failure(error, id));
  for (const [id, sentences] of validateAssignment(snapshot, result, capacityRulesOf(result))) {
    if (!faults.has(id)) faults.set(id, invalid(id, sentences));
  }
  return faults;
}

function failure(error: unknown, topologyId: string): ErrorRecord {
  const { code, message, details, stack } = toIsobarError(error, 'INTERNAL', {
    where: `scheduling of ${topologyId}`,
  });
  return { code, message, details, ...(stack === undefined ? {} : { stack }) };
}

function invalid(topologyId: string, sentences: readonly string[]): ErrorRecord {
  const { code, message, details } = assignmentInvalid(topologyId, sentences);
  // Without the stack, so that the same input gives the same outcome wherever it is decided.
  return { code, message, details };
}

function outcomeOf(
  { topology, dead }: ReadTopology,
  workers: readonly PlacedWorker[],
  unplaced: Unplaced | undefined,
  hiddenSlots: number,
  hosts: ReadonlyMap<string, string>,
  nowMs: number,
): TopologyOutcome {
  const { id: topologyId, plan, stored } = topology;
  const facts = {
    topologyId,
    dead,
    unplaced: unplaced?.executors ?? [],
    unplacedReason: unplaced === undefined ? null : reasonText(topologyId, unplaced, hiddenSlots),
  };
  const before = stored?.slots ?? [];
  const hostOf = (supervisor: string, known: string): string => hosts.get(supervisor) ?? known;
  // The very list that is in force, handed through: nothing has to be compared.
  const isKept =
    workers === before && before.every((slot) => hostOf(slot.supervisor, slot.host) === slot.host);
  const changed = isKept ? [] : changedWorkers(before, workers);
  const startsNow = new Set(changed.map(slotKey));
  const old = new Map(isKept ? [] : before.map((slot) => [slotKey(slot), slot]));
  const placed = (worker: PlacedWorker): SlotAssignment => {
    const slot = old.get(slotKey(worker));
    return {
      supervisor: worker.supervisor,
      host: hostOf(worker.supervisor, slot?.host ?? ''),
      port: worker.port,
      executors: worker.executors,
      startedMs: slot === undefined || startsNow.has(slotKey(worker)) ? nowMs : slot.startedMs,
    };
  };
  const slots = isKept ? before : workers.map(placed);
  const revision = revisionOf(topology, workers, facts.unplaced.length);
  const assignment: Assignment = {
    topologyId,
    version: (stored?.version ?? 0) + 1,
    tasks: plan.tasks,
    slots,
    ...(revision === undefined ? {} : { revision }),
  };
  if (stored !== undefined && sameAssignment(stored, assignment)) return { kind: 'unchanged', ...facts };
  return {
    kind: 'changed',
    ...facts,
    assignment,
    notify: supervisorsToNotify(stored?.slots, slots),
    started: changed.flatMap(({ executors }) => executors).sort(compareRanges),
  };
}

/**
 * The last rebalance that a placement fulfils: placing anew happens once; a rebalance with few moves goes on until there are as
 * many workers as wanted, so that slots that become free later are used.
 */
function revisionOf(
  { rebalance, stored, plan }: RoundTopology,
  workers: readonly PlacedWorker[],
  unplaced: number,
): number | undefined {
  if (rebalance === undefined) return stored?.revision;
  const wanted = Math.min(plan.topologyWorkers, plan.executors.length);
  const isFulfilled =
    rebalance.placement === 'from-scratch' ? workers.length > 0 : workers.length >= wanted && unplaced === 0;
  return isFulfilled ? rebalance.revision : stored?.revision;
}

function reasonText(topologyId: string, { reason }: Unplaced, hiddenSlots: number): string {
  const hidden =
    hiddenSlots === 0
      ? ''
      : ` ${hiddenSlots} more ${hiddenSlots === 1 ? 'slot is' : 'slots are'} held back for this round, because a worker died there.`;
  return `Topology "${topologyId}" ${reason}${hidden}`;
}

/** Equal in all but the version. */
function sameAssignment(a: Assignment, b: Assignment): boolean {
  return a.revision === b.revision && sameTasks(a.tasks, b.tasks) && sameSlots(a.slots, b.slots);
}

function sameTasks(a: Assignment['tasks'], b: Assignment['tasks']): boolean {
  if (a === b) return true;
  return (
    a.length === b.length &&
    a.every((one, index) => {
      const other = b[index]!;
      return one.component === other.component && one.first === other.first && one.last === other.last;
    })
  );
}

function sameSlots(a: Assignment['slots'], b: Assignment['slots']): boolean {
  if (a === b) return true;
  return (
    a.length === b.length &&
    changedWorkers(a, b).length === 0 &&
    a.every((slot, index) => {
      const other = b[index]!;
      return (
        slotKey(slot) === slotKey(other) && slot.host === other.host && slot.startedMs === other.startedMs
      );
    })
  );
}

function logOf(outcome: TopologyOutcome, unplacedLevel: 'info' | 'warn'): RoundLogLine[] {
  const { topologyId, dead, unplaced, unplacedReason } = outcome;
  const lines: RoundLogLine[] = [];
  if (dead.length > 0) {
    const slots = [...new Set(dead.map(slotKey))];
    const causes = [...new Set(dead.map(({ cause }) => cause))];
    lines.push({
      level: 'warn',
      event: 'executors.died',
      fields: { topology: topologyId, count: dead.length, slots, causes },
    });
  }
  if (outcome.kind === 'changed') {
    const { assignment, started, notify } = outcome;
    const fields = {
      version: assignment.version,
      workers: assignment.slots.length,
      started: started.length,
      notify,
    };
    lines.push({ level: 'info', event: 'assignment.changed', fields: { topology: topologyId, ...fields } });
  }
  if (outcome.kind === 'failed') {
    const { code, message } = outcome.error;
    lines.push({
      level: 'error',
      event: 'scheduling.failed',
      fields: { topology: topologyId, code, message },
    });
  }
  if (unplaced.length > 0) {
    const fields = { topology: topologyId, count: unplaced.length, reason: unplacedReason };
    lines.push({ level: unplacedLevel, event: 'executors.unplaced', fields });
  }
  return lines;
}
