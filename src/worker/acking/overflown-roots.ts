/**
 * Trees that a cycle has failed for multiplying rows. What else of such a tree is still in the cycle must not go round in it for
 * ever: it would use up the reserve and keep all other rows outside. Bounded; the oldest are forgotten first, and fail again
 * should a row of theirs be left.
 */
const MAX_ROOTS = 4096;

export class OverflownRoots {
  /** In the order in which they failed: sequence numbers by key. */
  readonly #roots = new Map<string, number>();
  /** How many of them have a sequence number: for nearly every row of other trees this tells, and no key is made. */
  readonly #sequences = new Map<number, number>();

  get size(): number {
    return this.#roots.size;
  }

  add(rootTask: number, generation: number, sequence: number): void {
    const key = keyOf(rootTask, generation, sequence);
    if (this.#roots.has(key)) return;
    this.#roots.set(key, sequence);
    this.#sequences.set(sequence, (this.#sequences.get(sequence) ?? 0) + 1);
    if (this.#roots.size > MAX_ROOTS) this.#forgetOldest();
  }

  has(rootTask: number, generation: number, sequence: number): boolean {
    if (this.#roots.size === 0 || !this.#sequences.has(sequence)) return false;
    return this.#roots.has(keyOf(rootTask, generation, sequence));
  }

  #forgetOldest(): void {
    for (const [key, sequence] of this.#roots) {
      this.#roots.delete(key);
      const others = this.#sequences.get(sequence)! - 1;
      if (others === 0) this.#sequences.delete(sequence);
      else this.#sequences.set(sequence, others);
      return;
    }
  }
}

function keyOf(rootTask: number, generation: number, sequence: number): string {
  return `${rootTask}/${generation}/${sequence}`;
}
