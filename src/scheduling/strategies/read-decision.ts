/**
 * What a strategy of somebody else's has returned, as a result of this scheduler's: `{ placement, reasons, keepsCapacity }`, with maps or plain
 * objects by topology id. Only the shape is checked here; whether a placement breaks a rule is `validateAssignment`'s matter.
 */
import { closestName, IsobarError } from '../../base/index.js';
import type { ExecutorRange } from '../assignment.js';
import { type ClusterSnapshot, compareSlots, type PlacedWorker } from '../cluster-snapshot.js';
import { indexExecutors, NO_EXECUTOR } from '../executor-index.js';
import { compareRanges } from '../order.js';
import type { SchedulingResult, Unplaced } from './strategy.js';

/**
 * A topology that is left out keeps what it has; executors that are left out have no slot, for the reason given.
 *
 * @throws STRATEGY_FAILED with the path of what is wrong, expected and found. Cost: O(E) besides sorting.
 */
export function readDecision(strategy: string, value: unknown, snapshot: ClusterSnapshot): SchedulingResult {
  const wrong = (where: string, expected: string, found: unknown): IsobarError =>
    new IsobarError('STRATEGY_FAILED', `the strategy "${strategy}" returned no placement`, {
      expected,
      found: shown(found),
      where,
    });
  if (!isRecord(value)) throw wrong('its result', 'an object with placement', value);
  const given = entriesOf(value['placement']);
  if (given === undefined) throw wrong('placement', 'a map or an object by topology id', value['placement']);
  const keepsCapacity = value['keepsCapacity'] ?? false;
  if (typeof keepsCapacity !== 'boolean') throw wrong('keepsCapacity', 'true or false', keepsCapacity);
  const reasons = value['reasons'] === undefined ? [] : entriesOf(value['reasons']);
  if (reasons === undefined) throw wrong('reasons', 'a map or an object by topology id', value['reasons']);
  const ids = snapshot.topologies.map(({ id }) => id);
  const known = new Set(ids);
  for (const [id, reason] of reasons)
    if (typeof reason !== 'string') throw wrong(`reasons.${id}`, 'a sentence', reason);
  const placement = new Map(snapshot.placement);
  for (const [id, workers] of given) {
    if (!known.has(id)) {
      const closest = closestName(id, ids);
      throw wrong('placement', closest === undefined ? 'topologies of the snapshot' : `"${closest}"?`, id);
    }
    if (!Array.isArray(workers)) throw wrong(`placement.${id}`, 'a list of workers', workers);
    placement.set(
      id,
      workers
        .map((worker: unknown, index) => readWorker(worker, `placement.${id}[${index}]`, wrong))
        .sort(compareSlots),
    );
  }
  const reasonOf = new Map(reasons as readonly [string, string][]);
  const unplaced = new Map<string, Unplaced>();
  for (const { id, executors } of snapshot.topologies) {
    const index = indexExecutors(executors);
    const placed = new Uint8Array(index.executors.length);
    for (const worker of placement.get(id) ?? []) {
      for (const range of worker.executors) {
        const place = index.indexOf(range);
        if (place !== NO_EXECUTOR) placed[place] = 1;
      }
    }
    const missing = index.executors.filter((_, place) => placed[place] === 0);
    const reason = reasonOf.get(id) ?? `has executors that the strategy "${strategy}" gave no slot.`;
    if (missing.length > 0) unplaced.set(id, { executors: missing, reason });
  }
  return { placement, unplaced, failures: new Map(), keepsCapacity, steps: 0 };
}

type Wrong = (where: string, expected: string, found: unknown) => IsobarError;

function readWorker(value: unknown, where: string, wrong: Wrong): PlacedWorker {
  if (!isRecord(value)) throw wrong(where, '{ supervisor, port, executors }', value);
  const { supervisor, port, executors } = value;
  if (typeof supervisor !== 'string')
    throw wrong(`${where}.supervisor`, 'the id of a supervisor', supervisor);
  if (typeof port !== 'number' || !Number.isInteger(port)) throw wrong(`${where}.port`, 'a port', port);
  if (!Array.isArray(executors)) throw wrong(`${where}.executors`, 'a list of [first, last]', executors);
  const ranges = executors.map((range: unknown, index): ExecutorRange => {
    const pair: readonly unknown[] = Array.isArray(range) ? range : [];
    const [first, last] = pair;
    if (pair.length === 2 && typeof first === 'number' && typeof last === 'number') return [first, last];
    throw wrong(`${where}.executors[${index}]`, '[first, last]', range);
  });
  return { supervisor, port, executors: ranges.sort(compareRanges) };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (value instanceof Map)
    return [...value].map(([id, one]: [unknown, unknown]) => [String(id), one] as const);
  return isRecord(value) && !Array.isArray(value) ? Object.entries(value) : undefined;
}

const MOST_SHOWN = 60;

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise';
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  return text === undefined ? typeof value : text.slice(0, MOST_SHOWN);
}
