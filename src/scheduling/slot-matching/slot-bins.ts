/**
 * Free slots in bins, one for each pair of machine and profile, with numbers for everything in the order of first
 * listing. The number of bins is at most that of slots, whatever the profiles are.
 */
import { ANY_PROFILE, type MatchableSlot } from './matching-problem.js';

export class SlotBins {
  /** By machine. */
  readonly machines: readonly string[];
  /** By machine: what it carries. Whoever changes it tells the heaps. */
  readonly loads: Float64Array;
  /** By bin: its machine, and the number of its profile in `profiles`. */
  readonly machineOf: Int32Array;
  readonly profileOf: Int32Array;
  readonly profiles: readonly string[];
  /** By bin: its first free slot; Infinity: none is left. */
  readonly firstSlots: Float64Array;
  /** By machine: its bins. */
  readonly binsOf: readonly number[][];
  /** By slot: the next one of its bin; -1: none. */
  readonly #next: Int32Array;

  /** `alike`: profiles do not count, each machine has one bin. */
  constructor(slots: readonly MatchableSlot[], loads: ReadonlyMap<string, number>, alike = false) {
    const machines = new Map<string, number>();
    const profiles = new Map<string, number>();
    const bins = new Map<number, number>();
    const machineOf: number[] = [];
    const profileOf: number[] = [];
    const firsts: number[] = [];
    const lasts: number[] = [];
    const binsOf: number[][] = [];
    this.#next = new Int32Array(slots.length).fill(-1);
    // Slots of a machine mostly follow each other: names are looked up where they change.
    let machineId: string | undefined;
    let profileName: string | undefined;
    let bin = -1;
    for (let slot = 0; slot < slots.length; slot++) {
      const { machine: ofMachine, profile: ofProfile } = slots[slot]!;
      const named = alike ? ANY_PROFILE : ofProfile;
      if (ofMachine !== machineId || named !== profileName) {
        machineId = ofMachine;
        profileName = named;
        const machine = numberOf(machines, machineId);
        const profile = numberOf(profiles, profileName);
        // At most 2^26 machines and profiles keep this exact.
        bin = numberOf(bins, machine * 0x4000000 + profile);
        if (bin === machineOf.length) {
          machineOf.push(machine);
          profileOf.push(profile);
          firsts.push(slot);
          lasts.push(slot);
          (binsOf[machine] ??= []).push(bin);
          continue;
        }
      }
      this.#next[lasts[bin]!] = slot;
      lasts[bin] = slot;
    }
    this.machines = [...machines.keys()];
    this.profiles = [...profiles.keys()];
    this.loads = new Float64Array(this.machines.length);
    for (let machine = 0; machine < this.machines.length; machine++)
      this.loads[machine] = loads.get(this.machines[machine]!) ?? 0;
    this.machineOf = Int32Array.from(machineOf);
    this.profileOf = Int32Array.from(profileOf);
    this.firstSlots = Float64Array.from(firsts);
    this.binsOf = binsOf;
  }

  get size(): number {
    return this.machineOf.length;
  }

  /** By bin: its free slots. */
  counts(): Int32Array {
    const counts = new Int32Array(this.size);
    for (let bin = 0; bin < counts.length; bin++)
      for (let slot = this.firstSlots[bin]!; slot >= 0 && slot < Infinity; slot = this.#next[slot]!)
        counts[bin]!++;
    return counts;
  }

  /** Takes the first slot of a bin that has one. */
  shift(bin: number): number {
    const slot = this.firstSlots[bin]!;
    const next = this.#next[slot]!;
    this.firstSlots[bin] = next < 0 ? Infinity : next;
    return slot;
  }

  isEmpty(bin: number): boolean {
    return this.firstSlots[bin] === Infinity;
  }
}

function numberOf<K>(numbers: Map<K, number>, key: K): number {
  const known = numbers.get(key);
  if (known !== undefined) return known;
  numbers.set(key, numbers.size);
  return numbers.size - 1;
}
