/**
 * A stack of things to close. Closes in reverse order of registration, goes on after a failure, and gathers all
 * failures; closing twice is harmless and both calls end together.
 */
export class Shutdown implements AsyncDisposable {
  readonly #steps: { name: string; close: () => unknown }[] = [];
  #closing: Promise<void> | undefined;

  /** Registers a step; steps that are registered after closing began run at once. */
  add(name: string, close: () => unknown): void {
    if (this.#closing !== undefined) {
      this.#closing = this.#closing.then(async () => {
        await close();
      });
      return;
    }
    this.#steps.push({ name, close });
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  close(): Promise<void> {
    this.#closing ??= this.#run();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.close();
      } catch (error) {
        failures.push(new Error(`closing ${step.name} failed`, { cause: error }));
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'closing failed');
  }
}
