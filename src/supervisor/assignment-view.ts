/**
 * What the coordinator wants of this supervisor, as last read. What a watch has named is read again, and everything
 * periodically, so that a missed event delays but never decides. While the coordinator is away the last view stands.
 */
import type { CancelTimer, Clock, Logger } from '../base/index.js';
import {
  type Coordination,
  isTerminal,
  type StopWatching,
  type TopologyRecord,
} from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { Desired } from './slot-plan.js';

const REFRESH_MS = 30_000;
const RETRY_MS = 200;

type DesiredWorker = Extract<Desired, { kind: 'worker' }>;

export interface AssignedTopology {
  readonly record: TopologyRecord;
  readonly assignment: Assignment;
}

export interface AssignmentViewOptions {
  readonly coordination: Coordination;
  readonly supervisorId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  onChange(): void;
}

export class AssignmentView {
  readonly #options: AssignmentViewOptions;
  readonly #stops: (StopWatching | CancelTimer)[] = [];
  #topologies: Map<string, AssignedTopology> | undefined;
  /** By port. */
  #desired: ReadonlyMap<number, DesiredWorker> = new Map();
  #refreshing: Promise<void> | undefined;
  #stale: 'all' | Set<string> = new Set();
  #isClosed = false;
  readonly #known: Promise<void>;
  #tellKnown: () => void = () => undefined;

  constructor(options: AssignmentViewOptions) {
    this.#options = options;
    this.#known = new Promise((resolve) => (this.#tellKnown = resolve));
  }

  start(): void {
    const { coordination, clock } = this.#options;
    const refresh = (ids?: readonly string[]): void => void this.refresh(ids);
    const refreshAll = (): void => void this.refresh();
    this.#stops.push(
      coordination.watchAssignments(refresh),
      coordination.watchTopologies(refresh),
      coordination.onReconnect(refreshAll),
      clock.every(REFRESH_MS, refreshAll),
    );
    refreshAll();
  }

  /** Resolves once the coordinator has been read for the first time. */
  get known(): Promise<void> {
    return this.#known;
  }

  desired(port: number): Desired {
    if (this.#topologies === undefined) return { kind: 'unknown' };
    return this.#desired.get(port) ?? { kind: 'none' };
  }

  /** A topology that has a slot here. */
  topology(topologyId: string): AssignedTopology | undefined {
    return this.#topologies?.get(topologyId);
  }

  /** All topologies with an assignment. */
  topologies(): readonly AssignedTopology[] {
    return [...(this.#topologies?.values() ?? [])];
  }

  /** Slots of this supervisor that should hold a worker. */
  get wantedWorkers(): number {
    return this.#desired.size;
  }

  /** Reads these topologies, or all; a call during a read makes it read once more. Never rejects. */
  refresh(topologyIds?: readonly string[]): Promise<void> {
    if (topologyIds === undefined) this.#stale = 'all';
    else if (this.#stale !== 'all') for (const id of topologyIds) this.#stale.add(id);
    this.#refreshing ??= this.#readUntilFresh();
    return this.#refreshing;
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }

  async #readUntilFresh(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      // Until everything has been read once, a part of it says nothing.
      const stale = this.#topologies === undefined ? 'all' : this.#stale;
      this.#stale = new Set();
      try {
        await this.#read(stale);
      } catch (error) {
        this.#options.logger.debug('assignments.not-read', { message: String(error) });
        void this.refresh(stale === 'all' ? undefined : [...stale]);
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
    }
    // In the same turn as the last look at #stale, or a change in between is lost.
    this.#refreshing = undefined;
  }

  get #isStale(): boolean {
    return this.#stale === 'all' || this.#stale.size > 0;
  }

  async #read(stale: 'all' | ReadonlySet<string>): Promise<void> {
    const topologies = stale === 'all' ? await this.#readAll() : await this.#readSome(stale);
    this.#topologies = topologies;
    this.#desired = this.#desiredOf(topologies);
    this.#tellKnown();
    if (!this.#isClosed) this.#options.onChange();
  }

  async #readAll(): Promise<Map<string, AssignedTopology>> {
    const { coordination } = this.#options;
    // In this order: an assignment that was there belongs to a topology that was there, so an absent one was removed.
    const assignments = await coordination.listAssignments();
    const records = new Map((await coordination.listTopologies()).map(({ value }) => [value.id, value]));
    const topologies = new Map<string, AssignedTopology>();
    for (const assignment of assignments) {
      const record = records.get(assignment.topologyId);
      if (record !== undefined) topologies.set(record.id, { record, assignment });
    }
    return topologies;
  }

  async #readSome(ids: ReadonlySet<string>): Promise<Map<string, AssignedTopology>> {
    const { coordination } = this.#options;
    const topologies = new Map(this.#topologies);
    for (const id of ids) {
      const assignment = await coordination.readAssignment(id);
      const record = (await coordination.readTopology(id))?.value;
      if (assignment === undefined || record === undefined) topologies.delete(id);
      else topologies.set(id, { record, assignment });
    }
    return topologies;
  }

  /** By port of this supervisor. */
  #desiredOf(topologies: ReadonlyMap<string, AssignedTopology>): ReadonlyMap<number, DesiredWorker> {
    const { supervisorId, logger } = this.#options;
    const desired = new Map<number, DesiredWorker>();
    const since = new Map<number, number>();
    for (const { record, assignment } of topologies.values()) {
      if (isTerminal(record.phase)) continue;
      const { slots, target } = assignment;
      for (const { supervisor, port, startedMs, executors } of slots) {
        if (supervisor !== supervisorId) continue;
        const prepared = target?.slots.find((slot) => slot.supervisor === supervisor && slot.port === port);
        const other = desired.get(port);
        if (other !== undefined) {
          logger.error('slot.assigned-twice', { port, topologies: [other.topologyId, record.id] });
          // A slot has one worker whatever is written: that of the later decision.
          if ((since.get(port) ?? 0) >= startedMs) continue;
        }
        const hasTasks = executors.length + (prepared?.executors.length ?? 0) > 0;
        desired.set(port, { kind: 'worker', topologyId: record.id, hasTasks });
        since.set(port, startedMs);
      }
    }
    return desired;
  }
}
