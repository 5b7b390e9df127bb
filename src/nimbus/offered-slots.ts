/**
 * What supervisors have for the topologies of a round: their slots without those that others hold, and what those weigh and ask
 * for. What is asked for is added up only where somebody looks at resources.
 */
import { type Assignment, type RoundSupervisor, type SlotAssignment } from '../scheduling/index.js';
import type { ClusterView } from './cluster-view.js';
import type { KnownLoads } from './known-loads.js';
import type { KnownTopology, LoadedTopology } from './known-topology.js';
import { machineResources } from './machine-resources.js';
import { isPlaced, placedPart } from './placed-part.js';
import { destinationOf } from './moves/advance-move.js';

export interface OfferRules {
  /** Machines are cleared for one topology: what is about to be given up counts as free. */
  readonly clearsMachines: boolean;
  readonly looksAtLoad: boolean;
  readonly looksAtResources: boolean;
}

interface Request {
  readonly cpuPercent: number;
  readonly memoryMb: number;
}

export class OfferedSlots {
  readonly #view: ClusterView;
  readonly #loads: KnownLoads;
  /** By assignment: its slots by `supervisor:port`. */
  readonly #slots = new WeakMap<Assignment, ReadonlyMap<string, SlotAssignment>>();
  readonly #requests = new WeakMap<
    SlotAssignment,
    { readonly of: LoadedTopology; readonly request: Request }
  >();

  constructor(view: ClusterView, loads: KnownLoads) {
    this.#view = view;
    this.#loads = loads;
  }

  /** Supervisors that are there, with the slots that topologies of this scope may have. Cost: O(slots), once O(executors) of others. */
  of(scope: ReadonlyMap<string, KnownTopology>, rules: OfferRules): readonly RoundSupervisor[] {
    const headedFor = new Map<KnownTopology, ReadonlySet<string>>();
    const isHeadedFor = (holder: KnownTopology, slot: string): boolean => {
      const slots = headedFor.get(holder) ?? slotsHeadedFor(holder);
      headedFor.set(holder, slots);
      return slots.has(slot);
    };
    const isOpen = (slot: string): boolean => {
      const holder = this.#view.holderOf(slot);
      if (holder === undefined) return true;
      if (!scope.has(holder.id) || holder.loaded === undefined) return false;
      // What a topology is about to give up is still its own. A machine that is being cleared looks as it soon will, or the
      // next round would clear another one instead.
      return scope.size === 1 || rules.clearsMachines || isHeadedFor(holder, slot);
    };
    const isLeaving = (slot: string): boolean => {
      const holder = this.#view.holderOf(slot);
      return holder !== undefined && (!isPlaced(holder) || !isHeadedFor(holder, slot));
    };
    /** What topologies of this round weigh is counted where they are headed for. */
    const isCounted = (slot: string): boolean => {
      const holder = this.#view.holderOf(slot);
      return holder?.loaded !== undefined && scope.has(holder.id);
    };
    return this.#view.supervisors.map((machine) => {
      const { id, host, rack, ports } = machine;
      const [open, held] = [[] as number[], [] as string[]];
      for (const port of ports) {
        const slot = `${id}:${port}`;
        if (isOpen(slot)) open.push(port);
        else held.push(slot);
      }
      let [otherLoad, soonFree] = [0, 0];
      let { cpuPercent, memoryMb } = machineResources(machine);
      for (const slot of held) {
        if (isLeaving(slot)) soonFree++;
        if (rules.looksAtLoad && !isCounted(slot)) otherLoad += this.#loadOf(slot);
        if (!rules.looksAtResources) continue;
        const request = this.#requestOf(slot);
        cpuPercent -= request.cpuPercent;
        memoryMb -= request.memoryMb;
      }
      const resources = { cpuPercent: Math.max(0, cpuPercent), memoryMb: Math.max(0, memoryMb) };
      const more = soonFree > 0 ? { soonFree } : {};
      return { id, host, rack, ports: open, otherLoad, resources, ...more };
    });
  }

  /** What the holder of a slot that is not part of this round weighs there. */
  #loadOf(slot: string): number {
    const [known, held] = this.#heldAt(slot);
    if (known === undefined || held === undefined) return 0;
    const loadOf = this.#loads.of(known);
    return held.executors.reduce((sum, [first]) => sum + loadOf(first), 0);
  }

  /** What the holder of a slot that is not part of this round asks for there. */
  #requestOf(slot: string): Request {
    const [known, held] = this.#heldAt(slot);
    const loaded = known?.loaded;
    if (loaded === undefined || held === undefined) return NOTHING;
    const before = this.#requests.get(held);
    if (before?.of === loaded) return before.request;
    const { tasks, components } = loaded.plan;
    const byId = new Map(components.map((component) => [component.id, component]));
    let [cpuPercent, memoryMb] = [0, 0];
    for (const [first] of held.executors) {
      const task = tasks.find(({ last }) => first <= last);
      const resources = byId.get(task?.component ?? '')?.resources;
      cpuPercent += resources?.cpuPercent ?? 0;
      memoryMb += (resources?.onHeapMb ?? 0) + (resources?.offHeapMb ?? 0);
    }
    const request = { cpuPercent, memoryMb };
    this.#requests.set(held, { of: loaded, request });
    return request;
  }

  #heldAt(slot: string): readonly [KnownTopology | undefined, SlotAssignment | undefined] {
    const known = this.#view.holderOf(slot);
    const assignment = known?.assignment;
    if (assignment === undefined) return [known, undefined];
    let slots = this.#slots.get(assignment);
    if (slots === undefined) {
      slots = new Map(assignment.slots.map((one) => [`${one.supervisor}:${one.port}`, one]));
      this.#slots.set(assignment, slots);
    }
    return [known, slots.get(slot)];
  }
}

const NOTHING: Request = { cpuPercent: 0, memoryMb: 0 };

function slotsHeadedFor({ assignment }: KnownTopology): ReadonlySet<string> {
  const slots = assignment === undefined ? [] : placedPart(destinationOf(assignment)).slots;
  return new Set(slots.map(({ supervisor, port }) => `${supervisor}:${port}`));
}
