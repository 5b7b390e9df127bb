/** Questions of a worker's main thread to its executor threads, answered within a time or not at all. */
import type { Clock } from '../base/index.js';
import type { ThreadHost } from './thread-host.js';
import type { FromThread, ToThread } from './thread-messages.js';

type Answer = Extract<FromThread, { readonly id: number }>;

interface Open {
  readonly waitsFor: Set<string>;
  readonly answers: Answer[];
  finish(): void;
}

export class ThreadQuestions {
  readonly #clock: Clock;
  readonly #open = new Map<number, Open>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when all have answered, or after `limitMs`; `silent`: threads that have not, since a call holds them up. */
  ask(
    hosts: readonly ThreadHost[],
    question: (id: number) => ToThread,
    limitMs: number,
  ): Promise<{ readonly answers: readonly Answer[]; readonly silent: number }> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const cancel = this.#clock.after(limitMs, () => this.#open.get(id)?.finish());
      const open: Open = {
        waitsFor: new Set(hosts.map(({ key }) => key)),
        answers: [],
        finish: () => {
          cancel();
          this.#open.delete(id);
          resolve({ answers: open.answers, silent: open.waitsFor.size });
        },
      };
      this.#open.set(id, open);
      if (hosts.length === 0) open.finish();
      for (const host of hosts) host.post(question(id));
    });
  }

  onAnswer(host: ThreadHost, answer: Answer): void {
    const open = this.#open.get(answer.id);
    if (open?.waitsFor.delete(host.key) !== true) return;
    open.answers.push(answer);
    if (open.waitsFor.size === 0) open.finish();
  }
}
