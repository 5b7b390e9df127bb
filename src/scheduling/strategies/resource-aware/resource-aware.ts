/**
 * The strategy `resource-aware`: topologies are placed one after the other, each as a whole or not at all, where processor,
 * memory and other resources last. A topology that does not fit evicts later ones, but only if that helps.
 *
 * R1: nothing is placed beyond what a supervisor has left or a worker's heap. R2: an eviction that does not lead to a
 * placement is undone. R3: one topology's failure changes nothing for the others. R4: work is bounded by the states of each
 * search times the attempts.
 * Source: Storm's `ResourceAwareScheduler`.
 */
import type { ClusterSnapshot, ClusterTopology, PlacedWorker, Placement } from '../../cluster-snapshot.js';
import { settledPlacement } from '../../complete-placement.js';
import { compareText } from '../../order.js';
import type { SchedulingResult, Unplaced } from '../strategy.js';
import { CPU, MEMORY, toAmount, toValue } from './amounts.js';
import { IdleGroups } from './idle-groups.js';
import { Machines, NONE } from './machines.js';
import { type PlaceOutcome, placeTopology } from './place-topology.js';
import { type PlaceOptions, PLACERS, type PlacerName } from './placers.js';
import { Room } from './room.js';
import { type Shortage, shortageText } from './shortage.js';
import { genericNames, toRequest } from './topology-request.js';
import { orderTopologies, type TopologyOrder, type UserGuarantees } from './topology-order.js';
import { type HeldWorker, TakenSlots, TopologyState } from './topology-state.js';
import { SlotBooks } from './trial.js';

export interface ResourceAwareOptions {
  /** true: as Storm decides in every respect. */
  readonly asStorm: boolean;
  readonly topologyOrder: TopologyOrder;
  readonly guarantees: UserGuarantees;
  /** Processor share that every worker takes at least, percent of a core. */
  readonly minimumWorkerCpuPercent: number;
  /** Searches for one topology in a round: one, and one more after each eviction. */
  readonly maxAttempts: number;
  /** Upper limit of what a topology may ask for as its search's states. */
  readonly maxSearchStates: number;
  /** Ways to place that topologies may name; not given: all. */
  readonly allowedPlacers?: ReadonlySet<string>;
}

/** What became of a topology. `refused`: its rules cannot be met or name no way to place it. */
export type PlacementOutcome = 'placed' | 'already-placed' | 'not-enough-resources' | 'invalid' | 'refused';

export interface ResourceAwareResult extends SchedulingResult {
  /** Ids in the order in which topologies were placed. */
  readonly order: readonly string[];
  readonly outcomes: ReadonlyMap<string, PlacementOutcome>;
  /** By topology that was placed: those that lost all their workers for it. Some of them may have a new place. */
  readonly evicted: ReadonlyMap<string, readonly string[]>;
}

const DEFAULT_PRIORITY = 29;

export function resourceAwareStrategy(
  options: ResourceAwareOptions,
): (snapshot: ClusterSnapshot) => ResourceAwareResult {
  return (snapshot) => {
    const placement = settledPlacement(snapshot, false);
    return placement === undefined
      ? new Round(snapshot, options).run()
      : settled(placement, snapshot, options);
  };
}

/** Nothing is to be placed: the order is worked out only if somebody asks. */
function settled(
  placement: Placement,
  snapshot: ClusterSnapshot,
  options: ResourceAwareOptions,
): ResourceAwareResult {
  let round: ResourceAwareResult | undefined;
  const whole = (): ResourceAwareResult => (round ??= new Round(snapshot, options).run());
  return {
    placement,
    unplaced: new Map(),
    failures: new Map(),
    evicted: new Map(),
    keepsCapacity: true,
    steps: 0,
    get order() {
      return whole().order;
    },
    get outcomes() {
      return whole().outcomes;
    },
  };
}

class Round {
  readonly #snapshot: ClusterSnapshot;
  readonly #options: ResourceAwareOptions;
  readonly #placeOptions: PlaceOptions;
  readonly #machines: Machines;
  readonly #states = new Map<string, TopologyState>();
  readonly #failures = new Map<string, unknown>();
  readonly #outcomes = new Map<string, PlacementOutcome>();
  readonly #reasons = new Map<string, Pick<Unplaced, 'reason' | 'shortage'>>();
  readonly #evicted = new Map<string, readonly string[]>();
  #books: SlotBooks | undefined;
  #idle: IdleGroups | undefined;
  #steps = 0;

  constructor(snapshot: ClusterSnapshot, options: ResourceAwareOptions) {
    this.#snapshot = snapshot;
    this.#options = options;
    const names = genericNames(snapshot.supervisors, snapshot.topologies);
    this.#machines = new Machines(snapshot, names);
    const grey = [...(snapshot.greyListedSupervisors ?? [])].map(
      (id) => this.#machines.indexOfId.get(id) ?? NONE,
    );
    this.#placeOptions = {
      minimumWorkerCpu: toAmount(options.minimumWorkerCpuPercent),
      maxSearchStates: options.maxSearchStates,
      greyListed: grey.filter((machine) => this.#machines.usable[machine] === 1).sort((a, b) => a - b),
      asStorm: options.asStorm,
    };
    const taken = new TakenSlots();
    for (const topology of [...snapshot.topologies].sort((a, b) => compareText(a.id, b.id))) {
      try {
        const state = new TopologyState(this.#states.size, toRequest(topology, names));
        this.#states.set(topology.id, state);
        state.load(snapshot.placement.get(topology.id) ?? [], this.#machines, taken);
      } catch (error) {
        this.#failures.set(topology.id, error);
      }
    }
  }

  run(): ResourceAwareResult {
    const order = this.#order();
    const waiting = order.filter((id) => this.#state(id).unassigned > 0 && this.#mayPlace(id));
    for (const id of order) if (this.#state(id).unassigned === 0) this.#outcomes.set(id, 'already-placed');
    if (waiting.length > 0) {
      for (const id of this.#failures.keys()) this.#reserve(this.#snapshot.placement.get(id) ?? []);
      for (const state of this.#states.values()) {
        state.enter(this.#machines, this.#placeOptions.minimumWorkerCpu);
      }
      this.#books = new SlotBooks(this.#machines.slotCount);
      this.#idle = new IdleGroups(this.#machines);
      for (const [place, id] of order.entries()) this.#placeIfNeeded(id, order, place + 1);
    }
    return this.#result(order);
  }

  /** Topologies from place `later` on may be evicted for it. */
  #placeIfNeeded(id: string, order: readonly string[], later: number): void {
    const state = this.#state(id);
    if (state.unassigned === 0 || !this.#mayPlace(id)) return;
    const evicted: Evicted[] = [];
    try {
      this.#place(id, state, () => order.slice(later), evicted);
    } catch (error) {
      this.#restore(evicted);
      this.#failures.set(id, error);
    }
  }

  #mayPlace(id: string): boolean {
    return this.#snapshot.scheduleOnly?.has(id) ?? true;
  }

  /** Searches, and evicts as long as that makes the sums suffice. */
  #place(id: string, state: TopologyState, later: () => readonly string[], evicted: Evicted[]): void {
    const placer = this.#placerOf(state);
    if (placer === undefined) return;
    const room = new Room(this.#machines, state);
    for (let attempt = 0; attempt < this.#options.maxAttempts; attempt++) {
      room.beginAttempt();
      const short = room.shortage();
      if (short === undefined) {
        const outcome = this.#search(state, placer);
        if (outcome.kind === 'placed') {
          state.take(outcome.workers, this.#machines, this.#placeOptions.minimumWorkerCpu);
          this.#settle(state, evicted);
          return;
        }
        if (outcome.kind !== 'not-enough-resources') {
          this.#outcomes.set(id, outcome.kind === 'invalid' ? 'invalid' : 'refused');
          this.#reasons.set(id, { reason: outcome.reason });
          break;
        }
        room.searchFailed(outcome.put, outcome.putMemory);
        this.#explain(state, outcome.shortage);
      } else {
        room.searchFailed(new Float64Array(this.#machines.resourceCount), 0);
        this.#explain(state, clusterShortage(state, short));
      }
      if (!this.#evict(room, later(), evicted)) break;
    }
    this.#restore(evicted);
    if (!this.#outcomes.has(id)) this.#outcomes.set(id, 'not-enough-resources');
  }

  /** Keeps the explanation of the first attempt: later ones speak of a cluster that nobody will see. */
  #explain(state: TopologyState, shortage: Shortage | undefined): void {
    const { id } = state.request;
    if (this.#reasons.has(id)) return;
    const reason =
      shortage === undefined
        ? `has ${state.unassigned} executors without a slot, and there is no supervisor. Start one.`
        : shortageText(state.unassigned, shortage);
    this.#reasons.set(id, { reason, ...(shortage === undefined ? {} : { shortage }) });
  }

  #placerOf({ request }: TopologyState): PlacerName | undefined {
    const { id, rules } = request;
    const name = rules.strategy ?? 'default';
    const known = Object.keys(PLACERS).filter((one) => this.#options.allowedPlacers?.has(one) ?? true);
    if (known.includes(name)) return name as PlacerName;
    this.#outcomes.set(id, 'refused');
    this.#reasons.set(id, {
      reason: `names the strategy "${name}"; this cluster has ${known.join(', ')}. Correct topology.scheduler-strategy.`,
    });
    return undefined;
  }

  #search(state: TopologyState, placer: PlacerName): PlaceOutcome {
    const outcome = placeTopology({
      machines: this.#machines,
      state,
      all: [...this.#states.values()],
      placer,
      // Both are made before the first search.
      books: this.#books!,
      idle: this.#idle!,
      options: this.#placeOptions,
    });
    this.#steps += outcome.steps;
    return outcome;
  }

  /** Evicts from the end of the order until the sums suffice. false: there is nothing to evict. */
  #evict(room: Room, later: readonly string[], evicted: Evicted[]): boolean {
    const before = evicted.length;
    for (const id of later.toReversed()) {
      const state = this.#state(id);
      if (state.workers.length === 0) continue;
      room.evicting(state);
      const workers = state.release(this.#machines, this.#placeOptions.minimumWorkerCpu);
      evicted.push({ state, workers });
      if (room.suffices()) break;
    }
    return evicted.length > before;
  }

  /** Gives back what was evicted in vain. */
  #restore(evicted: Evicted[]): void {
    for (const { state, workers } of evicted.splice(0)) {
      state.take(workers, this.#machines, this.#placeOptions.minimumWorkerCpu);
    }
  }

  /** The topology is placed: who was evicted for it takes part again. */
  #settle(winner: TopologyState, evicted: readonly Evicted[]): void {
    const { id } = winner.request;
    this.#outcomes.set(id, 'placed');
    this.#reasons.delete(id);
    if (evicted.length === 0) return;
    const losers = evicted.map(({ state }) => state.request.id);
    for (const loser of losers) this.#outcomes.delete(loser);
    this.#evicted.set(id, losers.sort(compareText));
  }

  #order(): readonly string[] {
    const topologies: { readonly topology: ClusterTopology; readonly state: TopologyState }[] = [];
    for (const topology of this.#snapshot.topologies) {
      const state = this.#states.get(topology.id);
      // Storm leaves topologies without an owner aside for ever.
      if (state === undefined || this.#failures.has(topology.id)) continue;
      if (this.#options.asStorm && (topology.owner ?? '') === '') continue;
      topologies.push({ topology, state });
    }
    return orderTopologies(
      topologies.map(({ topology: { id, owner, priority, uptimeMs }, state: { totals } }) => ({
        id,
        owner: owner ?? '',
        priority: priority ?? DEFAULT_PRIORITY,
        uptimeMs: uptimeMs ?? 0,
        totals,
      })),
      this.#machines,
      {
        order: this.#options.topologyOrder,
        guarantees: this.#options.guarantees,
        fairWhenExhausted: !this.#options.asStorm,
      },
    );
  }

  /** Slots of a topology that could not be read stay reserved. */
  #reserve(workers: readonly PlacedWorker[]): void {
    const nobody = this.#snapshot.topologies.length;
    for (const { supervisor, port } of workers) {
      const slot = this.#machines.slotIndex(this.#machines.indexOfId.get(supervisor) ?? NONE, port);
      if (slot !== NONE && this.#machines.slotHolder[slot] === NONE) this.#machines.slotHolder[slot] = nobody;
    }
  }

  #state(id: string): TopologyState {
    // Ids come from the order, which has topologies with a state only.
    return this.#states.get(id)!;
  }

  #result(order: readonly string[]): ResourceAwareResult {
    const placement = new Map<string, readonly PlacedWorker[]>();
    const unplaced = new Map<string, Unplaced>();
    for (const [id, state] of this.#states) {
      if (state.workers.length > 0)
        placement.set(id, state.loaded ?? state.workers.map(({ placed }) => placed));
      if (state.unassigned === 0) continue;
      const executors = state.request.executors.filter((_, executor) => state.assigned[executor] === 0);
      unplaced.set(id, {
        executors,
        ...(this.#reasons.get(id) ?? { reason: 'was not to be placed in this round.' }),
      });
    }
    for (const id of this.#failures.keys()) {
      const workers = this.#snapshot.placement.get(id);
      if (workers !== undefined && !this.#states.has(id)) placement.set(id, workers);
    }
    return {
      placement,
      unplaced,
      failures: this.#failures,
      keepsCapacity: true,
      steps: this.#steps,
      order,
      outcomes: this.#outcomes,
      evicted: this.#evicted,
    };
  }
}

function clusterShortage(
  { request }: TopologyState,
  { resource, need, have }: NonNullable<ReturnType<Room['shortage']>>,
): Shortage {
  const list = (amount: number): Shortage['have'] => ({
    cpuPercent: resource === CPU ? toValue(amount) : 0,
    memoryMb: resource === MEMORY ? toValue(amount) : 0,
    generic: {},
  });
  return {
    component: request.components[0] ?? '',
    need: { ...list(need), onHeapMb: 0 },
    have: list(have),
    best: null,
    rule: 'cluster-total',
  };
}

interface Evicted {
  readonly state: TopologyState;
  readonly workers: readonly HeldWorker[];
}
