/**
 * What a topology has done so far, over all lives of its workers. Counters of a worker start at zero with it, so the
 * last report of every worker that has been is kept, and sums never go backwards.
 *
 * A worker that is away and comes back has the same id and is counted once. When many have been succeeded in their slots,
 * they are folded into one base; their ids are kept, so that a late report of one is not counted again.
 */
import { errorKind, mergeSketches, type SketchPairs } from '../base/index.js';
import type {
  ComponentReport,
  LostState,
  ReportedError,
  TaskReport,
  WorkerHeartbeat,
} from '../coordination/index.js';

const MAX_SUCCEEDED = 32;
/** Kinds of errors kept of each component. */
const MAX_ERRORS_OF_COMPONENT = 16;
const MAX_LOST_STATES = 1024;

export interface ComponentTotals {
  readonly component: string;
  readonly emitted: number;
  readonly transferred: number;
  readonly executed: number;
  readonly acked: number;
  readonly failed: number;
  readonly replayed: number;
  readonly deadLetters: number;
  /** Rows of a spout that nobody would emit again if they failed; counted where acking is on. */
  readonly unreplayable: number;
  /** Milliseconds in which executors ran rows, and in which they had some and could not send on. */
  readonly busyMs: number;
  readonly blockedMs: number;
  readonly executeMicros: SketchPairs;
  readonly completeMicros: SketchPairs;
  /** By reason. */
  readonly failures: Readonly<Record<string, number>>;
  readonly replays: Readonly<Record<string, number>>;
  /** User counters. */
  readonly counters: Readonly<Record<string, number>>;
}

/** What is kept of one worker. */
interface WorkerTotals {
  readonly workerId: string;
  /** `supervisor:port`. */
  readonly slot: string;
  readonly generation: number;
  readonly sequence: number;
  readonly components: readonly ComponentTotals[];
  readonly errors: readonly ReportedError[];
  readonly lostStates: readonly LostState[];
  readonly deadLetterFiles: readonly string[];
}

/** As stored, to be read by a Nimbus that starts later. */
export interface StoredTotals {
  readonly format: 1;
  readonly workers: readonly WorkerTotals[];
  readonly folded: readonly string[];
}

const BASE_ID = '';
const COUNTS = [
  'emitted',
  'transferred',
  'executed',
  'acked',
  'failed',
  'replayed',
  'deadLetters',
  'unreplayable',
  'busyMs',
  'blockedMs',
] as const;

const NOTHING_FOLDED: WorkerTotals = {
  workerId: BASE_ID,
  slot: BASE_ID,
  generation: 0,
  sequence: 0,
  components: [],
  errors: [],
  lostStates: [],
  deadLetterFiles: [],
};

export class TotalsBook {
  readonly #workers = new Map<string, WorkerTotals>();
  readonly #folded = new Set<string>();

  constructor(stored?: unknown) {
    if (!isStored(stored)) return;
    for (const worker of stored.workers) this.#workers.set(worker.workerId, worker);
    for (const workerId of stored.folded) this.#folded.add(workerId);
  }

  /** Takes in a report. Returns `new-worker` for the first of a worker's, `stale` for one that tells nothing new. */
  note(heartbeat: WorkerHeartbeat): 'stale' | 'updated' | 'new-worker' {
    const { workerId, sequence } = heartbeat;
    const known = this.#workers.get(workerId);
    if (this.#folded.has(workerId) || (known !== undefined && known.sequence >= sequence)) return 'stale';
    this.#workers.set(workerId, ofHeartbeat(heartbeat));
    if (known !== undefined) return 'updated';
    this.#foldSucceeded();
    return 'new-worker';
  }

  /** State that went with a machine, which nobody is left to tell of. */
  noteLost(lost: readonly LostState[]): void {
    const base = this.#workers.get(BASE_ID) ?? NOTHING_FOLDED;
    const lostStates = [...base.lostStates, ...lost].slice(-MAX_LOST_STATES);
    this.#workers.set(BASE_ID, { ...base, lostStates });
  }

  /** Sums, in order of component id. */
  components(): readonly ComponentTotals[] {
    return sumComponents([...this.#workers.values()].flatMap(({ components }) => components));
  }

  /** Newest last. */
  errors(): readonly ReportedError[] {
    return mergeErrors([...this.#workers.values()].flatMap(({ errors }) => errors));
  }

  lostStates(): readonly LostState[] {
    return [...this.#workers.values()].flatMap(({ lostStates }) => lostStates).slice(-MAX_LOST_STATES);
  }

  deadLetterFiles(): readonly string[] {
    return [...new Set([...this.#workers.values()].flatMap(({ deadLetterFiles }) => deadLetterFiles))].sort();
  }

  stored(): StoredTotals {
    return { format: 1, workers: [...this.#workers.values()], folded: [...this.#folded] };
  }

  /** Folds workers that have a successor in their slot; the others may still be there, or come back. */
  #foldSucceeded(): void {
    const newest = new Map<string, number>();
    for (const { slot, generation } of this.#workers.values()) {
      newest.set(slot, Math.max(generation, newest.get(slot) ?? 0));
    }
    const succeeded = [...this.#workers.values()].filter(
      ({ workerId, slot, generation }) => workerId !== BASE_ID && generation < (newest.get(slot) ?? 0),
    );
    if (succeeded.length <= MAX_SUCCEEDED) return;
    const base = this.#workers.get(BASE_ID);
    const all = base === undefined ? succeeded : [base, ...succeeded];
    this.#workers.set(BASE_ID, {
      ...NOTHING_FOLDED,
      components: sumComponents(all.flatMap(({ components }) => components)),
      errors: mergeErrors(all.flatMap(({ errors }) => errors)),
      lostStates: all.flatMap(({ lostStates }) => lostStates).slice(-MAX_LOST_STATES),
      deadLetterFiles: [...new Set(all.flatMap(({ deadLetterFiles }) => deadLetterFiles))],
    });
    for (const { workerId } of succeeded) {
      this.#workers.delete(workerId);
      this.#folded.add(workerId);
    }
  }
}

function ofHeartbeat(heartbeat: WorkerHeartbeat): WorkerTotals {
  const { workerId, generation, sequence, errors, lostStates, deadLetterFiles } = heartbeat;
  const reports = new Map(heartbeat.components.map((report) => [report.component, report]));
  const tasks = new Map<string, TaskReport[]>();
  for (const task of heartbeat.tasks) {
    const list = tasks.get(task.component);
    if (list === undefined) tasks.set(task.component, [task]);
    else list.push(task);
  }
  const components = [...new Set([...reports.keys(), ...tasks.keys()])].map((component) =>
    ofComponent(component, tasks.get(component) ?? [], reports.get(component)),
  );
  const slot = `${heartbeat.supervisorId}:${heartbeat.port}`;
  return { workerId, slot, generation, sequence, components, errors, lostStates, deadLetterFiles };
}

function ofComponent(
  component: string,
  tasks: readonly TaskReport[],
  report: ComponentReport | undefined,
): ComponentTotals {
  const sums = Object.fromEntries(
    // What tasks have counted here that have moved away stays; at their new place they count from zero.
    COUNTS.map((name) => [
      name,
      tasks.reduce((sum, task) => sum + (task[name] ?? 0), report?.departed?.[name] ?? 0),
    ]),
  ) as Record<(typeof COUNTS)[number], number>;
  return {
    component,
    ...sums,
    executeMicros: report?.executeMicros ?? [],
    completeMicros: report?.completeMicros ?? [],
    failures: report?.failures ?? {},
    replays: report?.replays ?? {},
    counters: report?.counters ?? {},
  };
}

function sumComponents(all: readonly ComponentTotals[]): readonly ComponentTotals[] {
  const byComponent = new Map<string, ComponentTotals[]>();
  for (const totals of all) {
    const list = byComponent.get(totals.component);
    if (list === undefined) byComponent.set(totals.component, [totals]);
    else list.push(totals);
  }
  return [...byComponent]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([component, list]) => {
      const sums = Object.fromEntries(
        // Totals that an older version has stored lack some.
        COUNTS.map((name) => [
          name,
          list.reduce((sum, totals) => sum + ((totals[name] as number | undefined) ?? 0), 0),
        ]),
      ) as Record<(typeof COUNTS)[number], number>;
      return {
        component,
        ...sums,
        executeMicros: mergeSketches(list.map(({ executeMicros }) => executeMicros)),
        completeMicros: mergeSketches(list.map(({ completeMicros }) => completeMicros)),
        failures: sumRecords(list.map(({ failures }) => failures)),
        replays: sumRecords(list.map(({ replays }) => replays)),
        counters: sumRecords(list.map(({ counters }) => counters)),
      };
    });
}

function sumRecords(records: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return Object.fromEntries(sums);
}

function mergeErrors(errors: readonly ReportedError[]): readonly ReportedError[] {
  const merged = new Map<string, ReportedError>();
  // The task and the text of a kind are those of its newest.
  for (const error of errors.toSorted((a, b) => a.lastMs - b.lastMs)) {
    const key = errorKind(error.component, error.error);
    const other = merged.get(key);
    merged.set(key, {
      ...error,
      count: error.count + (other?.count ?? 0),
      firstMs: Math.min(error.firstMs, other?.firstMs ?? Infinity),
      lastMs: Math.max(error.lastMs, other?.lastMs ?? -Infinity),
    });
  }
  const newest = [...merged.values()].sort((a, b) => b.lastMs - a.lastMs);
  const kept = new Map<string, number>();
  return newest
    .filter(({ component }) => {
      const before = kept.get(component) ?? 0;
      kept.set(component, before + 1);
      return before < MAX_ERRORS_OF_COMPONENT;
    })
    .reverse();
}

/** Written by this class; only the version of its format can differ. */
function isStored(value: unknown): value is StoredTotals {
  if (typeof value !== 'object' || value === null) return false;
  const { format, workers, folded } = value as Partial<StoredTotals>;
  return format === 1 && Array.isArray(workers) && Array.isArray(folded);
}
