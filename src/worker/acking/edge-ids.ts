/**
 * Fresh 64-bit edge ids as two int32 halves (BigInt would cost some twenty times as much on the hot path).
 *
 * The generator must not be linear over XOR: the ledger XORs ids together, and among the outputs of a plain xorshift
 * there are fixed sets that cancel out, which would complete a tree too early. So: sfc32, a small chaotic generator with
 * a counter in its 128-bit state (Doty-Humphrey, PractRand; no cycle is shorter than 2³²), run twice per id.
 */
export class EdgeIds {
  /** Upper and lower half of the id that the last `next` drew. Never both 0. */
  high = 0;
  low = 0;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** Generators with different seeds give unrelated ids; the same seeds give the same ids. */
  constructor(seedA: number, seedB: number) {
    this.#a = 0x9e3779b9 | 0;
    this.#b = seedA | 0;
    this.#c = seedB | 0;
    for (let i = 0; i < 16; i++) this.next();
  }

  /** Draws a new id into `high` and `low`. */
  next(): void {
    do {
      const counter = this.#counter;
      let a = this.#a;
      let b = this.#b;
      let c = this.#c;
      const high = (a + b + counter) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + high) | 0;
      const low = (a + b + counter + 1) | 0;
      this.#a = b ^ (b >>> 9);
      this.#b = (c + (c << 3)) | 0;
      this.#c = (((c << 21) | (c >>> 11)) + low) | 0;
      this.#counter = (counter + 2) | 0;
      this.high = high;
      this.low = low;
    } while ((this.high | this.low) === 0);
  }
}
