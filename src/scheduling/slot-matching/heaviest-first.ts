/** The order in which requests and groups are dealt out: by load, and as listed among equals. */

/** Numbers of the loads, the heaviest first, as listed among equals. Cost: O(L + D log D) for D different ones of L loads. */
export function heaviestFirst(loads: Float64Array): Int32Array {
  const order = new Int32Array(loads.length);
  if (isInOrder(loads)) {
    for (let index = 0; index < order.length; index++) order[index] = index;
    return order;
  }
  // Counting sort: loads are mostly task counts, of which few differ.
  const numberOf = new Map<number, number>();
  const numbers = new Int32Array(loads.length);
  const counts: number[] = [];
  for (let index = 0; index < loads.length; index++) {
    const load = loads[index]!;
    let number = numberOf.get(load);
    if (number === undefined) {
      number = counts.length;
      numberOf.set(load, number);
      counts.push(0);
    }
    numbers[index] = number;
    counts[number]!++;
  }
  // By number: the place of the next load that has it.
  const places = new Int32Array(counts.length);
  let place = 0;
  for (const load of Float64Array.from(numberOf.keys()).sort().reverse()) {
    const number = numberOf.get(load)!;
    places[number] = place;
    place += counts[number]!;
  }
  for (let index = 0; index < loads.length; index++) order[places[numbers[index]!]!++] = index;
  return order;
}

function isInOrder(loads: Float64Array): boolean {
  for (let index = 1; index < loads.length; index++) if (loads[index - 1]! < loads[index]!) return false;
  return true;
}
