/** Faults of input that describes a cluster: collected, so that all of them are reported at once. Pure. */
import { closestName, IsobarError } from '../../base/index.js';

export interface InputFault {
  /** The file, and the path of the field in it. */
  readonly where: string;
  readonly expected: string;
  readonly found: string;
}

/** Beyond these faults are counted only. */
const MAX_REPORTED = 50;

export class InputFaults {
  readonly #faults: InputFault[] = [];
  #more = 0;

  /** Whether a fault was added since there were so many. */
  get count(): number {
    return this.#faults.length + this.#more;
  }

  add(where: string, expected: string, found: unknown): void {
    if (this.#faults.length < MAX_REPORTED) this.#faults.push({ where, expected, found: show(found) });
    else this.#more++;
  }

  addUnknownKey(where: string, key: string, known: readonly string[]): void {
    const closest = closestName(key, known);
    const expected = closest === undefined ? `only ${known.join(', ')}` : `"${closest}"`;
    this.add(where, expected, new Words(`the unknown key ${show(key)}`));
  }

  /** @throws CLUSTER_INVALID with every fault, if there are any */
  throwIfAny(): void {
    const [first] = this.#faults;
    if (first === undefined) return;
    const lines = this.#faults.map(
      ({ where, expected, found }) => `${where}: expected ${expected}, found ${found}`,
    );
    if (this.#more > 0) lines.push(`and ${this.#more} more`);
    const message = lines.length === 1 ? lines[0]! : `${this.count} faults:\n  ${lines.join('\n  ')}`;
    throw new IsobarError('CLUSTER_INVALID', message, { ...first, faults: this.#faults });
  }
}

/** Text that is printed as it stands, not as a value. */
export class Words {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value in a few words; never grows long. */
export function show(value: unknown): string {
  if (value instanceof Words) return value.text;
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (value === undefined) return 'nothing';
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return 'an object';
}
