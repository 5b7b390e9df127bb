/**
 * How many rows of each cycle of the graph this thread holds, in its queues and for its links, and telling the other threads when
 * that becomes much or little (see cycle-pressure.ts). A step costs one look at each bolt, at each task on its way and at each link
 * that holds rows.
 */
import type { CyclePressure } from './cycle-pressure.js';
import type { Link } from './link.js';
import type { Edge } from './outputs.js';

/** A queue that rows of one cycle wait in. */
export interface CycleQueue {
  /** -1: none. */
  readonly cycle: number;
  readonly queuedOfCycle: number;
}

export class CycleLevels {
  readonly #cycles: readonly CyclePressure[];
  /** By place in the list: the credit class of rows of a cycle, and the cycle. */
  readonly #classes: readonly (readonly [creditClass: number, cycle: number])[];
  readonly #held: Int32Array;

  constructor(cycles: readonly CyclePressure[], edges: readonly Edge[]) {
    this.#cycles = cycles;
    this.#classes = [
      ...new Map(
        edges.filter(({ cycle }) => cycle >= 0).map(({ creditClass, cycle }) => [creditClass, cycle]),
      ),
    ];
    this.#held = new Int32Array(cycles.length);
  }

  /** Counts, and tells what has changed; `again`: also where nothing has, for those who missed it. */
  tell(
    bolts: readonly CycleQueue[],
    onTheirWay: readonly CycleQueue[],
    links: Iterable<Link>,
    again: boolean,
  ): void {
    if (this.#cycles.length === 0) return;
    const held = this.#held.fill(0);
    for (const queues of [bolts, onTheirWay])
      for (const queue of queues) if (queue.cycle >= 0) held[queue.cycle]! += queue.queuedOfCycle;
    for (const link of links) {
      if (link.heldTotal === 0) continue;
      for (const [creditClass, cycle] of this.#classes) held[cycle]! += link.heldRows(creditClass);
    }
    for (let cycle = 0; cycle < held.length; cycle++) {
      const pressure = this.#cycles[cycle]!;
      if (!pressure.update(held[cycle]!) && !(again && pressure.isPressed)) continue;
      for (const link of links) link.setPressure(cycle, pressure.isPressed);
    }
  }
}
