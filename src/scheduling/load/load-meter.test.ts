import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClusterTopology, compareSlots, type Placement } from '../cluster-snapshot.js';
import { balancedStrategy } from '../strategies/balanced/balanced.js';
import { ALL_BY_TASKS } from '../strategies/testing/balanced-cluster.js';
import { LoadMeter } from './load-meter.js';

const MACHINES = 3;
const EXECUTORS = 12;
const WINDOW_MS = 60_000;
const HEARTBEAT_MS = 3000;
const ROUND_MS = 10_000;
const MINUTE_MS = 60_000;

const topology: ClusterTopology = {
  id: 't',
  workers: EXECUTORS,
  executors: Array.from({ length: EXECUTORS }, (_, index) => ({
    range: [index + 1, index + 1],
    component: 'work',
  })),
  components: [{ id: 'work', kind: 'bolt', resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 } }],
  balance: { load: 'measured' },
};

const supervisors = Array.from({ length: MACHINES }, (_, index) => ({
  id: `m${index}`,
  host: `m${index}`,
  ports: Array.from({ length: 8 }, (__, port) => port),
}));

interface Course {
  /** The part of its time in which an executor is busy. */
  readonly busy: (executor: number, minute: number) => number;
  /** Added to that in each heartbeat, evenly up to this much to either side. */
  readonly noise: number;
  readonly minutes: number;
}

interface Played {
  /** Minutes at which a worker moved, one entry a worker. */
  readonly moves: readonly number[];
  /** Executors by how often they came back to a machine that they had left. */
  readonly returns: number;
  /** Largest over mean of the true loads of machines at the end. */
  readonly unevenness: number;
}

/** Heartbeats and rounds of a cluster as its executors get busier and less busy. */
function play({ busy, noise, minutes }: Course, seed: number, isSmoothed = true): Played {
  const chance = generator(seed);
  const meter = new LoadMeter();
  const counters = new Float64Array(EXECUTORS);
  const raw = new Map<number, number>();
  const strategy = balancedStrategy({
    ...ALL_BY_TASKS,
    moveBudget: 4,
    leastGain: isSmoothed ? 0.15 : 0,
  });
  let placement: Placement = new Map();
  const moves: number[] = [];
  const visited = Array.from({ length: EXECUTORS }, (): string[] => []);
  for (let nowMs = 0; nowMs <= minutes * MINUTE_MS; nowMs += 1000) {
    const minute = nowMs / MINUTE_MS;
    if (nowMs % HEARTBEAT_MS === 0) {
      for (let executor = 0; executor < EXECUTORS; executor++) {
        const seen = busy(executor, minute) + noise * (2 * chance() - 1);
        const share = Math.min(1, Math.max(0, seen));
        raw.set(executor + 1, share);
        counters[executor]! += share * HEARTBEAT_MS;
        const place = visited[executor]!;
        const sample = { topologyId: 't', firstTask: executor + 1, incarnation: String(place.length) };
        meter.note({ ...sample, busyMs: counters[executor]!, atMs: nowMs }, WINDOW_MS);
      }
    }
    if (nowMs % ROUND_MS !== 0) continue;
    const measured = { byTask: isSmoothed ? meter.of('t') : raw, typical: 1 };
    const next = strategy({ supervisors, topologies: [{ ...topology, measured }], placement }).placement;
    for (const { supervisor, executors } of next.get('t')!) {
      for (const [first] of executors) {
        const places = visited[first - 1]!;
        if (places.at(-1) === supervisor) continue;
        if (places.length > 0) moves.push(minute);
        places.push(supervisor);
        // Its new worker counts from zero.
        counters[first - 1] = 0;
      }
    }
    placement = new Map([...next].map(([id, workers]) => [id, [...workers].sort(compareSlots)]));
  }
  const loads = supervisors.map(({ id }) =>
    (placement.get('t') ?? [])
      .filter(({ supervisor }) => supervisor === id)
      .reduce(
        (sum, { executors }) => sum + executors.reduce((all, [first]) => all + busy(first - 1, minutes), 0),
        0,
      ),
  );
  const mean = loads.reduce((sum, load) => sum + load, 0) / MACHINES;
  return {
    moves,
    returns: visited.reduce((sum, places) => sum + places.length - new Set(places).size, 0),
    unevenness: Math.max(...loads) / mean,
  };
}

/** Numbers from 0 to 1 from a seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const seeds = fc.integer({ min: 1, max: 1_000_000 });
const runs = { seed: 20_268, numRuns: 12 };

describe('placement by measured load', () => {
  it('moves nothing for noise, where unsmoothed loads would move workers all the time', () => {
    const course: Course = { busy: (executor) => 0.3 + 0.02 * executor, noise: 0.25, minutes: 40 };
    expect(play(course, 1, false).moves.length).toBeGreaterThan(100);
    fc.assert(
      fc.property(seeds, (seed) => {
        const { moves, unevenness } = play(course, seed);
        // What is measured first may differ from the even start.
        expect(moves.filter((minute) => minute > 5)).toEqual([]);
        expect(moves.length).toBeLessThanOrEqual(2);
        expect(unevenness).toBeLessThan(1.2);
      }),
      runs,
    );
  });

  it('follows a step once, within a few windows, and then rests', () => {
    // The four executors that start on one machine become busy.
    const course: Course = {
      busy: (executor, minute) => (executor % MACHINES === 0 && minute >= 10 ? 0.8 : 0.2),
      noise: 0.1,
      minutes: 40,
    };
    expect(play(course, 1, false).moves.length).toBeGreaterThan(100);
    fc.assert(
      fc.property(seeds, (seed) => {
        const { moves, returns, unevenness } = play(course, seed);
        expect(moves.length).toBeGreaterThan(0);
        expect(moves.length).toBeLessThanOrEqual(8);
        expect(moves.filter((minute) => minute < 10 || minute > 20)).toEqual([]);
        expect(returns).toBeLessThanOrEqual(2);
        expect(unevenness).toBeLessThan(1.4);
      }),
      runs,
    );
  });

  it('follows a ramp in few moves, and rests when it has ended', () => {
    const course: Course = {
      busy: (executor, minute) =>
        executor % MACHINES === 0 ? 0.2 + 0.6 * Math.min(1, Math.max(0, (minute - 5) / 20)) : 0.2,
      noise: 0.1,
      minutes: 45,
    };
    fc.assert(
      fc.property(seeds, (seed) => {
        const { moves, unevenness } = play(course, seed);
        expect(moves.length).toBeGreaterThan(0);
        expect(moves.length).toBeLessThanOrEqual(16);
        expect(moves.filter((minute) => minute > 40)).toEqual([]);
        expect(unevenness).toBeLessThan(1.4);
      }),
      runs,
    );
  });

  it('does not follow a swing that is shorter than its window', () => {
    const course: Course = {
      busy: (executor, minute) =>
        0.4 + (executor % MACHINES === 0 ? 0.3 * Math.sign(Math.sin(minute * 20)) : 0),
      noise: 0.05,
      minutes: 30,
    };
    fc.assert(
      fc.property(seeds, (seed) => {
        expect(play(course, seed).moves.filter((minute) => minute > 5)).toEqual([]);
      }),
      runs,
    );
  });
});

describe('a load meter', () => {
  const note = (meter: LoadMeter, incarnation: string, busyMs: number, atMs: number): void =>
    meter.note({ topologyId: 't', firstTask: 1, incarnation, busyMs, atMs }, WINDOW_MS);

  it('says nothing before a window has passed, and keeps what it knows when a worker starts again', () => {
    const meter = new LoadMeter();
    for (let second = 0; second < 60; second += 3) note(meter, 'a', second * 500, second * 1000);
    expect(meter.of('t')).toEqual(new Map());
    note(meter, 'a', 30_000, 60_000);
    expect(meter.of('t')).toEqual(new Map([[1, 0.5]]));
    note(meter, 'b', 0, 63_000);
    note(meter, 'b', 1500, 66_000);
    expect(meter.of('t')).toEqual(new Map([[1, 0.5]]));
    meter.forget('t');
    expect(meter.of('t')).toEqual(new Map());
  });

  it('never says that an executor is nothing, whatever its counter does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -2000, max: 20_000 }), fc.integer({ min: -2000, max: 20_000 }))),
        (steps) => {
          const meter = new LoadMeter();
          let [busyMs, atMs] = [0, 0];
          for (const [busy, elapsed] of steps) {
            note(meter, 'a', (busyMs += busy), (atMs += elapsed));
            for (const load of meter.of('t').values()) {
              expect(load).toBeGreaterThanOrEqual(0.05);
              expect(load).toBeLessThanOrEqual(1);
            }
          }
        },
      ),
      { seed: 20_269, numRuns: 300 },
    );
  });
});
