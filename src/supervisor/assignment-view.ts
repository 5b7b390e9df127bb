/**
 * What the coordinator wants of this supervisor, as last read. Read again whenever a watch says that something may have
 * changed, and periodically, so that a missed event delays but never decides. While the coordinator is away the last
 * view stands.
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
  #topologies: ReadonlyMap<string, AssignedTopology> | undefined;
  #desired: ReadonlyMap<number, string> = new Map();
  #refreshing: Promise<void> | undefined;
  #isStale = false;
  #isClosed = false;
  readonly #known: Promise<void>;
  #tellKnown: () => void = () => undefined;

  constructor(options: AssignmentViewOptions) {
    this.#options = options;
    this.#known = new Promise((resolve) => (this.#tellKnown = resolve));
  }

  start(): void {
    const { coordination, clock } = this.#options;
    const refresh = (): void => void this.refresh();
    this.#stops.push(
      coordination.watchAssignments(refresh),
      coordination.watchTopologies(refresh),
      coordination.onReconnect(refresh),
      clock.every(REFRESH_MS, refresh),
    );
    refresh();
  }

  /** Resolves once the coordinator has been read for the first time. */
  get known(): Promise<void> {
    return this.#known;
  }

  desired(port: number): Desired {
    if (this.#topologies === undefined) return { kind: 'unknown' };
    const topologyId = this.#desired.get(port);
    return topologyId === undefined ? { kind: 'none' } : { kind: 'worker', topologyId };
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

  /** Reads the coordinator; a call during a read makes it read once more. Never rejects. */
  refresh(): Promise<void> {
    this.#isStale = true;
    this.#refreshing ??= this.#readUntilFresh();
    return this.#refreshing;
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }

  async #readUntilFresh(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      try {
        await this.#read();
      } catch (error) {
        this.#options.logger.debug('assignments.not-read', { message: String(error) });
        this.#isStale = true;
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
    }
    // In the same turn as the last look at #isStale, or a change in between is lost.
    this.#refreshing = undefined;
  }

  async #read(): Promise<void> {
    const { coordination, supervisorId, logger } = this.#options;
    // In this order: an assignment that was there belongs to a topology that was there, so an absent one was removed.
    const assignments = await coordination.listAssignments();
    const records = new Map((await coordination.listTopologies()).map(({ value }) => [value.id, value]));
    const topologies = new Map<string, AssignedTopology>();
    const desired = new Map<number, string>();
    const since = new Map<number, number>();
    for (const assignment of assignments) {
      const record = records.get(assignment.topologyId);
      if (record === undefined) continue;
      topologies.set(record.id, { record, assignment });
      if (isTerminal(record.phase)) continue;
      for (const { supervisor, port, startedMs } of assignment.slots) {
        if (supervisor !== supervisorId) continue;
        const other = desired.get(port);
        if (other !== undefined) {
          logger.error('slot.assigned-twice', { port, topologies: [other, record.id] });
          // A slot has one worker whatever is written: that of the later decision.
          if ((since.get(port) ?? 0) >= startedMs) continue;
        }
        desired.set(port, record.id);
        since.set(port, startedMs);
      }
    }
    this.#topologies = topologies;
    this.#desired = desired;
    this.#tellKnown();
    if (!this.#isClosed) this.#options.onChange();
  }
}
