/** The slots of a list of workers, side by side in arrays. Made once for a list that is handed from round to round. */
import { compareSlots, type PlacedWorker } from './cluster-snapshot.js';
import { inOrder } from './order.js';

/** Workers in order of supervisor and port. */
export interface SlotList {
  readonly workers: readonly PlacedWorker[];
  /** Their supervisors, ascending. */
  readonly supervisors: readonly string[];
  /** Workers of supervisor i: from `firstWorker[i]` to before `firstWorker[i + 1]`. */
  readonly firstWorker: Int32Array;
  /** By worker. */
  readonly ports: Int32Array;
}

const KNOWN = new WeakMap<readonly PlacedWorker[], SlotList>();

/** Cost: O(W) for workers in order that were not seen before, else O(1). */
export function slotList(unordered: readonly PlacedWorker[]): SlotList {
  const known = KNOWN.get(unordered);
  if (known !== undefined) return known;
  const workers = inOrder(unordered, compareSlots);
  const supervisors: string[] = [];
  const firsts: number[] = [];
  const ports = new Int32Array(workers.length);
  for (let worker = 0; worker < workers.length; worker++) {
    const { supervisor, port } = workers[worker]!;
    ports[worker] = port;
    if (supervisor === supervisors.at(-1)) continue;
    supervisors.push(supervisor);
    firsts.push(worker);
  }
  firsts.push(workers.length);
  const list = { workers, supervisors, firstWorker: Int32Array.from(firsts), ports };
  KNOWN.set(unordered, list);
  return list;
}
