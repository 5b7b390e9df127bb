/**
 * The strategy `balanced`: executors share slots, slots are spread over machines by the load-balance mode, over all
 * topologies together. Under `tasks` the balance is improved beyond the greedy pass and restored by few moves when machines
 * were lost or came. Source: Flink's FLIP-370 for the steps; the search for less imbalance and fewer moves is our own.
 *
 * Invariants
 * B1  What runs stays unless moving it makes the spread better, and only groups that may move do, at most `moveBudget`.
 * B2  No executor is without a worker while its topology has one.
 * B3  The same snapshot gives the same result.
 * B4  Where slots are short, a topology that has more than its share gives one up for one that has none, as far as it may move.
 */
import {
  type Arrangement,
  balanceGroups,
  type BalanceProblem,
  largestLoadBound,
  machineLoads,
  spreadOf,
} from '../../balance/index.js';
import { WorkingCluster } from '../../cluster.js';
import type { ClusterSnapshot, ClusterTopology, PlacedWorker, Slot } from '../../cluster-snapshot.js';
import type { LoadBalanceMode } from '../../resources.js';
import { chooseMachines } from '../../slot-matching/index.js';
import { fairShares, firstShares, type Wish } from '../../fair-shares.js';
import type { SchedulingResult, Strategy, Unplaced } from '../strategy.js';
import { joinWorkers } from './join-workers.js';
import { rememberingLast } from './known-question.js';
import { machineChoiceOf } from './load-balance-mode.js';
import { type ArrangedWorkers, type ArrangingOptions, arrangeWorkers } from './objectives.js';
import { type Sharer, slotsToGive } from './slots-to-give.js';
import { splitWorkers } from './split-workers.js';
import { groupable, type GroupableTopology, openGroups, type SlotGroup } from './slot-groups.js';

export interface BalancedOptions extends ArrangingOptions {
  /** Of the cluster; a topology may have its own. */
  readonly mode: LoadBalanceMode;
  readonly sharing?: 'local-input-preferred' | 'task-balanced';
  /** Improve the greedy result, and restore a balance that was lost. Off: exactly Flink's steps. */
  readonly improves: boolean;
  /** What machines carry is the load of all topologies. Off: each is spread as if it were alone. */
  readonly seesAllTopologies: boolean;
  /** Where slots are short, topologies get equal parts of them (B4); off: in order of id they take what they want. */
  readonly fairShares: boolean;
  /** Workers that run and may be moved in this round. */
  readonly moveBudget: number;
  /** As for {@link balanceGroups}: for loads that change by themselves. Not given: any gain is worth a move. */
  readonly leastGain?: number;
}

/** A group with the topology that it belongs to. */
interface OpenGroup {
  readonly topologyId: string;
  readonly group: SlotGroup;
  /** The slot of the worker that it was taken out of; not given: it has not run. */
  readonly origin?: Slot;
}

interface RunningGroup extends OpenGroup {
  readonly worker: PlacedWorker;
}

export function balancedStrategy(options: BalancedOptions): Strategy {
  return rememberingLast((snapshot) => new BalancedRound(snapshot, options).run());
}

class BalancedRound {
  readonly #snapshot: ClusterSnapshot;
  readonly #options: BalancedOptions;
  readonly #cluster: WorkingCluster;
  readonly #machines: readonly string[];
  /** By topology id. */
  readonly #groupable: ReadonlyMap<string, GroupableTopology>;
  readonly #failures = new Map<string, unknown>();
  readonly #notes: string[] = [];
  /** Workers that are moved in this round so that others get a slot, by topology. */
  readonly #given = new Map<string, number>();
  /** Running workers that may still be moved, or relieved of executors, in this round. */
  #movesLeft: number;
  /** Topologies without a slot for which no other one can give one. */
  #lacking = 0;

  constructor(snapshot: ClusterSnapshot, options: BalancedOptions) {
    this.#snapshot = snapshot;
    this.#options = options;
    this.#cluster = new WorkingCluster(snapshot);
    this.#machines = this.#cluster.supervisorIds();
    this.#groupable = new Map(snapshot.topologies.map((topology) => [topology.id, groupable(topology)]));
    this.#movesLeft = options.improves ? options.moveBudget : 0;
  }

  run(): SchedulingResult {
    const byMode = new Map<LoadBalanceMode, OpenGroup[]>();
    const running: RunningGroup[] = [];
    const topologies = [...this.#snapshot.topologies].sort((a, b) => (a.id < b.id ? -1 : 1));
    this.#makeRoom(topologies);
    const shares = this.#fairShares(topologies);
    const growth = this.#growth(topologies, shares);
    for (const topology of topologies) {
      const { id } = topology;
      const isAsked = this.#isAsked(id);
      const mode = topology.balance?.mode ?? this.#options.mode;
      try {
        const own = this.#groupable.get(id)!;
        const open = byMode.get(mode) ?? [];
        byMode.set(mode, open);
        open.push(...this.#split(id, own, growth.get(id) ?? 0));
        const workers = this.#cluster.workersOf(id);
        const sharing = topology.balance?.sharing ?? this.#options.sharing;
        // What has moved in this round already stays where it is now.
        const movable = isAsked && mode === 'tasks' && !this.#given.has(id);
        for (const worker of workers) {
          const group = own.weigh(worker.executors);
          const isMovable = movable && group.isMovable && this.#cluster.isAssignable(worker);
          running.push({ topologyId: id, worker, group: { ...group, isMovable } });
        }
        if (!isAsked || growth.has(id) || this.#given.has(id)) continue;
        const rules = {
          mode,
          maxSlots: workers.length + (shares.get(id) ?? 0),
          ...(sharing === undefined ? {} : { sharing }),
        };
        for (const group of openGroups(own, workers, rules)) open.push({ topologyId: id, group });
      } catch (error) {
        this.#failures.set(id, error);
      }
    }
    for (const [mode, open] of byMode) if (mode !== 'tasks') this.#placeBySlots(mode, open);
    this.#placeByTasks(byMode.get('tasks') ?? [], running);
    const lacking = topologies.filter(
      ({ id }) => !this.#failures.has(id) && this.#isAsked(id) && this.#cluster.hasUnassigned(id),
    );
    this.#join(lacking.map(({ id }) => id));
    return this.#result(topologies);
  }

  #isAsked(topologyId: string): boolean {
    return this.#snapshot.scheduleOnly?.has(topologyId) ?? true;
  }

  /** Frees slots for topologies that have none (B4); what was there joins other workers at the end of the round. */
  #makeRoom(topologies: readonly ClusterTopology[]): void {
    if (!this.#options.fairShares || this.#movesLeft === 0) return;
    const sharers = topologies.flatMap(({ id, executors }): Sharer[] => {
      const own = this.#groupable.get(id)!;
      return this.#isAsked(id) ? [{ id, own, wanted: Math.min(executors.length, own.slots) }] : [];
    });
    const soon = this.#snapshot.supervisors.reduce((sum, { soonFree = 0 }) => sum + soonFree, 0);
    const free = this.#cluster.freeSlotCount + soon;
    const { given, lacking } = slotsToGive(this.#cluster, sharers, free, this.#movesLeft);
    this.#lacking = lacking;
    this.#movesLeft -= given.length;
    for (const { topologyId, worker } of given) {
      this.#cluster.freeSlot(worker);
      this.#given.set(topologyId, (this.#given.get(topologyId) ?? 0) + 1);
    }
    for (const [id, count] of this.#given) {
      const what = count === 1 ? '1 worker' : `${count} workers`;
      this.#notes.push(`Topology "${id}" has more than its share of the slots and gives up ${what}.`);
    }
  }

  /** Executors without a slot join workers of their topologies. */
  #join(ids: readonly string[]): void {
    if (ids.length === 0) return;
    const loads = this.#otherLoads();
    const add = (id: string): void => {
      const { weigh } = this.#groupable.get(id)!;
      for (const { supervisor, executors } of this.#cluster.workersOf(id))
        loads.set(supervisor, (loads.get(supervisor) ?? 0) + weigh(executors).load);
    };
    const { seesAllTopologies } = this.#options;
    if (seesAllTopologies) for (const { id } of this.#snapshot.topologies) add(id);
    for (const id of ids) {
      if (!seesAllTopologies) {
        loads.clear();
        add(id);
      }
      joinWorkers(this.#cluster, id, this.#groupable.get(id)!, loads);
    }
  }

  /** New slots for each topology that needs some: what it wants, or where slots are short, equal parts. */
  #fairShares(topologies: readonly ClusterTopology[]): ReadonlyMap<string, number> {
    const wanted = topologies.flatMap(({ id, executors }): Wish[] => {
      if (!this.#isAsked(id) || this.#given.has(id) || !this.#cluster.hasUnassigned(id)) return [];
      const slots = Math.min(executors.length, this.#groupable.get(id)!.slots);
      const has = this.#cluster.assignedWorkers(id);
      return [[id, slots - has, has]];
    });
    const free = this.#cluster.freeSlotCount;
    return this.#options.fairShares ? fairShares(wanted, free) : firstShares(wanted, free);
  }

  /**
   * New slots for topologies all of whose executors run, in fewer workers than they want, because there were no more slots
   * when they were placed; what nobody needs more.
   */
  #growth(
    topologies: readonly ClusterTopology[],
    shares: ReadonlyMap<string, number>,
  ): ReadonlyMap<string, number> {
    const clusterMode = this.#options.mode;
    if (this.#movesLeft === 0) return new Map();
    let free = this.#cluster.freeSlotCount - (this.#snapshot.spokenFor ?? 0);
    for (const share of shares.values()) free -= share;
    const wanted = topologies.flatMap(({ id, executors, balance }): Wish[] => {
      if (!this.#isAsked(id) || this.#given.has(id) || this.#cluster.hasUnassigned(id)) return [];
      if ((balance?.mode ?? clusterMode) !== 'tasks') return [];
      const workers = this.#cluster.assignedWorkers(id);
      const lack = Math.min(executors.length, this.#groupable.get(id)!.slots) - workers;
      return workers > 0 && lack > 0 ? [[id, lack, workers]] : [];
    });
    const slots = Math.max(0, Math.min(free, this.#movesLeft));
    return new Map([...fairShares(wanted, slots)].filter(([, count]) => count > 0));
  }

  /** Groups taken out of the running workers of a topology for so many new slots. */
  #split(id: string, own: GroupableTopology, count: number): readonly OpenGroup[] {
    if (count === 0) return [];
    const workers = this.#cluster.workersOf(id).filter((worker) => this.#cluster.isAssignable(worker));
    const { kept, groups } = splitWorkers(own, workers, count);
    this.#movesLeft -= groups.length;
    for (const { executors, ...slot } of kept) {
      this.#cluster.freeSlot(slot);
      this.#cluster.assign(slot, id, executors);
    }
    return groups.map((group) => {
      const origin = workers.find(({ executors }) => executors.includes(group.executors[0]!));
      return { topologyId: id, group, ...(origin === undefined ? {} : { origin }) };
    });
  }

  /** Machines are chosen by slots in use; groups go to their slots in order, machine by machine. */
  #placeBySlots(mode: LoadBalanceMode, open: readonly OpenGroup[]): void {
    const machines = this.#machines.map((id) => {
      const used = this.#cluster.usedPorts(id).length;
      return { slots: used + this.#cluster.availablePorts(id).length, used };
    });
    const { perMachine } = chooseMachines(machineChoiceOf(mode), machines, open.length, 0);
    let next = 0;
    for (const [index, supervisor] of this.#machines.entries()) {
      const ports = this.#cluster.availablePorts(supervisor).slice(0, perMachine[index]);
      for (const port of ports) {
        const { topologyId, group } = open[next++]!;
        this.#cluster.assign({ supervisor, port }, topologyId, group.executors);
      }
    }
  }

  #placeByTasks(open: readonly OpenGroup[], running: readonly RunningGroup[]): void {
    if (this.#options.seesAllTopologies) {
      this.#placeByLoad(open, this.#allRunning(running), this.#otherLoads());
      return;
    }
    const [openOf, runningOf] = [byTopology(open), byTopology(running)];
    for (const id of new Set([...openOf.keys(), ...runningOf.keys()])) {
      const first = this.#notes.length;
      this.#placeByLoad(openOf.get(id) ?? [], runningOf.get(id) ?? [], new Map());
      for (let note = first; note < this.#notes.length; note++)
        this.#notes[note] = `Topology "${id}" alone: ${this.#notes[note]!}`;
    }
  }

  /** What machines carry of topologies that are not part of this round. */
  #otherLoads(): Map<string, number> {
    const { seesAllTopologies } = this.#options;
    return new Map(
      this.#snapshot.supervisors.map(({ id, otherLoad = 0 }) => [id, seesAllTopologies ? otherLoad : 0]),
    );
  }

  /**
   * The groups that may be placed or moved, over all machines, by what machines carry.
   *
   * @param all what runs, whether it may move or not
   */
  #placeByLoad(
    open: readonly OpenGroup[],
    all: readonly OpenRunning[],
    otherLoads: ReadonlyMap<string, number>,
  ): void {
    const movable = this.#options.improves ? all.filter(({ group }) => group.isMovable) : [];
    if (open.length === 0 && movable.length === 0) return;
    const indexOf = new Map(this.#machines.map((id, index) => [id, index]));
    const places = Int32Array.from(this.#machines, (id) => this.#cluster.availablePorts(id).length);
    const fixedLoads = Float64Array.from(this.#machines, (id) => otherLoads.get(id) ?? 0);
    const isCounted = new Set<OpenRunning>(movable);
    for (const one of all) {
      const machine = indexOf.get(one.worker.supervisor);
      if (machine === undefined) continue;
      if (isCounted.has(one)) places[machine]!++;
      else fixedLoads[machine]! += one.group.load;
    }
    // A machine on which nothing may be placed is not there for balance.
    const usable = [...places.keys()].filter((machine) => places[machine]! > 0);
    const compact = new Map(usable.map((machine, index) => [machine, index]));
    const groups: readonly OpenGroup[] = [...open, ...movable];
    const problem: BalanceProblem = {
      fixedLoads: Float64Array.from(usable, (machine) => fixedLoads[machine]!),
      places: Int32Array.from(usable, (machine) => places[machine]!),
      loads: Float64Array.from(groups, ({ group }) => group.load),
      current: Int32Array.from([
        ...open.map(() => -1),
        ...movable.map(({ worker }) => compact.get(indexOf.get(worker.supervisor)!) ?? -1),
      ]),
    };
    const { improves, leastGain = 0 } = this.#options;
    const balance = balanceGroups(problem, { improves, moveBudget: this.#movesLeft, leastGain });
    this.#movesLeft -= balance.moves.length;
    const assigned = balance.assigned.map((machine) => usable[machine] ?? -1);
    const current = Int32Array.from([
      ...open.map(() => -1),
      ...movable.map(({ worker }) => indexOf.get(worker.supervisor) ?? -1),
    ]);
    const fixed = all.filter((one) => !isCounted.has(one) && indexOf.has(one.worker.supervisor));
    const arranged =
      !improves || (open.length === 0 && balance.moves.length === 0)
        ? { assigned, exchanges: 0 }
        : this.#arrange(
            { loads: problem.loads, assigned, current: this.#homes(groups, assigned, current) },
            groups,
            fixed,
            places,
            fixedLoads,
          );
    const changed = [...groups.keys()].filter((group) => arranged.assigned[group] !== current[group]);
    for (const index of changed)
      if (index >= open.length) this.#cluster.freeSlot(movable[index - open.length]!.worker);
    for (const index of changed) {
      const supervisor = this.#machines[arranged.assigned[index]!];
      if (supervisor === undefined) continue;
      const { topologyId, group, origin } = groups[index]!;
      const ports = this.#cluster.availablePorts(supervisor);
      const port = origin?.supervisor === supervisor && ports.includes(origin.port) ? origin.port : ports[0];
      if (port !== undefined) this.#cluster.assign({ supervisor, port }, topologyId, group.executors);
    }
    const final = arranged.assigned.map((machine) => compact.get(machine) ?? -1);
    const spread = spreadOf(machineLoads(problem, final));
    this.#note(open.length, { ...balance, spread }, arranged.exchanges);
    if (open.length > 0 || balance.moves.length > 0)
      this.#notePinned(
        fixedLoads.reduce((most, load) => Math.max(most, load), spread.max),
        problem.loads,
        fixed,
        places,
        fixedLoads,
      );
  }

  /** Machines that groups are at home on: where they run, or where they were taken out of a worker and come back to. */
  #homes(groups: readonly OpenGroup[], assigned: Int32Array, current: Int32Array): Int32Array {
    return current.map((machine, group) => {
      const at = this.#machines[assigned[group]!];
      return machine < 0 && at !== undefined && groups[group]!.origin?.supervisor === at
        ? assigned[group]!
        : machine;
    });
  }

  /** Which of the workers that weigh the same goes where. Machines are numbered as in `#machines`. */
  #arrange(
    { loads, assigned, current }: Pick<Arrangement, 'loads' | 'assigned' | 'current'>,
    groups: readonly OpenGroup[],
    fixed: readonly OpenRunning[],
    places: Int32Array,
    fixedLoads: Float64Array,
  ): ArrangedWorkers {
    const [free, carried] = [Int32Array.from(places), Float64Array.from(fixedLoads)];
    for (const [group, machine] of assigned.entries()) {
      if (machine < 0) continue;
      free[machine]!--;
      carried[machine]! += loads[group]!;
    }
    const racks = new Map(this.#snapshot.supervisors.map(({ id, rack = '' }) => [id, rack]));
    const numbers = new Map([...new Set(racks.values())].sort().map((rack, index) => [rack, index]));
    const indexOf = new Map(this.#machines.map((id, index) => [id, index]));
    return arrangeWorkers(
      { loads, assigned, current, free, machineLoads: carried },
      [...groups, ...fixed].map(({ topologyId, group }) => ({
        topology: this.#groupable.get(topologyId)!,
        executors: group.executors,
      })),
      fixed.map(({ worker }) => indexOf.get(worker.supervisor)!),
      Int32Array.from(this.#machines, (id) => numbers.get(racks.get(id) ?? '') ?? 0),
      this.#options,
    );
  }

  /** Workers placed by slots in this round count as load too. */
  #allRunning(running: readonly RunningGroup[]): readonly OpenRunning[] {
    const known = new Set(running.map(({ worker }) => `${worker.supervisor}:${worker.port}`));
    const added: OpenRunning[] = [];
    for (const topology of this.#snapshot.topologies) {
      if ((topology.balance?.mode ?? this.#options.mode) === 'tasks') continue;
      for (const worker of this.#cluster.workersOf(topology.id)) {
        if (known.has(`${worker.supervisor}:${worker.port}`)) continue;
        const group = this.#groupable.get(topology.id)!.weigh(worker.executors);
        added.push({ topologyId: topology.id, worker, group: { ...group, isMovable: false } });
      }
    }
    return [...running, ...added];
  }

  #note(placed: number, balance: ReturnType<typeof balanceGroups>, exchanges: number): void {
    const { spread, lowerBound, moves, movesBound, reachable } = balance;
    const optimal = spread.max <= lowerBound ? 'optimal' : `no placement is below ${figure(lowerBound)}`;
    this.#notes.push(`Load per machine ${figure(spread.min)} to ${figure(spread.max)} (${optimal}).`);
    if (placed > 0) this.#notes.push(`${placed} ${placed === 1 ? 'worker was' : 'workers were'} placed.`);
    if (moves.length > 0) {
      this.#notes.push(
        `${moves.length} running ${moves.length === 1 ? 'worker moves' : 'workers move'}; at least ${movesBound} must.`,
      );
    }
    if (exchanges > 0) {
      const [what, whose] = exchanges === 1 ? ['exchange', 'was'] : ['exchanges', 'were'];
      this.#notes.push(
        `${exchanges} ${what} of workers between machines ${whose} made at no cost in load: ${this.#wishes().join('; ')}.`,
      );
    }
    if (reachable.max < spread.max || reachable.min > spread.min) {
      this.#notes.push(
        `Further moves will bring it to ${figure(reachable.min)} to ${figure(reachable.max)}.`,
      );
    }
  }

  /** What it costs that some workers may not move: the bound if they could. Machines are numbered as in `#machines`. */
  #notePinned(
    largest: number,
    loads: Float64Array,
    fixed: readonly OpenRunning[],
    places: Int32Array,
    fixedLoads: Float64Array,
  ): void {
    const [slots, others] = [Int32Array.from(places), Float64Array.from(fixedLoads)];
    const indexOf = new Map(this.#machines.map((id, index) => [id, index]));
    const pinned = fixed.filter(
      // By its own nature, not because of its mode or machine.
      ({ topologyId, group }) =>
        group.load > 0 && !this.#groupable.get(topologyId)!.weigh(group.executors).isMovable,
    );
    for (const { worker, group } of pinned) {
      const machine = indexOf.get(worker.supervisor)!;
      others[machine]! -= group.load;
      slots[machine]!++;
    }
    const all = Float64Array.from([...loads, ...pinned.map(({ group }) => group.load)]);
    const bound = largestLoadBound({
      fixedLoads: others,
      places: slots,
      loads: all,
      current: new Int32Array(all.length).fill(-1),
    });
    if (pinned.length === 0 || bound >= largest * (1 - 1e-9)) return;
    const workers = pinned.length === 1 ? '1 running worker' : `${pinned.length} running workers`;
    this.#notes.push(
      `${workers} may not move, because of state or sources that are not movable; if all could, the bound would be ${figure(bound)}.`,
    );
  }

  /** What workers are arranged by beside load. */
  #wishes(): readonly string[] {
    const { classes, spreadsComponents, keepsNeighbours } = this.#options;
    return [
      ...(classes.length > 0 ? [`${classes.join(', ')} are balanced each for itself`] : []),
      ...(spreadsComponents ? ['each component is spread'] : []),
      ...(keepsNeighbours ? ['components that send each other rows are kept near'] : []),
    ];
  }

  /** What becomes of a topology that has executors without a slot, or what to do. */
  #advice(topologyId: string): string {
    const soon = this.#snapshot.supervisors.reduce((sum, { soonFree = 0 }) => sum + soonFree, 0);
    if (soon > 0 && this.#cluster.assignedWorkers(topologyId) === 0)
      return `${soon} ${soon === 1 ? 'is' : 'are'} about to become free.`;
    const advice = 'Add a supervisor, raise supervisor.slots, or stop another topology.';
    return this.#lacking === 0
      ? advice
      : `${advice} Topologies that have more than their share keep their workers, because of state or sources that are not movable.`;
  }

  #result(topologies: readonly ClusterTopology[]): SchedulingResult {
    const unplaced = new Map<string, Unplaced>();
    for (const { id } of topologies) {
      if (!this.#cluster.hasUnassigned(id)) continue;
      const free = this.#cluster.freeSlotCount;
      unplaced.set(id, {
        executors: this.#cluster.unassignedExecutors(id),
        reason: `needs a slot; ${free} ${free === 1 ? 'is' : 'are'} free. ${this.#advice(id)}`,
      });
    }
    const placement = this.#cluster.placement();
    return { placement, unplaced, failures: this.#failures, notes: this.#notes, steps: this.#cluster.steps };
  }
}

interface OpenRunning extends OpenGroup {
  readonly worker: Slot;
}

function byTopology<T extends OpenGroup>(groups: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const parts = new Map<string, T[]>();
  for (const group of groups) {
    const part = parts.get(group.topologyId);
    if (part === undefined) parts.set(group.topologyId, [group]);
    else part.push(group);
  }
  return parts;
}

function figure(load: number): string {
  return Number.isInteger(load) ? String(load) : load.toFixed(2);
}
