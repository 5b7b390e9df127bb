/**
 * Hosts and racks of supervisors by integer, in order of their names. A host is in the rack that the first of its
 * supervisors names; without one, all are in one nameless rack.
 */
import { compareText, inOrder } from '../../order.js';
import { NONE } from './amounts.js';

export interface HostsAndRacks {
  readonly hostNames: readonly string[];
  readonly indexOfHost: ReadonlyMap<string, number>;
  readonly rackNames: readonly string[];
  /** By supervisor; NONE: it is not usable. */
  readonly hostOf: Int32Array;
  readonly rackOf: Int32Array;
  /** By host. */
  readonly rackOfHost: Int32Array;
}

/** `usable` by supervisor; beyond the list there may be more, which are not. Cost: O(S), with names out of order O(S log S). */
export function hostsAndRacks(
  supervisors: readonly { readonly host: string; readonly rack?: string }[],
  usable: Uint8Array,
): HostsAndRacks {
  const hostOf = new Int32Array(usable.length).fill(NONE);
  const foundHosts = new Map<string, number>();
  const rackNameOf: string[] = [];
  for (let machine = 0; machine < supervisors.length; machine++) {
    if (usable[machine] === 0) continue;
    const { host, rack } = supervisors[machine]!;
    const found = numberOf(foundHosts, host);
    if (found === rackNameOf.length) rackNameOf.push(rack ?? '');
    else if (rackNameOf[found] === '' && rack !== undefined) rackNameOf[found] = rack;
    hostOf[machine] = found;
  }
  const foundRacks = new Map<string, number>();
  const foundRackOf = new Int32Array(rackNameOf.length);
  for (let host = 0; host < rackNameOf.length; host++)
    foundRackOf[host] = numberOf(foundRacks, rackNameOf[host]!);

  const hosts = ordered(foundHosts);
  const racks = ordered(foundRacks);
  const rackOfHost = new Int32Array(foundRackOf.length);
  for (let host = 0; host < foundRackOf.length; host++)
    rackOfHost[hosts.rank[host]!] = racks.rank[foundRackOf[host]!]!;
  const rackOf = new Int32Array(usable.length).fill(NONE);
  for (let machine = 0; machine < hostOf.length; machine++) {
    if (hostOf[machine] === NONE) continue;
    const host = hosts.rank[hostOf[machine]!]!;
    hostOf[machine] = host;
    rackOf[machine] = rackOfHost[host]!;
  }
  return {
    hostNames: hosts.names,
    indexOfHost: hosts.indexOf,
    rackNames: racks.names,
    hostOf,
    rackOf,
    rackOfHost,
  };
}

function numberOf(found: Map<string, number>, name: string): number {
  const known = found.get(name);
  if (known !== undefined) return known;
  found.set(name, found.size);
  return found.size - 1;
}

/** Names in order, and by number as found the place there. */
function ordered(found: ReadonlyMap<string, number>): {
  readonly names: readonly string[];
  readonly indexOf: ReadonlyMap<string, number>;
  readonly rank: Int32Array;
} {
  const asFound = [...found.keys()];
  const names = inOrder(asFound, compareText);
  const rank = new Int32Array(names.length);
  if (names === asFound) {
    for (let index = 0; index < rank.length; index++) rank[index] = index;
    return { names, indexOf: found, rank };
  }
  const indexOf = new Map<string, number>();
  for (let index = 0; index < rank.length; index++) {
    const name = names[index]!;
    indexOf.set(name, index);
    rank[found.get(name)!] = index;
  }
  return { names, indexOf, rank };
}
