/** One topology as the leading Nimbus knows it: its record, what was loaded for it, and what has been seen of it. */
import {
  compileSettings,
  type ErrorRecord,
  IsobarError,
  type Settings,
  toErrorRecord,
} from '../base/index.js';
import {
  isTerminal,
  type TopologyRecord,
  type Versioned,
  type WorkerHeartbeat,
} from '../coordination/index.js';
import {
  type Assignment,
  type PendingRebalance,
  planTopology,
  type TopologyOutcome,
  type TopologyPlan,
} from '../scheduling/index.js';
import { type TopologyDescription, validateDescription } from '../topology/index.js';
import type { BlobStore } from './blob-store.js';
import type { TopologyReports } from './heartbeat-view.js';
import type { MoveEvent } from './moves/advance-move.js';
import type { MoveStatus, TopologyFacts } from './status.js';
import { TotalsBook } from './totals.js';

/** What is derived from the stored description and the settings. */
export interface LoadedTopology {
  readonly description: TopologyDescription;
  readonly settings: Settings;
  readonly plan: TopologyPlan;
}

/** Problems of a move that are told. */
const MAX_PROBLEMS = 32;

export class KnownTopology {
  assignment: Assignment | undefined;
  loaded: LoadedTopology | undefined;
  /** Why it, or the code that its workers need, could not be loaded; tried again in every periodic round. */
  loadProblem: ErrorRecord | undefined;
  /** Why the last round could not place it. */
  roundProblem: ErrorRecord | undefined;
  /** Since when it is so, ms since the epoch; null: it is not. */
  roundProblemMs: number | null = null;
  loadProblemMs: number | null = null;
  unplacedMs: number | null = null;
  unplacedExecutors = 0;
  unplacedReason: string | null = null;
  readonly notes: string[] = [];
  #record: TopologyRecord;
  #version: number;
  #totals = new TotalsBook();
  #areTotalsLoaded = false;
  /** Somebody could not use its code: that it is there says nothing. */
  #isCodeDoubted = false;
  #isUnsaved = false;
  #hasCounted = false;
  /** Workers whose last report is in the totals but not in the stored ones, and those of whom those have it. */
  readonly #ended = new Set<string>();
  readonly #kept = new Set<string>();
  #rest: { readonly sums: string; readonly marks: ReadonlyMap<string, number> } | undefined;
  #isAtRest = false;
  #lastMove: MoveStatus | null = null;

  constructor({ value, version }: Versioned<TopologyRecord>) {
    this.#record = value;
    this.#version = version;
  }

  get record(): TopologyRecord {
    return this.#record;
  }

  get version(): number {
    return this.#version;
  }

  /** Totals have been counted that would be lost with this process. */
  get isUnsaved(): boolean {
    return this.#isUnsaved;
  }

  /** Workers have counted more than is stored; they say it again, unless they end together with this process. */
  get hasCounted(): boolean {
    return this.#hasCounted;
  }

  /** Takes another version of the record; new counts make a new plan. */
  setRecord(record: TopologyRecord, version: number): void {
    const before = this.#record.desired?.revision;
    this.#record = record;
    this.#version = version;
    if (record.desired?.revision === before || this.loaded === undefined) return;
    const { description, settings } = this.loaded;
    try {
      this.loaded = { description, settings, plan: planTopology(description, settings, record.desired) };
    } catch (error) {
      this.loaded = undefined;
      this.loadProblem = toErrorRecord(error);
    }
  }

  get id(): string {
    return this.record.id;
  }

  /** The rebalance that its assignment does not fulfil yet. */
  get rebalance(): PendingRebalance | undefined {
    const { desired } = this.record;
    const headedFor = this.assignment?.target?.revision ?? this.assignment?.revision ?? 0;
    if (desired === undefined || desired.revision <= headedFor) return undefined;
    return { revision: desired.revision, placement: desired.placement };
  }

  /** The last planned move, or what is under way. */
  get lastMove(): MoveStatus | null {
    return this.#lastMove;
  }

  noteMove(event: MoveEvent): void {
    const before = this.#lastMove;
    switch (event.kind) {
      case 'prepared':
      case 'begun': {
        const goesOn = before?.step === 'preparing' && event.kind === 'begun';
        const problems = goesOn ? before.problems : [];
        const step = event.kind === 'prepared' ? 'preparing' : 'moving';
        this.#lastMove = { step, tasks: event.tasks, problems };
        break;
      }
      case 'done':
        this.#lastMove = { step: 'done', tasks: event.tasks, problems: before?.problems ?? [] };
        break;
      default:
        this.#lastMove = {
          step: event.kind === 'cancelled' ? 'cancelled' : (before?.step ?? 'done'),
          tasks: before?.tasks ?? 0,
          problems: [...(before?.problems ?? []), problemOf(event)].slice(-MAX_PROBLEMS),
        };
    }
  }

  /** What a round has come to. */
  noteOutcome(
    problem: ErrorRecord | undefined,
    { unplaced, unplacedReason }: Pick<TopologyOutcome, 'unplaced' | 'unplacedReason'>,
    wallMs: number,
  ): void {
    this.roundProblem = problem;
    this.roundProblemMs = problem === undefined ? null : (this.roundProblemMs ?? wallMs);
    this.unplacedExecutors = unplaced.length;
    this.unplacedReason = unplacedReason;
    this.unplacedMs = unplacedReason === null ? null : (this.unplacedMs ?? wallMs);
  }

  /** What its workers are started from is missing or damaged. */
  get isCodeLost(): boolean {
    return this.loadProblem?.code === 'TOPOLOGY_CODE_LOST';
  }

  /** A supervisor has found its code missing or damaged. Returns whether it is to be looked at again. */
  doubtCode(): boolean {
    if (this.loadProblem !== undefined || isTerminal(this.record.phase)) return false;
    this.#isCodeDoubted = true;
    return true;
  }

  get isAtRest(): boolean {
    return this.#isAtRest;
  }

  async load(blobs: BlobStore, cluster: Settings): Promise<void> {
    if (!this.#areTotalsLoaded) {
      this.#totals = new TotalsBook(await blobs.readDocument(totalsName(this.id)));
      this.#areTotalsLoaded = true;
    }
    if (this.loaded !== undefined && this.loadProblem === undefined && !this.#isCodeDoubted) return;
    // Whatever it needed may be gone with it.
    if (this.record.phase.kind === 'removed') return;
    try {
      this.loaded ??= await this.#loadDescription(blobs, cluster);
      if (this.#isCodeDoubted) await blobs.read(this.record.codeHash);
      else if (!isTerminal(this.record.phase)) await requireCode(blobs, this.record.codeHash);
      this.#isCodeDoubted = false;
      this.loadProblem = undefined;
    } catch (error) {
      this.loadProblem = toErrorRecord(error);
    }
  }

  async #loadDescription(blobs: BlobStore, cluster: Settings): Promise<LoadedTopology> {
    const text = Buffer.from(await blobs.read(this.record.descriptionHash)).toString('utf8');
    const description = validateDescription(JSON.parse(text));
    const settings = compileSettings(cluster, this.record.settings);
    return { description, settings, plan: planTopology(description, settings, this.record.desired) };
  }

  /**
   * Takes in what supervisors say of this topology's workers: all of them, again or for the first time. Last reports come
   * first: what a successor says must not come before what it succeeds.
   */
  noteReports(reports: readonly TopologyReports[]): void {
    for (const { lastReports } of reports) for (const report of lastReports) this.#noteLastReport(report);
    const marks = new Map<string, number>();
    for (const { slots } of reports) {
      for (const { heartbeat } of slots) {
        if (heartbeat?.topologyId !== this.id) continue;
        marks.set(heartbeat.workerId, heartbeat.sequence);
        const news = this.#totals.note(heartbeat);
        if (news === 'new-worker') this.#isUnsaved = true;
        if (news === 'updated') this.#hasCounted = true;
      }
    }
    const isAsked = this.record.phase.kind === 'draining' && this.loaded?.plan.ackers === 0;
    if (isAsked) this.#noteRest(marks);
  }

  /** What a worker that has ended had counted: once it is acknowledged, nobody says it again. */
  #noteLastReport(report: WorkerHeartbeat): void {
    this.#totals.note(report);
    if (this.#kept.has(report.workerId)) return;
    this.#ended.add(report.workerId);
    this.#isUnsaved = true;
  }

  /**
   * Tasks have been taken out of a place that is dead: those with state that had processed rows have lost it. Returns whether
   * there are any.
   */
  noteLeftBehind(
    tasks: readonly { readonly component: string; readonly task: number }[],
    atMs: number,
  ): boolean {
    const stateful = new Set(
      this.loaded?.description.components.flatMap(({ id, stateful: hasState }) => (hasState ? [id] : [])),
    );
    const busy = new Set(
      this.#totals.components().flatMap(({ component, executed }) => (executed > 0 ? [component] : [])),
    );
    const lost = tasks.filter(({ component }) => stateful.has(component) && busy.has(component));
    if (lost.length === 0) return false;
    this.#totals.noteLost(lost.map((one) => ({ ...one, atMs })));
    this.#isUnsaved = true;
    return true;
  }

  /** The stored totals have what that worker counted. */
  keeps(workerId: string): boolean {
    return this.#kept.has(workerId);
  }

  /** Writes what has been counted, if anything is not stored yet. */
  async saveTotals(blobs: BlobStore): Promise<void> {
    if (!this.#isUnsaved && !this.#hasCounted) return;
    const ended = [...this.#ended];
    this.#isUnsaved = false;
    this.#hasCounted = false;
    try {
      await blobs.writeDocument(totalsName(this.id), this.#totals.stored());
    } catch (error) {
      this.#isUnsaved = true;
      throw error;
    }
    for (const workerId of ended) {
      this.#ended.delete(workerId);
      this.#kept.add(workerId);
    }
  }

  /** The phase has become final: what has been counted until now is kept. */
  keepTotals(): void {
    this.#isUnsaved = true;
  }

  facts(): TopologyFacts {
    return {
      record: this.record,
      description: this.loaded?.description,
      plan: this.loaded?.plan,
      assignment: this.assignment,
      totals: this.#totals,
      notes: this.notes,
      problems: [this.loadProblem, this.roundProblem].filter((problem) => problem !== undefined),
      unplacedExecutors: this.unplacedExecutors,
      unplacedReason: this.unplacedReason,
      lastMove: this.#lastMove,
    };
  }

  /** At rest: since some moment every worker has reported again, and nothing was counted. */
  #noteRest(marks: ReadonlyMap<string, number>): void {
    const sums = JSON.stringify(
      this.#totals.components().map(({ emitted, executed, transferred }) => [emitted, executed, transferred]),
    );
    const rest = this.#rest;
    const isSame =
      rest?.sums === sums &&
      rest.marks.size === marks.size &&
      [...rest.marks.keys()].every((workerId) => marks.has(workerId));
    if (!isSame) {
      this.#rest = { sums, marks };
      this.#isAtRest = false;
      return;
    }
    this.#isAtRest = [...rest.marks].every(([workerId, sequence]) => (marks.get(workerId) ?? 0) > sequence);
  }
}

/** A worker that has to be started could not be. @throws TOPOLOGY_CODE_LOST */
async function requireCode(blobs: BlobStore, hash: string): Promise<void> {
  if (await blobs.has(hash)) return;
  throw new IsobarError('TOPOLOGY_CODE_LOST', `blob ${hash} is missing`, {
    expected: `SHA-256 ${hash}`,
    found: 'no file',
    where: blobs.blobPath(hash),
  });
}

export function totalsName(topologyId: string): string {
  return `totals-${topologyId}`;
}

function problemOf(event: Exclude<MoveEvent, { readonly tasks: number }>): string {
  switch (event.kind) {
    case 'stayed': {
      const [first, last] = event.tasks;
      const tasks = first === last ? `task ${first}` : `tasks ${first} to ${last}`;
      return `"${event.component}", ${tasks}: stays where it is, ${event.reason}`;
    }
    case 'returned':
      return `"${event.component}", task ${event.task}: ${event.error.message}`;
    case 'cancelled':
      return event.error.message;
  }
}
