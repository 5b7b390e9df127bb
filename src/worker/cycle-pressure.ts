/**
 * Keeps the number of rows in one cycle of the graph bounded: rows from outside enter it only while no thread holds many rows
 * of it. Rows of the cycle itself are taken all the same, so that it can always run dry; and a bolt that sends back at
 * most one row per row never makes them more. So they grow only by what enters until all threads have heard.
 *
 * Invariants
 * P1  A row that entered from outside hands its place in the cycle on to the first row that its call sends back, that one to
 *     the next, and so on; such a row is never refused. All others are extra (EXTRA_MARK), and the reserve bounds them.
 * P2  What another thread says of itself is its state, not a change, so saying it twice changes nothing.
 */
import { Gate } from './link.js';

export class CyclePressure {
  /** Blocked: no row from outside may enter the cycle. */
  readonly gate = new Gate();
  readonly #limitRows: number;
  /** Other threads that hold many rows, by endpoint id. */
  readonly #others = new Set<number>();
  #isPressed = false;

  /** `limitRows`: held in one thread from which on nothing enters; half of them and it may again. */
  constructor(limitRows: number) {
    this.#limitRows = limitRows;
  }

  /** This thread holds many rows. */
  get isPressed(): boolean {
    return this.#isPressed;
  }

  /** Takes in how many rows this thread holds. Returns whether others must be told. */
  update(heldRows: number): boolean {
    const isPressed = this.#isPressed ? heldRows > this.#limitRows >> 1 : heldRows >= this.#limitRows;
    if (isPressed === this.#isPressed) return false;
    this.#isPressed = isPressed;
    this.#updateGate();
    return true;
  }

  onOther(endpoint: number, isPressed: boolean): void {
    if (isPressed) this.#others.add(endpoint);
    else this.#others.delete(endpoint);
    this.#updateGate();
  }

  /** An endpoint is gone, and its rows with it. */
  forget(endpoint: number): void {
    this.onOther(endpoint, false);
  }

  #updateGate(): void {
    this.gate.blocked = this.#isPressed || this.#others.size > 0;
  }
}
