/**
 * This machine's part of the record of planned moves: what its workers say of tasks that leave and arrive, folded to one
 * node per topology, and what everybody has said, for its workers to read.
 *
 * Invariants
 * H1  A step is answered only when it is stored. Steps are stored in the order in which they are said, and none twice.
 * H2  A task that is to leave a slot here without a worker went with that worker, whose end has been verified: it is
 *     released as lost, or with the state that the worker had stored before.
 * H3  Nothing is written before what an earlier supervisor of this machine had written has been read.
 */
import {
  type CancelTimer,
  type Clock,
  hasCode,
  IsobarError,
  isSystemComponent,
  type Logger,
} from '../base/index.js';
import type { Coordination, Handover, ReleasedState, StopWatching } from '../coordination/index.js';
import type { Assignment, TaskMove } from '../scheduling/index.js';
import type { AssignmentView } from './assignment-view.js';

const REFRESH_MS = 5000;
const RETRY_MS = 200;

export interface HandoverKeeperOptions {
  readonly coordination: Coordination;
  readonly supervisorId: string;
  readonly view: AssignmentView;
  /** Does a worker of that topology hold the slot, or may one still? */
  isHeld(port: number, topologyId: string): boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Something has been said about this topology. */
  onChange(topologyId: string): void;
}

interface Own {
  /** As it is to be stored. */
  handovers: readonly Handover[];
  isWritten: boolean;
  writing: Promise<void> | undefined;
}

export class HandoverKeeper {
  readonly #options: HandoverKeeperOptions;
  readonly #stops: (StopWatching | CancelTimer)[] = [];
  readonly #own = new Map<string, Own>();
  #all: ReadonlyMap<string, readonly Handover[]> = new Map();
  /** States that were stored for tasks whose release has not been said yet. */
  readonly #stored = new Map<string, ReleasedState>();
  #isStale = false;
  #refreshing: Promise<void> | undefined;
  #isClosed = false;
  readonly #known: Promise<void>;
  #tellKnown: () => void = () => undefined;
  #isKnown = false;

  constructor(options: HandoverKeeperOptions) {
    this.#options = options;
    this.#known = new Promise((resolve) => (this.#tellKnown = resolve));
  }

  start(): void {
    const { coordination, clock } = this.#options;
    const refresh = (): void => void this.#refresh();
    this.#stops.push(
      coordination.watchHandovers(refresh),
      coordination.onReconnect(refresh),
      clock.every(REFRESH_MS, refresh),
    );
    refresh();
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }

  /** Resolves once the record has been read for the first time. */
  get known(): Promise<void> {
    return this.#known;
  }

  /** All steps of the moves of a topology that are known here. */
  of(topologyId: string): readonly Handover[] {
    return this.#all.get(topologyId) ?? [];
  }

  /** A state has been stored; the release that names it is about to come. */
  noteStored(topologyId: string, task: number, move: number, state: ReleasedState): void {
    this.#stored.set(stateKey(topologyId, task, move), state);
  }

  /** Resolves when these steps are stored (H1). @throws COORDINATOR_UNAVAILABLE when this is closed before */
  async record(topologyId: string, handovers: readonly Handover[]): Promise<void> {
    await this.#known;
    const own = this.#ownOf(topologyId);
    const isNew = ({ task, move, step }: Handover): boolean =>
      !own.handovers.some(
        (other) => other.task === task && other.move === move && other.step.kind === step.kind,
      );
    const news = handovers.filter((handover) => handover.step.kind === 'failed' || isNew(handover));
    if (news.length > 0) {
      own.handovers = [...own.handovers, ...news];
      own.isWritten = false;
    }
    if (this.#isClosed) throw notStored();
    // Not for what is stored already: a write that ends at once would be taken for one that is under way for ever.
    if (!own.isWritten) own.writing ??= this.#write(topologyId, own);
    await own.writing;
  }

  /** Releases what went with workers that are gone (H2). */
  releaseLost(): void {
    // What is on record already shows with the first reading (H3), which comes back to this.
    if (!this.#isKnown) return;
    const { view } = this.#options;
    for (const { assignment } of view.topologies()) {
      const lost: Handover[] = [];
      for (const move of assignment.moves ?? []) lost.push(...this.#lostOf(assignment, move));
      if (lost.length === 0) continue;
      // Its successor decides it again.
      this.record(assignment.topologyId, lost).catch((error: unknown) => {
        this.#options.logger.warn('handovers.not-stored', { message: String(error) });
      });
    }
  }

  #lostOf({ topologyId, tasks }: Assignment, { tasks: [first, last], from, move }: TaskMove): Handover[] {
    const { supervisorId } = this.#options;
    if (from.supervisor !== supervisorId || this.#options.isHeld(from.port, topologyId)) return [];
    const isSystem = tasks.some(
      ({ component, first: low, last: high }) =>
        isSystemComponent(component) && low <= first && first <= high,
    );
    if (isSystem) return [];
    const lost: Handover[] = [];
    for (let task = first; task <= last; task++) {
      const isSettled = this.#ownOf(topologyId).handovers.some(
        (one) =>
          one.task === task &&
          one.move === move &&
          (one.step.kind === 'released' || one.step.kind === 'kept'),
      );
      if (isSettled) continue;
      const state = this.#stored.get(stateKey(topologyId, task, move)) ?? { kind: 'lost' };
      lost.push({ task, move, step: { kind: 'released', state } });
    }
    return lost;
  }

  #ownOf(topologyId: string): Own {
    let own = this.#own.get(topologyId);
    if (own === undefined) {
      own = { handovers: [], isWritten: true, writing: undefined };
      this.#own.set(topologyId, own);
    }
    return own;
  }

  async #write(topologyId: string, own: Own): Promise<void> {
    const { coordination, supervisorId, clock, logger } = this.#options;
    while (!own.isWritten && !this.#isClosed) {
      own.isWritten = true;
      own.handovers = this.#current(topologyId, own.handovers);
      try {
        await coordination.storeHandovers(topologyId, supervisorId, own.handovers);
      } catch (error) {
        own.isWritten = false;
        if (!hasCode(error, 'COORDINATOR_UNAVAILABLE') && !hasCode(error, 'SESSION_EXPIRED'))
          logger.warn('handovers.not-stored', { topology: topologyId, message: String(error) });
        await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
      }
    }
    // In the same turn as the last look at isWritten, or a step in between is lost.
    own.writing = undefined;
    if (!own.isWritten) throw notStored();
  }

  /** Without the steps of moves that are over. */
  #current(topologyId: string, handovers: readonly Handover[]): readonly Handover[] {
    const assignment = this.#options.view.topology(topologyId)?.assignment;
    if (assignment === undefined) return [];
    const current = new Set((assignment.moves ?? []).map(({ move }) => move));
    return handovers.filter(({ move }) => current.has(move) || move > assignment.version);
  }

  /** Reads the record; a call during a read makes it read once more. Never rejects. */
  #refresh(): Promise<void> {
    this.#isStale = true;
    this.#refreshing ??= this.#readUntilFresh();
    return this.#refreshing;
  }

  async #readUntilFresh(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      try {
        await this.#read();
      } catch (error) {
        this.#options.logger.debug('handovers.not-read', { message: String(error) });
        this.#isStale = true;
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
    }
    // In the same turn as the last look at #isStale, or a change in between is lost.
    this.#refreshing = undefined;
  }

  async #read(): Promise<void> {
    const { coordination, supervisorId } = this.#options;
    const before = this.#all;
    const all = new Map<string, Handover[]>();
    const nodes = await coordination.listHandovers();
    for (const { topologyId, writer, handovers } of nodes) {
      all.set(topologyId, [...(all.get(topologyId) ?? []), ...handovers]);
      // What an earlier supervisor of this machine had said (H3); later this one knows best.
      if (writer === supervisorId && !this.#own.has(topologyId))
        this.#ownOf(topologyId).handovers = handovers;
    }
    this.#all = all;
    const isFirst = !this.#isKnown;
    this.#isKnown = true;
    this.#tellKnown();
    if (isFirst) this.releaseLost();
    for (const topologyId of new Set([...before.keys(), ...all.keys()])) {
      if (JSON.stringify(before.get(topologyId)) !== JSON.stringify(all.get(topologyId)))
        this.#options.onChange(topologyId);
    }
  }
}

function notStored(): IsobarError {
  return new IsobarError('COORDINATOR_UNAVAILABLE', 'the supervisor ends before a step of a move is stored');
}

function stateKey(topologyId: string, task: number, move: number): string {
  return JSON.stringify([topologyId, task, move]);
}
