/**
 * Tasks of this thread that are about to leave it: each finishes what it has, its rows are seen into the queues of their
 * receivers, its state is saved, and then it waits to be closed, or to go on after all.
 *
 *     (rows still come) ──finish──► finishing ──► passing ──► saving ──► saved ──► closed, or kept
 *
 * Invariants
 * M1  From `passing` on the task is in no executor: nothing that `save` does not see can change its state.
 * M2  It is saved only when each row that it has sent is in the queue of its receiver, so that rows from its new place
 *     come later. What waits for a receiver of its own cycle that moves as well is not waited for: that would be for ever.
 * M3  Each step ends in time: what is left of rows, calls and trees then fails as moved.
 */
import { serialize } from 'node:v8';
import { IsobarError, toErrorRecord, toIsobarError } from '../base/index.js';
import { MOVE_PASS } from '../messaging/index.js';
import type { BoltTaskRunner } from './bolt-task.js';
import type { CreatedTask, ExecutorFactory } from './executor-factory.js';
import type { FromThread, SavedTask, ToThread } from './thread-messages.js';
import type { ThreadTasks } from './thread-tasks.js';
import { inCall } from './user-calls.js';

interface Leaving {
  readonly task: number;
  readonly id: number;
  readonly created: CreatedTask;
  limitMs: number;
  step: 'finishing' | 'passing' | 'saving' | 'saved';
  untilMs: number;
  /** Endpoints that have not said yet that rows before the mark have passed. */
  readonly waiting: Set<number>;
}

export interface LeavingTasksOptions {
  readonly factory: ExecutorFactory;
  readonly tasks: ThreadTasks;
  /** Does a row of that task wait for a receiver that is on its way? */
  isSending(task: number): boolean;
  post(message: FromThread, transfer?: ArrayBuffer[]): void;
}

export class LeavingTasks {
  readonly #options: LeavingTasksOptions;
  readonly #leaving = new Map<number, Leaving>();

  constructor(options: LeavingTasksOptions) {
    this.#options = options;
  }

  /** Milliseconds at which a step ends whatever is left; Infinity: nothing leaves. */
  get nextDueMs(): number {
    let next = Infinity;
    for (const { step, untilMs } of this.#leaving.values())
      if (step === 'finishing' || step === 'passing') next = Math.min(next, untilMs);
    return next;
  }

  finish({ task, id, limitMs }: Extract<ToThread, { kind: 'finish-task' }>, nowMs: number): void {
    const created = this.#options.tasks.find(task);
    if (created === undefined) return;
    if (created.kind === 'spout') created.task.setLeaving(true);
    else if (created.task.ending) {
      // Elsewhere it would end once more.
      this.#options.post({
        kind: 'task-saved',
        saved: { task, id, state: hasEnded(created.task), position: undefined },
      });
      return;
    }
    this.#leaving.set(task, {
      task,
      id,
      created,
      limitMs,
      step: 'finishing',
      untilMs: nowMs + limitMs,
      waiting: new Set(),
    });
  }

  /** The task goes on here. */
  keep(task: number): void {
    const leaving = this.#leaving.get(task);
    if (leaving === undefined) return;
    this.#leaving.delete(task);
    if (leaving.created.kind === 'spout') leaving.created.task.setLeaving(false);
    else leaving.created.task.stay();
    this.#options.tasks.resume(task);
  }

  /** The task is being closed. */
  forget(task: number): void {
    const leaving = this.#leaving.get(task);
    this.#leaving.delete(task);
    if (leaving?.created.kind === 'spout') leaving.created.task.failUnread();
  }

  onPassed(task: number, id: number, endpoint: number): void {
    const leaving = this.#leaving.get(task);
    if (leaving?.id === id) leaving.waiting.delete(endpoint);
  }

  /** Takes every step that can be taken now. */
  advance(nowMs: number): void {
    for (const leaving of this.#leaving.values()) {
      if (leaving.step === 'finishing' && this.#hasFinished(leaving, nowMs)) this.#pass(leaving, nowMs);
      if (leaving.step === 'passing' && this.#hasPassed(leaving, nowMs)) {
        leaving.step = 'saving';
        void this.#save(leaving);
      }
    }
  }

  #hasFinished({ created, untilMs }: Leaving, nowMs: number): boolean {
    if (created.kind === 'spout') return created.task.isDone || nowMs >= untilMs;
    const { task } = created;
    // A manual bolt may need its tick to let go of the rows that it holds.
    if (task.nextTickMs < Infinity && !(task.openCalls.size > 0 && this.#isManual(task.component)))
      task.nextTickMs = Infinity;
    if (task.isIdle && this.#options.factory.boltOfTask[task.number]?.hasRowFor(task.number) !== true)
      return true;
    if (nowMs < untilMs) return false;
    task.giveUp();
    return true;
  }

  #isManual(component: string): boolean {
    return this.#options.factory.context.component(component).manual;
  }

  #pass(leaving: Leaving, nowMs: number): void {
    const { created, task, id } = leaving;
    this.#options.tasks.suspend(task);
    if (created.kind === 'spout') {
      created.task.leave();
      // What is left is read again at the new place, so there is no order to keep.
      if (!created.task.isDone) leaving.limitMs = 0;
    }
    leaving.step = 'passing';
    leaving.untilMs = nowMs + leaving.limitMs;
    const { context } = this.#options.factory;
    const targets = [...created.task.streams.values()].flatMap(({ outputs }) => outputs);
    for (const { edge } of targets) {
      for (let target = edge.firstTask; target < edge.firstTask + edge.taskCount; target++) {
        const link = context.linkOfTask[target];
        if (link !== undefined) leaving.waiting.add(link.id);
      }
    }
    for (const endpoint of leaving.waiting) context.links.get(endpoint)?.mark(MOVE_PASS, task, id);
  }

  #hasPassed({ waiting, task, untilMs }: Leaving, nowMs: number): boolean {
    const { links } = this.#options.factory.context;
    for (const endpoint of waiting) if (!links.has(endpoint)) waiting.delete(endpoint);
    return nowMs >= untilMs || (waiting.size === 0 && !this.#options.isSending(task));
  }

  async #save(leaving: Leaving): Promise<void> {
    const { task, id, created } = leaving;
    const position = created.kind === 'spout' ? created.task.resumePosition : undefined;
    const state = created.kind === 'spout' ? ({ kind: 'none' } as const) : await this.#callSave(created);
    if (this.#leaving.get(task) !== leaving) return;
    leaving.step = 'saved';
    const saved: SavedTask = { task, id, state, position };
    this.#options.post(
      { kind: 'task-saved', saved },
      state.kind === 'saved' ? [state.bytes.buffer] : undefined,
    );
  }

  async #callSave({ task }: CreatedTask & { kind: 'bolt' }): Promise<SavedTask['state']> {
    if (task.task.save === undefined) return { kind: 'none' };
    const { progress } = this.#options.factory.context.options;
    try {
      const answer = await inCall(progress, task.number, 'save', () => task.task.save!());
      return { kind: 'saved', bytes: ownBytes(serialize(answer)) };
    } catch (error) {
      const where = `component "${task.component}", task ${task.number}, save`;
      return { kind: 'failed', error: toErrorRecord(toIsobarError(error, 'USER_CODE_FAILED', { where })) };
    }
  }
}

function hasEnded({ number, component }: BoltTaskRunner): SavedTask['state'] {
  const where = `component "${component}", task ${number}`;
  const message = `task ${number} of "${component}" has ended and stays where it is`;
  return { kind: 'failed', error: toErrorRecord(new IsobarError('TASK_NOT_SAVED', message, { where })) };
}

/** Bytes that have their memory to themselves, so that it can be handed to another thread. */
function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    ? new Uint8Array(buffer)
    : new Uint8Array(bytes);
}
