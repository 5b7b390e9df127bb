/**
 * Hours of a cluster with several topologies, by a virtual clock: heartbeats with noise, swings, steps; placement goes by what is
 * measured, as in Nimbus.
 */
import { describe, expect, it } from 'vitest';
import { type ClusterTopology, compareSlots, type Placement } from '../cluster-snapshot.js';
import { balancedStrategy } from '../strategies/balanced/balanced.js';
import { ALL_BY_TASKS } from '../strategies/testing/balanced-cluster.js';
import { typicalLoad } from './executor-loads.js';
import { LoadMeter } from './load-meter.js';

const WINDOW_MS = 60_000;
const HEARTBEAT_MS = 3000;
const ROUND_MS = 10_000;
const MINUTE_MS = 60_000;
const LEAST_GAIN = 0.15;
const MOVE_BUDGET = 4;

/** Three topologies: many light executors two by two in workers, a few heavy ones, and one with a busy component. */
const SHAPES: Readonly<Record<string, { readonly workers: number; readonly parts: readonly number[] }>> = {
  clicks: { workers: 6, parts: [4, 6] },
  orders: { workers: 4, parts: [2, 4, 4] },
  audit: { workers: 3, parts: [3] },
};
const MACHINES = 4;

const topologies: readonly ClusterTopology[] = Object.entries(SHAPES).map(([id, { workers, parts }]) => {
  let task = 0;
  return {
    id,
    workers,
    executors: parts.flatMap((count, part) =>
      Array.from({ length: count }, () => {
        task++;
        return { range: [task, task] as const, component: `c${part}` };
      }),
    ),
    components: parts.map((_, part) => ({
      id: `c${part}`,
      kind: 'bolt' as const,
      resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
    })),
    balance: { load: 'measured' as const },
  };
});

const supervisors = Array.from({ length: MACHINES }, (_, index) => ({
  id: `m${index}`,
  host: `m${index}`,
  ports: Array.from({ length: 8 }, (__, port) => port),
}));

/** The part of its time in which an executor is busy, by topology, component, number of the executor and minute. */
type Busy = (topology: string, component: string, task: number, minute: number) => number;

interface Played {
  /** Minutes at which a worker moved, one entry a worker. */
  readonly moves: readonly number[];
  /** Largest over mean of the true loads of machines at a minute, for the placement of that minute or of another one. */
  readonly unevenness: (minute: number, placedAt?: number) => number;
}

function play(busy: Busy, noise: number, minutes: number, seed: number): Played {
  const chance = generator(seed);
  const meter = new LoadMeter();
  const strategy = balancedStrategy({ ...ALL_BY_TASKS, moveBudget: MOVE_BUDGET, leastGain: LEAST_GAIN });
  const executors = topologies.flatMap(({ id, executors: own }) =>
    own.map(({ range: [task], component }) => ({ id, task, component, busyMs: 0, incarnation: 0 })),
  );
  let placement: Placement = new Map();
  const moves: number[] = [];
  const history: (readonly [minute: number, placement: Placement])[] = [];
  for (let nowMs = 0; nowMs <= minutes * MINUTE_MS; nowMs += 1000) {
    const minute = nowMs / MINUTE_MS;
    if (nowMs % HEARTBEAT_MS === 0) {
      for (const one of executors) {
        const seen = busy(one.id, one.component, one.task, minute) + noise * (2 * chance() - 1);
        one.busyMs += Math.min(1, Math.max(0, seen)) * HEARTBEAT_MS;
        const sample = { topologyId: one.id, firstTask: one.task, incarnation: String(one.incarnation) };
        meter.note({ ...sample, busyMs: one.busyMs, atMs: nowMs }, WINDOW_MS);
      }
    }
    if (nowMs % ROUND_MS !== 0) continue;
    const known = topologies.map((one) => ({ ...one, byTask: meter.of(one.id) }));
    const typical = typicalLoad(known);
    const measured = known.map(({ byTask, ...one }) => ({ ...one, measured: { byTask, typical } }));
    const next = strategy({ supervisors, topologies: measured, placement }).placement;
    for (const { id } of topologies) {
      const before = new Set(
        (placement.get(id) ?? []).map((worker) => worker.supervisor + String(worker.executors)),
      );
      for (const worker of next.get(id) ?? []) {
        if (placement.size === 0 || before.has(worker.supervisor + String(worker.executors))) continue;
        moves.push(minute);
        for (const [first] of worker.executors) {
          const one = executors.find((executor) => executor.id === id && executor.task === first)!;
          // Its new worker counts from zero.
          Object.assign(one, { busyMs: 0, incarnation: one.incarnation + 1 });
        }
      }
    }
    placement = new Map([...next].map(([id, workers]) => [id, [...workers].sort(compareSlots)]));
    history.push([minute, placement]);
  }
  return {
    moves,
    unevenness: (minute, placedAt = minute) => {
      const [, then] = history.findLast(([at]) => at <= placedAt)!;
      const loads = supervisors.map((machine) =>
        executors.reduce((sum, { id, task, component }) => {
          const worker = then.get(id)!.find((one) => one.executors.some(([first]) => first === task))!;
          return worker.supervisor === machine.id ? sum + busy(id, component, task, minute) : sum;
        }, 0),
      );
      return Math.max(...loads) / (loads.reduce((sum, load) => sum + load, 0) / MACHINES);
    },
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

const base: Busy = (topology, component) =>
  topology === 'audit' ? 0.6 : component === 'c0' ? 0.15 : topology === 'orders' ? 0.35 : 0.3;

describe('placement of several topologies by measured load, over hours', () => {
  it('rests however noisy heartbeats are', () => {
    const { moves, unevenness } = play(base, 0.3, 90, 3);
    expect(moves.length).toBeLessThanOrEqual(2);
    expect(moves.filter((minute) => minute > 10)).toEqual([]);
    expect(unevenness(90)).toBeLessThan(1.2);
  });

  it.each([1, 4, 8, 20])(
    'follows a swing of %s minutes at most a few times, and is never far from even',
    (period) => {
      const swing: Busy = (topology, component, task, minute) =>
        base(topology, component, task, minute) +
        (topology === 'clicks' && task % 3 === 0
          ? 0.35 * (Math.sin((2 * Math.PI * minute) / period) > 0 ? 1 : -0.6)
          : 0);
      for (const seed of [2, 3]) {
        const { moves, unevenness } = play(swing, 0.1, 120, seed);
        // Without slower smoothing for what turns to and fro the swing of four minutes makes 53 moves.
        expect(moves.length).toBeLessThanOrEqual(14);
        for (let minute = 15; minute <= 120; minute += 15) expect(unevenness(minute)).toBeLessThan(1.35);
      }
    },
  );

  it('follows a step of one component within some windows, and then rests', () => {
    const step: Busy = (topology, component, task, minute) =>
      topology === 'clicks' && component === 'c1' && task > 6 && minute >= 30
        ? 0.9
        : base(topology, component, task, minute);
    for (const seed of [1, 2]) {
      const { moves, unevenness } = play(step, 0.1, 90, seed);
      const late = moves.filter((minute) => minute >= 30);
      expect(late.length).toBeGreaterThan(0);
      expect(late.length).toBeLessThanOrEqual(8);
      expect(late.filter((minute) => minute > 38)).toEqual([]);
      expect(unevenness(90, 29)).toBeGreaterThan(1.3);
      expect(unevenness(90)).toBeLessThan(1.2);
    }
  });
});
