/**
 * The order in which supervisors are tried for an executor: favoured hosts; then racks, in a rack its hosts, on a host its
 * supervisors; unfavoured and grey-listed ones at the end. Each level goes by executors of the topology that are there
 * already, then by the share of what is free, then by id.
 *
 * M1: an order is begun for one executor and may serve the next ones. It keeps the counts of the moment it was begun, the
 * free resources of racks from then, and those of hosts and supervisors from the moment a rack or host was first reached.
 * Nothing is copied for that: what changes afterwards is saved when it changes.
 * Source: Storm's `NodeSorterHostProximity`.
 */
import { CPU, FIRST_GENERIC, MEMORY } from './amounts.js';
import { type Machines, NONE } from './machines.js';
import type { Trial } from './trial.js';

/** `average-first`: by the average share, then the smallest; `average-only`; `smallest-first`: the other way round. */
export type ShareOrder = 'average-first' | 'average-only' | 'smallest-first';

export interface ListedMachines {
  readonly favoured: readonly number[];
  /** Unfavoured ones, then grey-listed ones. */
  readonly last: readonly number[];
}

/** How much of what a group has left an item of it has, in percent. */
export interface Shares {
  average: number;
  smallest: number;
}

/** From this place in the order of racks on they are sorted all at once. */
const RACKS_PICKED_ONE_BY_ONE = 4;

export class MachineOrder {
  readonly trial: Trial;
  readonly shareOrder: ShareOrder;
  readonly listed: ListedMachines;
  /** By supervisor: 1 if it stands in one of the lists instead of its rack. */
  readonly isListed: Uint8Array;
  /** Comparisons and shares so far. */
  steps = 0;

  readonly #machines: Machines;
  /** The component that the order is for; NONE: for any. */
  #component = NONE;
  /** Number of the present order; marks of earlier ones do not count. */
  #serial = 0;

  readonly #racks: Int32Array;
  #racksInOrder = 0;
  readonly #rackCount: Int32Array;
  readonly #rackAverage: Float64Array;
  readonly #rackSmallest: Float64Array;
  readonly #clusterLeft: Float64Array;

  readonly #reached: Int32Array;
  /** What a rack had left when it was reached, where it has changed since. */
  readonly #savedRack: Int32Array;
  readonly #savedRackLeft: Float64Array;
  readonly #savedCount: Int32Array;
  readonly #savedCountOfMachine: Int32Array;
  readonly #savedCountOfHost: Map<number, number> = new Map();
  readonly #savedMachine: Int32Array;
  readonly #savedMachineLeft: Float64Array;

  readonly #listOfRack: (Int32Array | undefined)[];
  readonly #listOfRackSerial: Int32Array;
  readonly #listOfHost = new Map<number, readonly number[]>();
  readonly #hostFree: Float64Array;

  constructor(trial: Trial, shareOrder: ShareOrder, listed: ListedMachines) {
    const { machines } = trial;
    const { count, rackCount, resourceCount } = machines;
    this.trial = trial;
    this.shareOrder = shareOrder;
    this.listed = listed;
    this.isListed = new Uint8Array(count);
    for (const machine of [...listed.favoured, ...listed.last]) this.isListed[machine] = 1;
    this.#machines = machines;
    this.#racks = new Int32Array(rackCount);
    this.#rackCount = new Int32Array(rackCount);
    this.#rackAverage = new Float64Array(rackCount);
    this.#rackSmallest = new Float64Array(rackCount);
    this.#clusterLeft = new Float64Array(resourceCount);
    this.#reached = new Int32Array(rackCount);
    this.#savedRack = new Int32Array(rackCount);
    this.#savedRackLeft = new Float64Array(rackCount * resourceCount);
    this.#savedCount = new Int32Array(count);
    this.#savedCountOfMachine = new Int32Array(count);
    this.#savedMachine = new Int32Array(count);
    this.#savedMachineLeft = new Float64Array(count * resourceCount);
    this.#listOfRack = new Array<Int32Array | undefined>(rackCount);
    this.#listOfRackSerial = new Int32Array(rackCount);
    this.#hostFree = new Float64Array(resourceCount);
    trial.onChange = (machine) => this.#save(machine);
  }

  /** Begins a new order for an executor of the component, or for none in particular. */
  begin(component: number): void {
    this.#serial++;
    this.#component = component;
    this.#savedCountOfHost.clear();
    this.#listOfHost.clear();
    this.#racksInOrder = 0;
    const { rackCount, resourceCount, leftOfRack } = this.#machines;
    this.#clusterLeft.fill(0);
    for (let at = 0; at < leftOfRack.length; at++) this.#clusterLeft[at % resourceCount]! += leftOfRack[at]!;
    for (let rack = 0; rack < rackCount; rack++) {
      this.#racks[rack] = rack;
      this.#rackCount[rack] = this.trial.countOfRack[rack]!;
      this.#share(leftOfRack, rack * resourceCount, this.#clusterLeft, 0);
      this.#rackAverage[rack] = shares.average;
      this.#rackSmallest[rack] = shares.smallest;
    }
  }

  /** The rack at a place in the order; places are asked for from 0 upwards. */
  rackAt(place: number): number {
    const racks = this.#racks;
    while (this.#racksInOrder <= place) {
      const from = this.#racksInOrder;
      if (from >= RACKS_PICKED_ONE_BY_ONE) {
        racks.subarray(from).sort((a, b) => this.#compareRacks(a, b));
        this.#racksInOrder = racks.length;
        break;
      }
      let best = from;
      for (let other = from + 1; other < racks.length; other++) {
        if (this.#compareRacks(racks[other]!, racks[best]!) < 0) best = other;
      }
      const first = racks[best]!;
      racks[best] = racks[from]!;
      racks[from] = first;
      this.#racksInOrder++;
    }
    return racks[place]!;
  }

  /** Notes that the rack was reached: from now on its order stands. */
  reach(rack: number): void {
    this.#reached[rack] = this.#serial;
  }

  /** Executors that the topology had on a supervisor when the order was begun. */
  countThen(machine: number): number {
    return this.#savedCount[machine] === this.#serial
      ? this.#savedCountOfMachine[machine]!
      : this.trial.countOfMachine[machine]!;
  }

  /** The share that a supervisor, alone on its host, had of its rack when that was reached. */
  shareOfMachine(machine: number, into: Shares): void {
    const { resourceCount, left, leftOfRack, rackOf } = this.#machines;
    const rack = rackOf[machine]!;
    const rackSaved = this.#savedRack[rack] === this.#serial;
    const machineSaved = this.#savedMachine[machine] === this.#serial;
    this.#share(
      machineSaved ? this.#savedMachineLeft : left,
      machine * resourceCount,
      rackSaved ? this.#savedRackLeft : leftOfRack,
      rack * resourceCount,
    );
    into.average = shares.average;
    into.smallest = shares.smallest;
  }

  /** Is the first share better (below 0) or worse (above 0)? */
  compareShares(a: Shares, b: Shares): number {
    this.steps++;
    if (this.shareOrder === 'smallest-first') return b.smallest - a.smallest || b.average - a.average;
    const byAverage = b.average - a.average;
    return this.shareOrder === 'average-only' ? byAverage : byAverage || b.smallest - a.smallest;
  }

  /** All supervisors of the order, one after the other; what is reached is put in order when it is reached. */
  *all(): Generator<number, void> {
    yield* this.listed.favoured;
    for (let place = 0; place < this.#racks.length; place++) yield* this.inRack(this.rackAt(place));
    yield* this.listed.last;
  }

  /** The whole order at once. */
  whole(): number[] {
    const machines = [...this.listed.favoured];
    for (let place = 0; place < this.#racks.length; place++) {
      const hosts = this.#hostsInOrder(this.rackAt(place));
      for (let index = 0; index < hosts.length; index++) {
        const members = this.#machinesInOrder(hosts[index]!);
        for (let member = 0; member < members.length; member++)
          if (this.isListed[members[member]!] === 0) machines.push(members[member]!);
      }
    }
    return machines.concat(this.listed.last);
  }

  /** Supervisors of a rack in order, those in the lists left out. */
  *inRack(rack: number): Generator<number, void> {
    for (const host of this.#hostsInOrder(rack)) {
      for (const machine of this.#machinesInOrder(host)) if (this.isListed[machine] === 0) yield machine;
    }
  }

  #hostsInOrder(rack: number): Int32Array {
    const known = this.#listOfRack[rack];
    if (known !== undefined && this.#listOfRackSerial[rack] === this.#serial) return known;
    this.reach(rack);
    const { resourceCount, leftOfRack, hostsOfRack } = this.#machines;
    const hosts = hostsOfRack[rack]!;
    const sharesOf: Shares[] = [];
    const counts: number[] = [];
    const places: number[] = [];
    for (let place = 0; place < hosts.length; place++) {
      this.#share(this.#freeOfHost(hosts[place]!), 0, leftOfRack, rack * resourceCount);
      sharesOf.push({ average: shares.average, smallest: shares.smallest });
      counts.push(this.#countOfHostThen(hosts[place]!));
      places.push(place);
    }
    places.sort((a, b) => counts[b]! - counts[a]! || this.compareShares(sharesOf[a]!, sharesOf[b]!) || a - b);
    const list = new Int32Array(places.length);
    for (let place = 0; place < list.length; place++) list[place] = hosts[places[place]!]!;
    this.#listOfRack[rack] = list;
    this.#listOfRackSerial[rack] = this.#serial;
    return list;
  }

  #machinesInOrder(host: number): ArrayLike<number> & Iterable<number> {
    const members = this.#machines.machinesOfHost[host]!;
    if (members.length === 1) return members;
    const known = this.#listOfHost.get(host);
    if (known !== undefined) return known;
    const total = this.#freeOfHost(host).slice();
    const { resourceCount, left } = this.#machines;
    const items = Array.from(members, (machine) => {
      this.#share(left, machine * resourceCount, total, 0);
      const { average, smallest } = shares;
      return { machine, average, smallest, count: this.countThen(machine) };
    });
    items.sort((a, b) => b.count - a.count || this.compareShares(a, b) || a.machine - b.machine);
    const list = items.map(({ machine }) => machine);
    this.#listOfHost.set(host, list);
    return list;
  }

  #countOfHostThen(host: number): number {
    const members = this.#machines.machinesOfHost[host]!;
    if (members.length === 1) return this.countThen(members[0]!);
    return this.#savedCountOfHost.get(host) ?? this.trial.countOfHost[host]!;
  }

  /** Valid until the next call. */
  #freeOfHost(host: number): Float64Array {
    const { machinesOfHost, resourceCount } = this.#machines;
    const free = this.#hostFree.fill(0);
    const members = machinesOfHost[host]!;
    for (let index = 0; index < members.length; index++) {
      const machine = members[index]!;
      for (let resource = 0; resource < resourceCount; resource++) {
        free[resource]! += this.#machines.free(machine, resource);
      }
    }
    return free;
  }

  #compareRacks(a: number, b: number): number {
    this.steps++;
    const byCount = this.#rackCount[b]! - this.#rackCount[a]!;
    if (byCount !== 0) return byCount;
    const byAverage = this.#rackAverage[b]! - this.#rackAverage[a]!;
    const bySmallest = this.#rackSmallest[b]! - this.#rackSmallest[a]!;
    if (this.shareOrder === 'smallest-first') return bySmallest || byAverage || a - b;
    return byAverage || (this.shareOrder === 'average-only' ? 0 : bySmallest) || a - b;
  }

  /** Writes into `shares` what an item has of a total. A resource that the component does not ask for counts against it. */
  #share(item: Float64Array, at: number, total: Float64Array, totalAt: number): void {
    this.steps++;
    const memoryTotal = total[totalAt + MEMORY]!;
    const cpuTotal = total[totalAt + CPU]!;
    let sum = 0;
    let kinds = 0;
    let smallest = 1;
    if (memoryTotal > 0) {
      const share = Math.max(item[at + MEMORY]!, 0) / memoryTotal;
      sum += share;
      smallest = Math.min(smallest, share);
      kinds++;
    }
    if (cpuTotal > 0) {
      const share = Math.max(item[at + CPU]!, 0) / cpuTotal;
      sum += share;
      smallest = Math.min(smallest, share);
      kinds++;
    }
    const { resourceCount } = this.#machines;
    for (let resource = FIRST_GENERIC; resource < resourceCount; resource++) {
      const genericTotal = total[totalAt + resource]!;
      if (!(genericTotal > 0)) continue;
      const share = Math.max(item[at + resource]!, 0) / genericTotal;
      const counted = this.#asksFor(resource) ? share : -share;
      sum += counted;
      smallest = Math.min(smallest, counted);
      kinds++;
    }
    shares.average = kinds === 0 ? 100 : (sum * 100) / kinds;
    shares.smallest = smallest * 100;
  }

  #asksFor(resource: number): boolean {
    if (this.#component === NONE || this.shareOrder === 'smallest-first') return true;
    const { generic, genericCount } = this.trial.request;
    return generic[this.#component * genericCount + resource - FIRST_GENERIC]! > 0;
  }

  /** Saves what the order still needs of a supervisor that is about to change. */
  #save(machine: number): void {
    const { trial } = this;
    const { hostOf, rackOf, resourceCount, left, leftOfRack } = this.#machines;
    const host = hostOf[machine]!;
    const rack = rackOf[machine]!;
    if (this.#savedCount[machine] !== this.#serial) {
      this.#savedCount[machine] = this.#serial;
      this.#savedCountOfMachine[machine] = trial.countOfMachine[machine]!;
    }
    if (this.#machines.machinesOfHost[host]!.length > 1 && !this.#savedCountOfHost.has(host)) {
      this.#savedCountOfHost.set(host, trial.countOfHost[host]!);
    }
    if (this.#reached[rack] !== this.#serial) return;
    if (this.#savedRack[rack] !== this.#serial) {
      this.#savedRack[rack] = this.#serial;
      copy(leftOfRack, rack * resourceCount, this.#savedRackLeft, resourceCount);
    }
    if (this.#savedMachine[machine] !== this.#serial) {
      this.#savedMachine[machine] = this.#serial;
      copy(left, machine * resourceCount, this.#savedMachineLeft, resourceCount);
    }
  }
}

/** The last result of `#share`: a pair in a fixed place costs nothing where millions are computed. */
const shares: Shares = { average: 0, smallest: 0 };

function copy(from: Float64Array, at: number, to: Float64Array, count: number): void {
  for (let index = at; index < at + count; index++) to[index] = from[index]!;
}
