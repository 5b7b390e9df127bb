/**
 * The one order in which everything happens: requests are decided one after another against the state in memory, and
 * answered together when the log has their changes. While a commit is on its way to the disk the next one gathers.
 *
 * Q1 A request is answered, and a watch told, only after the changes it saw are as lasting as they promise.
 * Q2 When the log refuses a commit, its changes are undone in memory and the requests that needed it fail; reads and
 *    volatile writes among them are decided again. Ends and starts of sessions take effect all the same.
 */
import { type Logger, toErrorRecord } from '../../base/index.js';
import type { Change } from './changes.js';
import type { CommitLog } from './commit-log.js';
import type { NodeTree, Undo } from './node-tree.js';

/** Data bytes after which a commit is closed. */
const MAX_COMMIT_BYTES = 4 * 1024 * 1024;

export interface Decision<T> {
  readonly result: T;
  readonly change?: Change;
}

export interface TaskOptions {
  /** Takes effect in memory even when it cannot be logged; the log is brought up to date as soon as it can be. */
  readonly evenUnlogged?: boolean;
}

interface Task {
  readonly decide: () => Decision<unknown>;
  readonly evenUnlogged: boolean;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

type Durability = 'synced' | 'written' | 'memory';
type Outcome =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly error: unknown };

export class CommitQueue {
  readonly #tree: NodeTree;
  readonly #log: CommitLog;
  readonly #logger: Logger;
  readonly #onChanged: (paths: ReadonlySet<string>) => void;
  #waiting: Task[] = [];
  #running: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: {
    readonly tree: NodeTree;
    readonly log: CommitLog;
    readonly logger: Logger;
    /** Gets the paths of changed nodes after each commit. */
    readonly onChanged: (paths: ReadonlySet<string>) => void;
  }) {
    this.#tree = options.tree;
    this.#log = options.log;
    this.#logger = options.logger;
    this.#onChanged = options.onChanged;
  }

  /**
   * Runs `decide` when its turn comes; it looks at the state and returns the result and the change to make, or throws.
   * It may run twice (Q2), so it has no other effect than on what only the last run leaves.
   */
  run<T>(decide: () => Decision<T>, options: TaskOptions = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({
        decide,
        evenUnlogged: options.evenUnlogged ?? false,
        // The result is the one that this very `decide` returned.
        resolve: (result) => resolve(result as T),
        reject,
      });
      this.#running ??= this.#start();
    });
  }

  /** Resolves when everything given so far has been answered. */
  async drain(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #start(): Promise<void> {
    // What arrives in the same turn of the event loop shares a commit.
    await Promise.resolve();
    try {
      while (this.#waiting.length > 0) await this.#commit();
    } finally {
      this.#running = undefined;
    }
  }

  async #commit(): Promise<void> {
    const tasks: Task[] = [];
    const outcomes: Outcome[] = [];
    const undos: Undo[] = [];
    const logged: Change[] = [];
    const touched = new Set<string>();
    let mustSync = false;
    let bytes = 0;
    const waiting = this.#waiting;
    let taken = 0;
    while (taken < waiting.length && bytes < MAX_COMMIT_BYTES) {
      const task = waiting[taken++]!;
      tasks.push(task);
      outcomes.push(
        attempt(() => {
          const { result, change } = task.decide();
          if (change === undefined) return result;
          const durability = durabilityOf(change, this.#tree);
          this.#touch(change, touched);
          undos.push(this.#tree.apply(change));
          if (durability !== 'memory') logged.push(change);
          mustSync ||= durability === 'synced';
          bytes += 'data' in change ? change.data.length : 0;
          return result;
        }),
      );
    }
    this.#waiting = waiting.slice(taken);
    if (logged.length > 0) {
      try {
        await this.#write(logged, mustSync);
      } catch (error) {
        this.#settleWithoutLog(tasks, undos, error);
        return;
      }
    }
    settle(tasks, outcomes);
    if (touched.size > 0) this.#onChanged(touched);
    if (this.#log.wantsCompaction) await this.#compact();
  }

  async #write(changes: readonly Change[], sync: boolean): Promise<void> {
    if (this.#log.needsSnapshot) await this.#log.replaceBySnapshot(this.#tree.snapshot());
    else await this.#log.append(changes, { sync });
    if (this.#isFailing) this.#logger.info('coordinator.log-recovered');
    this.#isFailing = false;
  }

  #settleWithoutLog(tasks: readonly Task[], undos: readonly Undo[], failure: unknown): void {
    if (!this.#isFailing) this.#logger.error('coordinator.log-failed', { error: toErrorRecord(failure) });
    this.#isFailing = true;
    for (const undo of undos.toReversed()) undo();
    const touched = new Set<string>();
    const outcomes = tasks.map((task) =>
      attempt(() => {
        const { result, change } = task.decide();
        if (change === undefined) return result;
        if (durabilityOf(change, this.#tree) !== 'memory') {
          if (!task.evenUnlogged) throw failure;
          this.#log.requireSnapshot();
        }
        this.#touch(change, touched);
        this.#tree.apply(change);
        return result;
      }),
    );
    settle(tasks, outcomes);
    if (touched.size > 0) this.#onChanged(touched);
  }

  async #compact(): Promise<void> {
    try {
      await this.#log.replaceBySnapshot(this.#tree.snapshot());
    } catch (error) {
      // Nothing is lost: the log goes on as it is, and compaction is tried again when it has grown.
      this.#logger.warn('coordinator.compaction-failed', { error: toErrorRecord(error) });
    }
  }

  #touch(change: Change, touched: Set<string>): void {
    for (const path of pathsOf(change, this.#tree)) touched.add(path);
  }
}

function attempt(run: () => unknown): Outcome {
  try {
    return { kind: 'result', result: run() };
  } catch (error) {
    return { kind: 'error', error };
  }
}

function settle(tasks: readonly Task[], outcomes: readonly Outcome[]): void {
  for (const [index, task] of tasks.entries()) {
    const outcome = outcomes[index]!;
    if (outcome.kind === 'result') task.resolve(outcome.result);
    else task.reject(outcome.error);
  }
}

/** What a change needs before it is answered, judged before it is applied. */
function durabilityOf(change: Change, tree: NodeTree): Durability {
  switch (change.kind) {
    case 'open-session':
    case 'end-session':
      return 'written';
    case 'create':
      return DURABILITY_OF_KIND[change.nodeKind];
    case 'write':
    case 'remove':
      return DURABILITY_OF_KIND[tree.node(change.path)?.kind ?? 'durable'];
  }
}

/** An ephemeral node need not survive the machine, since its session's process does not. */
const DURABILITY_OF_KIND = { durable: 'synced', ephemeral: 'written', volatile: 'memory' } as const;

function pathsOf(change: Change, tree: NodeTree): readonly string[] {
  switch (change.kind) {
    case 'open-session':
      return [];
    case 'end-session':
      return [...(tree.sessions.get(change.session)?.ephemeralPaths ?? [])];
    case 'create':
    case 'write':
    case 'remove':
      return [change.path];
  }
}
