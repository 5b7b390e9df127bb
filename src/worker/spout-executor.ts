/** Runs the tasks of one executor of a spout, each in its turn. */
import type { ComponentDescription } from '../topology/index.js';
import { C_BUSY_MS } from './counters.js';
import { FairTurns } from './fair-turns.js';
import type { Gate } from './link.js';
import type { SpoutTaskRunner } from './spout-task.js';

export class SpoutExecutor {
  readonly component: ComponentDescription;
  readonly tasks: SpoutTaskRunner[] = [];
  readonly #turns = new FairTurns();

  constructor(component: ComponentDescription) {
    this.component = component;
  }

  add(task: SpoutTaskRunner): void {
    this.tasks.push(task);
    this.tasks.sort((a, b) => a.number - b.number);
  }

  remove(task: SpoutTaskRunner): void {
    this.tasks.splice(this.tasks.indexOf(task), 1);
  }

  /** A spout is never inside a cycle, so it has no cycle gates. */
  setGates(gates: readonly Gate[]): void {
    for (const task of this.tasks) task.setGates(gates);
  }

  run(budgetRows: number): number {
    const share = Math.max(1, Math.floor(budgetRows / this.tasks.length));
    const { clock } = this.tasks[0]!.context.options;
    const startMs = clock.nowMs();
    const done = this.#turns.each(this.tasks, stepOf, share);
    if (done > 0) this.tasks[0]!.counters[C_BUSY_MS]! += clock.nowMs() - startMs;
    return done;
  }

  get isCalm(): boolean {
    return this.tasks.every((task) => task.isCalm);
  }

  get retryAtMs(): number {
    let next = Infinity;
    for (const task of this.tasks) next = Math.min(next, task.source.retryAtMs);
    return next;
  }
}

function stepOf(task: SpoutTaskRunner, budgetRows: number): number {
  return task.step(budgetRows);
}
