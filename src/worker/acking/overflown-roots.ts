/**
 * Trees that a cycle has failed for multiplying rows. What else of such a tree is still in the cycle must not go round in it for
 * ever: it would use up the reserve and keep all other rows outside. Bounded; the oldest are forgotten first, and fail again
 * should a row of theirs be left.
 */
const MAX_ROOTS = 4096;

export class OverflownRoots {
  /** In the order in which they failed. */
  readonly #roots = new Set<string>();

  get size(): number {
    return this.#roots.size;
  }

  add(rootTask: number, generation: number, sequence: number): void {
    this.#roots.add(keyOf(rootTask, generation, sequence));
    if (this.#roots.size > MAX_ROOTS) this.#roots.delete(this.#roots.values().next().value!);
  }

  has(rootTask: number, generation: number, sequence: number): boolean {
    return this.#roots.size > 0 && this.#roots.has(keyOf(rootTask, generation, sequence));
  }
}

function keyOf(rootTask: number, generation: number, sequence: number): string {
  return `${rootTask}/${generation}/${sequence}`;
}
