/** Runs what it is given one after the other, in the order given. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as `run` does, which starts when everything before it is over, well or not. */
  run<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
