/**
 * Whose turn it is among those that compete for the same receivers: who was the first to get something done goes last the next
 * time. Turns in which nobody could do anything change nothing, or receivers that open every second turn would always find the
 * same one first.
 */
export class FairTurns {
  #first = 0;

  /** Lets each of them work once; returns how much was done in all. */
  each<T, A>(ones: readonly T[], work: (one: T, argument: A) => number, argument: A): number {
    const count = ones.length;
    let done = 0;
    let served = -1;
    for (let i = 0; i < count; i++) {
      const at = (this.#first + i) % count;
      const now = work(ones[at]!, argument);
      if (now > 0 && served < 0) served = at;
      done += now;
    }
    if (served >= 0) this.#first = served + 1;
    return done;
  }
}
