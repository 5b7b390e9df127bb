/**
 * Carries out what `advanceMove` decides: gathers what it looks at, writes what it says, tells about it, and clears away the
 * record and the states of moves that are over.
 */
import type { Logger } from '../../base/index.js';
import {
  type Coordination,
  type Handover,
  type HandoverNode,
  isTerminal,
  type SlotReport,
  type TaskReport,
} from '../../coordination/index.js';
import type { Assignment, TopologyOutcome } from '../../scheduling/index.js';
import type { ComponentDescription } from '../../topology/index.js';
import type { BlobStore } from '../blob-store.js';
import type { ClusterView } from '../cluster-view.js';
import type { KnownTopology } from '../known-topology.js';
import { advanceMove, isSettled, type MoveEvent, type MoveStep, type SlotFacts } from './advance-move.js';
import { canTaskMove, isStateless } from './movable.js';
import { componentOf, keyOf, tasksLeftBehind, tasksOf, type SlotKey } from './pieces.js';

/** Who writes handovers for machines that are gone. */
const NIMBUS = '';
/** A decision leads to the next one a few times at most. */
const MAX_STEPS = 8;

export interface TopologyMovesOptions {
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  readonly view: ClusterView;
  readonly logger: Logger;
  /** Nimbus's own time, ms; never jumps. */
  nowMs(): number;
  /** ms since the epoch. */
  wallMs(): number;
  wakeIn(delayMs: number): void;
  /** Resolves to false if somebody else has decided meanwhile. */
  write(known: KnownTopology, assignment: Assignment): Promise<boolean>;
  /** Machines that are gone. */
  gone(): ReadonlySet<string>;
  /** A move is over: what was wanted meanwhile can be decided. */
  askForRound(topologyId: string): void;
  /** Its totals have to be stored. */
  onStateLost(known: KnownTopology): void;
  /** Something of a move is worth telling. */
  onMove(known: KnownTopology, event: MoveEvent): void;
  /** Called before each step that is carried out; for tests of crashes in between. */
  onStep?(name: string): void;
}

export class TopologyMoves {
  readonly #options: TopologyMovesOptions;
  readonly #nodes = new Map<string, readonly HandoverNode[]>();
  #stale: 'all' | Set<string> = 'all';

  constructor(options: TopologyMovesOptions) {
    this.#options = options;
  }

  /** @param ids not given: any */
  markStale(ids?: readonly string[]): void {
    if (ids === undefined) this.#stale = 'all';
    else if (this.#stale !== 'all') for (const id of ids) this.#stale.add(id);
  }

  /** Another Nimbus has led meanwhile. */
  reset(): void {
    this.#nodes.clear();
    this.#stale = 'all';
  }

  /** Reads what may have changed. Returns the topologies concerned. @throws what `Coordination` throws */
  async read(): Promise<ReadonlySet<string>> {
    const stale = this.#stale;
    if (stale !== 'all' && stale.size === 0) return new Set();
    this.#stale = new Set();
    try {
      const { coordination } = this.#options;
      const nodes = stale === 'all' ? await coordination.listHandovers() : [];
      const ids =
        stale === 'all' ? [...this.#nodes.keys(), ...nodes.map(({ topologyId }) => topologyId)] : [...stale];
      for (const id of new Set(ids)) {
        this.#set(
          id,
          stale === 'all'
            ? nodes.filter((node) => node.topologyId === id)
            : await coordination.listHandovers(id),
        );
      }
      return new Set(ids);
    } catch (error) {
      this.#stale = stale;
      throw error;
    }
  }

  /** Goes as far as it can now. `outcome`: what a round has just decided about the topology. */
  async advance(known: KnownTopology, outcome?: TopologyOutcome): Promise<void> {
    // What is dead is so in the assignment that the round has seen: a task that is placed elsewhere since is not.
    const seen = known.assignment;
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      if (known.assignment === undefined) return this.#first(known, outcome);
      if (isTerminal(known.record.phase)) break;
      const isSeen = known.assignment.version === seen?.version;
      const step = this.#decide(known, known.assignment, outcome, isSeen);
      if (step.kind === 'none') {
        if (step.wakeInMs !== null) this.#options.wakeIn(Math.max(1, step.wakeInMs));
        break;
      }
      if (step.kind === 'release') await this.#release(known.id, step.handovers);
      else if (!(await this.#write(known, step))) return;
    }
    await this.#clear(known);
  }

  /** The first assignment: nothing runs yet, so nothing moves. */
  async #first(known: KnownTopology, outcome: TopologyOutcome | undefined): Promise<void> {
    if (outcome?.kind === 'changed') await this.#options.write(known, outcome.assignment);
  }

  #decide(
    known: KnownTopology,
    stored: Assignment,
    outcome: TopologyOutcome | undefined,
    isSeen: boolean,
  ): MoveStep {
    const { record, loaded } = known;
    const { kind } = record.phase;
    let reports: ReadonlyMap<number, TaskReport> | undefined;
    const componentAt = (task: number): ComponentDescription | undefined => {
      const component = componentOf(stored.tasks, task);
      return loaded?.description.components.find(({ id }) => id === component);
    };
    return advanceMove({
      stored,
      desired: outcome?.kind === 'changed' ? outcome.assignment : undefined,
      dead: new Set((isSeen ? (outcome?.dead ?? []) : []).flatMap(({ range }) => tasksOf(range))),
      gone: this.#options.gone(),
      slots: this.#slotFacts(known.id, stored),
      handovers: (this.#nodes.get(known.id) ?? []).flatMap(({ handovers }) => handovers),
      mayMove: kind === 'active' || kind === 'inactive',
      losesState: known.rebalance?.placement === 'from-scratch',
      isMovable: (task) => {
        reports ??= this.#taskReports(known.id);
        return canTaskMove(componentAt(task), reports.get(task));
      },
      isStateless: (task) => {
        const described = componentAt(task);
        return described !== undefined && isStateless(described);
      },
      nowMs: this.#options.nowMs(),
      prepareTimeoutMs: loaded?.settings['rebalance.prepare-timeout'] ?? 0,
    });
  }

  async #write(known: KnownTopology, { assignment, events }: MoveStep & { kind: 'write' }): Promise<boolean> {
    const { logger } = this.#options;
    const before = known.assignment;
    const wasSettled = before === undefined || isSettled(before);
    this.#options.onStep?.(stepName(assignment, wasSettled));
    if (!(await this.#options.write(known, assignment))) return false;
    if (before !== undefined) {
      const left = tasksLeftBehind(before, assignment);
      if (known.noteLeftBehind(left, this.#options.wallMs())) this.#options.onStateLost(known);
    }
    for (const event of events) {
      logger[isBad(event) ? 'warn' : 'info'](`move.${event.kind}`, { topology: known.id, ...event });
      known.noteMove(event);
      this.#options.onMove(known, event);
    }
    if (!wasSettled && isSettled(assignment)) this.#options.askForRound(known.id);
    return true;
  }

  async #release(topologyId: string, news: readonly Handover[]): Promise<void> {
    const nodes = this.#nodes.get(topologyId) ?? [];
    const own = nodes.find(({ writer }) => writer === NIMBUS)?.handovers ?? [];
    const handovers = [...own, ...news];
    await this.#options.coordination.storeHandovers(topologyId, NIMBUS, handovers);
    this.#set(topologyId, [
      ...nodes.filter(({ writer }) => writer !== NIMBUS),
      { topologyId, writer: NIMBUS, handovers },
    ]);
  }

  /** Of moves that are over nothing is kept. */
  async #clear({ id, assignment }: KnownTopology): Promise<void> {
    const nodes = this.#nodes.get(id) ?? [];
    if (nodes.length === 0 || assignment?.moves !== undefined) return;
    const { coordination, blobStore } = this.#options;
    await blobStore.removeStates(id);
    for (const { writer } of nodes) await coordination.storeHandovers(id, writer, []);
    this.#set(id, []);
  }

  #set(topologyId: string, nodes: readonly HandoverNode[]): void {
    if (nodes.length === 0) this.#nodes.delete(topologyId);
    else this.#nodes.set(topologyId, nodes);
  }

  #slotFacts(topologyId: string, { slots, version }: Assignment): ReadonlyMap<SlotKey, SlotFacts> {
    const { view } = this.#options;
    const facts = new Map<SlotKey, SlotFacts>();
    for (const slot of slots) {
      const report = view.heartbeatOf(slot.supervisor)?.slots.find(({ port }) => port === slot.port);
      if (report !== undefined) facts.set(keyOf(slot), factsOf(report, topologyId, version));
    }
    return facts;
  }

  /** Of two reports of a task that of the higher generation. */
  #taskReports(topologyId: string): ReadonlyMap<number, TaskReport> {
    const tasks = new Map<number, TaskReport>();
    for (const { slot } of this.#options.view.reportsOf(topologyId)) {
      if (slot.heartbeat?.topologyId !== topologyId || slot.heartbeat.workerId !== slot.workerId) continue;
      for (const report of slot.heartbeat.tasks) {
        if ((tasks.get(report.task)?.generation ?? -1) < report.generation) tasks.set(report.task, report);
      }
    }
    return tasks;
  }
}

function factsOf(report: SlotReport, topologyId: string, version: number): SlotFacts {
  const isOurs = report.topologyId === topologyId && report.workerId !== null;
  // The last words of a worker that is gone stay in a slot's report, which then names another one, or none.
  const heartbeat = isOurs && report.heartbeat?.workerId === report.workerId ? report.heartbeat : null;
  const isCurrent = report.state === 'running' && heartbeat?.assignmentVersion === version;
  return {
    isCurrent,
    isReady: isCurrent && heartbeat.ready,
    isIdle: heartbeat?.isIdle === true,
    hasWorker: isOurs || (report.topologyId === topologyId && report.state !== 'empty'),
    running: new Set(
      (heartbeat?.tasks ?? []).filter(({ isRunning }) => isRunning !== false).map(({ task }) => task),
    ),
  };
}

function stepName({ target, moves }: Assignment, wasSettled: boolean): string {
  if (target !== undefined) return 'nimbus-prepare';
  if (moves !== undefined) return 'nimbus-cut';
  return wasSettled ? 'nimbus-place' : 'nimbus-settle';
}

function isBad({ kind }: MoveEvent): boolean {
  return kind === 'returned' || kind === 'cancelled' || kind === 'stayed';
}
