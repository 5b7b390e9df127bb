/**
 * A scheduler to compare with, as a process behind a line protocol: a JSON case a line in, its answer a line out, in order.
 * The directory is the user's; it holds `run.sh`, which takes the word `serve`.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

export type Answer = Readonly<Record<string, unknown>>;

/** Requests that are sent before the first of them is answered. */
const IN_FLIGHT = 8;

export class Peer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #answers: AsyncIterator<string>;
  #errors = '';

  constructor(directory: string) {
    this.#child = spawn(join(directory, 'run.sh'), ['serve'], { stdio: 'pipe' });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-4000);
    });
    // A peer that ends is noticed where its answer is missing.
    this.#child.stdin.on('error', () => undefined);
    this.#child.on('error', (error) => (this.#errors += error.message));
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Answers in the order of the requests. @throws Error if the peer ends before it has answered all. */
  async *ask(requests: readonly unknown[]): AsyncGenerator<Answer> {
    let sent = 0;
    for (let answered = 0; answered < requests.length; answered++) {
      for (; sent < requests.length && sent < answered + IN_FLIGHT; sent++) {
        this.#child.stdin.write(`${JSON.stringify(requests[sent])}\n`);
      }
      const line = await this.#answers.next();
      if (line.done === true) throw new Error(`The peer ended.\n${this.#errors}`);
      yield JSON.parse(line.value) as Answer;
    }
  }

  stop(): void {
    this.#child.kill();
  }
}
