/**
 * A strategy in a thread of its own: it cannot hold up whoever asks, and one that does not answer in time is ended with its
 * thread, wherever it is. The next question starts another one.
 *
 * T1: one question at a time, answered in order. T2: each ends within the deadline, the start of the thread included.
 * T3: an installed strategy that missed a deadline is not asked again for ten deadlines, so that it delays others once, not always.
 */
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker as Thread,
} from 'node:worker_threads';
import { type Clock, IsobarError, packageEntry } from '../../base/index.js';
import type { ClusterSnapshot, SchedulingResult, Strategy } from '../../scheduling/index.js';
import { SentLists } from './sent-lists.js';
import type {
  PostedDecision,
  StrategyAnswer,
  StrategyQuestion,
  StrategySource,
  StrategyThreadStart,
} from './strategy-messages.js';

export interface StrategyThreadOptions {
  readonly source: StrategySource;
  /** For one answer, ms. */
  readonly deadlineMs: number;
  readonly clock: Pick<Clock, 'nowMs' | 'after'>;
}

/** Deadlines for which an installed strategy rests that has missed one. */
const REST_DEADLINES = 10;
/** More than the largest cluster needs, and no danger to the daemon. */
const MAX_HEAP_MB = 1024;

interface RunningThread {
  readonly thread: Thread;
  readonly port: MessagePort;
  readonly answered: Int32Array;
  /** What it has been told. */
  readonly sent: SentLists;
}

export class StrategyThread {
  readonly #options: StrategyThreadOptions;
  #running: RunningThread | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #number = 0;
  #restsUntilMs = -Infinity;

  constructor(options: StrategyThreadOptions) {
    this.#options = options;
  }

  /** @throws STRATEGY_FAILED if it throws, does not answer in time, or returns no placement */
  decide(snapshot: ClusterSnapshot): Promise<SchedulingResult> {
    const next = this.#last.then(() => this.#ask(snapshot));
    this.#last = next.catch(() => undefined);
    return next;
  }

  /** The same for who may wait without an event loop, such as a command. @throws STRATEGY_FAILED */
  readonly decideNow: Strategy = (snapshot) => {
    const { deadlineMs } = this.#options;
    const { port, answered, sent } = (this.#running ??= this.#start());
    const before = Atomics.load(answered, 0);
    port.postMessage(this.#question(snapshot, sent));
    if (Atomics.wait(answered, 0, before, deadlineMs) === 'timed-out') {
      this.close();
      throw this.#late();
    }
    const received = receiveMessageOnPort(port) as { readonly message: StrategyAnswer }; // posted before it was counted
    return resultOf(received.message, snapshot);
  };

  /** Ends the thread, whatever it does. */
  close(): void {
    void this.#running?.thread.terminate();
    this.#running = undefined;
  }

  async #ask(snapshot: ClusterSnapshot): Promise<SchedulingResult> {
    const { clock, deadlineMs, source } = this.#options;
    const restMs = this.#restsUntilMs - clock.nowMs();
    if (restMs > 0) throw this.#late(` It is asked again in ${Math.ceil(restMs / 1000)} s.`);
    const running = (this.#running ??= this.#start());
    const { thread, port, sent } = running;
    const question = this.#question(snapshot, sent);
    const answer = await new Promise<StrategyAnswer>((resolve, reject) => {
      const settle = (act: () => void): void => {
        cancel();
        port.off('message', onAnswer);
        thread.off('error', onError);
        thread.off('exit', onExit);
        act();
      };
      const gone = (message: string, cause?: unknown): void => {
        if (this.#running === running) this.#running = undefined;
        const where = whereOf(source);
        settle(() => reject(new IsobarError('STRATEGY_FAILED', message, { where }, cause)));
      };
      const onAnswer = (received: StrategyAnswer): void => {
        if (received.number === question.number) settle(() => resolve(received));
      };
      const onError = (error: unknown): void =>
        gone(`the thread of the strategy "${source.name}" ended: ${String(error)}`, error);
      const onExit = (): void => gone(`the strategy "${source.name}" ended its thread`);
      const cancel = clock.after(deadlineMs, () => {
        this.close();
        if (source.kind === 'installed') this.#restsUntilMs = clock.nowMs() + REST_DEADLINES * deadlineMs;
        settle(() => reject(this.#late()));
      });
      port.on('message', onAnswer);
      thread.on('error', onError);
      thread.on('exit', onExit);
      port.postMessage(question);
    });
    return resultOf(answer, snapshot);
  }

  #question(snapshot: ClusterSnapshot, sent: SentLists): StrategyQuestion {
    this.#number++;
    return { number: this.#number, snapshot: sent.post(snapshot) };
  }

  #start(): RunningThread {
    const { source } = this.#options;
    const { port1: port, port2: theirs } = new MessageChannel();
    const answered = new SharedArrayBuffer(4);
    const start: StrategyThreadStart = { source, port: theirs, answered };
    const thread = new Thread(packageEntry('nimbus/deciding/strategy-main'), {
      workerData: start,
      transferList: [theirs],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    // What goes wrong between two questions is found out by the next one.
    const forget = (): void => {
      if (this.#running?.thread === thread) this.#running = undefined;
    };
    thread.on('error', forget);
    thread.on('exit', forget);
    thread.unref();
    port.unref();
    return { thread, port, answered: new Int32Array(answered), sent: new SentLists() };
  }

  #late(more = ''): IsobarError {
    const { source, deadlineMs } = this.#options;
    const message = `the strategy "${source.name}" did not answer within ${deadlineMs} ms, and its thread was ended.${more}`;
    const expected = `an answer within ${deadlineMs} ms (scheduling.deadline)`;
    return new IsobarError('STRATEGY_FAILED', message, { expected, found: 'none', where: whereOf(source) });
  }
}

function whereOf(source: StrategySource): string {
  return source.kind === 'installed' ? source.module : source.name;
}

/** @throws what the strategy threw */
function resultOf(answer: StrategyAnswer, { placement: before }: ClusterSnapshot): SchedulingResult {
  if (answer.kind === 'failed') throw IsobarError.from(answer.error);
  const { placement, failures, ...others }: PostedDecision = answer.decision;
  return {
    ...others,
    placement: new Map(placement.map(([id, workers]) => [id, workers ?? before.get(id) ?? []])),
    failures: new Map(failures.map(([id, error]) => [id, IsobarError.from(error)])),
  };
}
