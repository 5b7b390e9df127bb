/** The free slots of one machine, by port. The offered list is shared until a slot is taken out of its middle. */

export class FreeSlots {
  /** Ascending; those before `#from` are taken. */
  #ports: readonly number[];
  #from = 0;

  /** `ports` are ascending, each once. */
  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  get count(): number {
    return this.#ports.length - this.#from;
  }

  /** The port of the n-th free slot, counted from 0 by ascending port. */
  at(place: number): number {
    return this.#ports[this.#from + place]!;
  }

  list(): readonly number[] {
    return this.#from === 0 ? this.#ports : this.#ports.slice(this.#from);
  }

  /** Takes a slot; false if it is not free. Cost: O(1) for the lowest port, as strategies take them, else O(slots). */
  take(port: number): boolean {
    const place = placeOf(this.#ports, port, this.#from);
    if (this.#ports[place] !== port) return false;
    if (place > this.#from) {
      this.#ports = this.list().filter((one) => one !== port);
      this.#from = 0;
    } else {
      this.#from++;
    }
    return true;
  }

  /** Gives a slot back that was taken. */
  give(port: number): void {
    if (this.#from > 0 && this.#ports[this.#from - 1] === port) {
      this.#from--;
      return;
    }
    const place = placeOf(this.#ports, port, this.#from);
    this.#ports = [...this.#ports.slice(this.#from, place), port, ...this.#ports.slice(place)];
    this.#from = 0;
  }

  clear(): void {
    this.#ports = [];
    this.#from = 0;
  }
}

/** Is the port in this ascending list? */
export function holdsPort(ports: readonly number[], port: number): boolean {
  return ports[placeOf(ports, port, 0)] === port;
}

/** Where the port is, or would be put. */
function placeOf(ports: readonly number[], port: number, start: number): number {
  let [from, to] = [start, ports.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ports[middle]! < port) from = middle + 1;
    else to = middle;
  }
  return from;
}
