/**
 * The tasks of one executor thread: starting, closing, and grouping them into executors.
 *
 * Starting waits for user code, one task after the other; the thread goes on meanwhile, so that a slow `prepare` holds up
 * nobody who runs already.
 */
import { toIsobarError } from '../base/index.js';
import type { ExecutorRange } from '../scheduling/index.js';
import { BoltExecutor, type BoltWiring } from './bolt-executor.js';
import type { BoltTaskRunner } from './bolt-task.js';
import { createTask, wireBolt, type CreatedTask, type ExecutorFactory } from './executor-factory.js';
import { SpoutExecutor, type SpoutTaskRunner } from './spout-executor.js';
import type { TaskStart } from './thread-messages.js';

export interface ThreadTasksOptions {
  readonly factory: ExecutorFactory;
  /** Tasks have come or gone, or are in other executors. */
  onChanged(): void;
  onStarted(tasks: readonly CreatedTask[]): void;
  onStopped(tasks: readonly number[]): void;
  /** A task could not be created: this thread cannot do what it is there for. */
  onBroken(error: unknown): void;
}

/** An executor, as its tasks are grouped: by the first task of its range. */
type Group = number;

export class ThreadTasks {
  /** Sinks first. */
  bolts: readonly BoltExecutor[] = [];
  spouts: readonly SpoutExecutor[] = [];
  readonly #options: ThreadTasksOptions;
  readonly #wirings = new Map<string, BoltWiring>();
  readonly #bolts = new Map<Group, BoltExecutor>();
  readonly #spouts = new Map<Group, SpoutExecutor>();
  readonly #running = new Map<number, { readonly created: CreatedTask; group: Group }>();
  #groupOf: ReadonlyMap<number, Group> = new Map();
  /** What is to be created; taken out again: it is not wanted any more. */
  readonly #starting = new Map<number, TaskStart>();
  #creating: Promise<void> = Promise.resolve();

  constructor(options: ThreadTasksOptions) {
    this.#options = options;
  }

  /** Tasks that share a range share an executor from now on, in the order of their rows. */
  regroup(ranges: readonly ExecutorRange[]): void {
    const groupOf = new Map<number, Group>();
    for (const [first, last] of ranges) for (let task = first; task <= last; task++) groupOf.set(task, first);
    this.#groupOf = groupOf;
    for (const [number, running] of this.#running) {
      // A task that is about to leave stays with those that it was with.
      const group = groupOf.get(number) ?? running.group;
      if (group === running.group) continue;
      const waiting = this.#takeOut(number);
      running.group = group;
      this.#putIn(running.created, group, waiting);
    }
    this.#onChanged();
  }

  /** Starts tasks one after the other; those of one executor take rows together. */
  start(starts: readonly TaskStart[]): void {
    for (const start of starts) this.#starting.set(start.task, start);
    this.#creating = this.#creating
      .then(() => this.#createAll(starts))
      .catch((error: unknown) => this.#options.onBroken(error));
  }

  /** Stops tasks: rows that wait for them fail as moved. One that is being created goes as soon as it is there. */
  async stop(tasks: readonly number[]): Promise<void> {
    const stopped: CreatedTask[] = [];
    for (const number of tasks) {
      this.#starting.delete(number);
      const running = this.#running.get(number);
      if (running === undefined) continue;
      const executor = this.#options.factory.boltOfTask[number];
      const waiting = this.#takeOut(number);
      executor?.refuse(waiting);
      this.#running.delete(number);
      this.#options.factory.forget(number);
      stopped.push(running.created);
    }
    this.#onChanged();
    for (const created of stopped) await this.#close(created);
    if (stopped.length > 0) this.#options.onStopped(stopped.map(({ task }) => task.number));
  }

  /** Closes every task, spouts first. */
  async closeAll(): Promise<void> {
    this.#starting.clear();
    const running = [...this.#running.values()].map(({ created }) => created);
    for (const kind of ['spout', 'bolt']) {
      for (const created of running) if (created.kind === kind) await this.#close(created);
    }
  }

  async #createAll(starts: readonly TaskStart[]): Promise<void> {
    let together: CreatedTask[] = [];
    for (const [place, start] of starts.entries()) {
      const isWanted = (): boolean => this.#starting.get(start.task) === start;
      if (isWanted()) {
        const created = await createTask(this.#options.factory, start);
        if (isWanted()) together.push(created);
        else await this.#abandon([created]);
      }
      const next = starts[place + 1];
      if (next !== undefined && this.#groupFor(next.task) === this.#groupFor(start.task)) continue;
      await this.#activate(together);
      together = [];
    }
  }

  async #activate(created: readonly CreatedTask[]): Promise<void> {
    const wanted = created.filter(({ task }) => this.#starting.delete(task.number));
    await this.#abandon(created.filter((one) => !wanted.includes(one)));
    if (wanted.length === 0) return;
    for (const one of wanted) {
      const group = this.#groupFor(one.task.number);
      this.#running.set(one.task.number, { created: one, group });
      this.#options.factory.context.localRoots[one.task.number] = one.task;
      this.#putIn(one, group, []);
    }
    this.#options.onStarted(wanted);
    this.#onChanged();
  }

  /** What was created is not wanted any more. */
  async #abandon(created: readonly CreatedTask[]): Promise<void> {
    for (const one of created) await this.#close(one);
    if (created.length > 0) this.#options.onStopped(created.map(({ task }) => task.number));
  }

  #groupFor(task: number): Group {
    return this.#groupOf.get(task) ?? task;
  }

  #putIn(created: CreatedTask, group: Group, waiting: Parameters<BoltExecutor['add']>[1]): void {
    if (created.kind === 'spout') {
      const executor =
        this.#spouts.get(group) ??
        new SpoutExecutor(this.#options.factory.context.component(created.task.component));
      this.#spouts.set(group, executor);
      executor.add(created.task);
      return;
    }
    const { factory } = this.#options;
    const executor = this.#bolts.get(group) ?? new BoltExecutor(this.#wiringOf(created.task.component));
    this.#bolts.set(group, executor);
    executor.add(created.task, waiting);
    factory.boltOfTask[created.task.number] = executor;
    factory.context.localTargets[created.task.number] = executor;
  }

  /** Takes a running task out of its executor; returns the rows that wait for it. */
  #takeOut(number: number): ReturnType<BoltExecutor['remove']> {
    const { created, group } = this.#running.get(number)!;
    if (created.kind === 'spout') {
      const executor = this.#spouts.get(group)!;
      executor.remove(created.task);
      if (executor.tasks.length === 0) this.#spouts.delete(group);
      return [];
    }
    const executor = this.#bolts.get(group)!;
    const waiting = executor.remove(created.task);
    if (executor.tasks.length === 0) this.#bolts.delete(group);
    return waiting;
  }

  #wiringOf(component: string): BoltWiring {
    const known = this.#wirings.get(component);
    if (known !== undefined) return known;
    const wiring = wireBolt(this.#options.factory, component);
    this.#wirings.set(component, wiring);
    return wiring;
  }

  #onChanged(): void {
    const { factory } = this.#options;
    const byDepth = (a: BoltExecutor, b: BoltExecutor): number =>
      factory.depthOf(b.component.id) - factory.depthOf(a.component.id);
    this.bolts = [...this.#bolts.values()].sort(byDepth);
    this.spouts = [...this.#spouts.values()];
    this.#options.onChanged();
  }

  async #close(created: CreatedTask): Promise<void> {
    if (created.kind === 'spout') await closeSpout(created.task);
    else await this.#closeBolt(created.task);
  }

  async #closeBolt(task: BoltTaskRunner): Promise<void> {
    try {
      await task.task.close?.();
    } catch (error) {
      this.#options.factory.logger.warn('close.failed', {
        component: task.component,
        task: task.number,
        message: toIsobarError(error).message,
      });
    }
  }
}

function closeSpout(task: SpoutTaskRunner): Promise<void> {
  return task.source.close();
}
