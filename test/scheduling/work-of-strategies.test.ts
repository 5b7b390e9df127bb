/** How the work of each strategy grows with the cluster, in operations, so that a square shows wherever it hides. */
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../src/base/index.js';
import type {
  ClusterSnapshot,
  ClusterTopology,
  PlacedWorker,
  Placement,
} from '../../src/scheduling/cluster-snapshot.js';
import { PLACERS } from '../../src/scheduling/strategies/resource-aware/placers.js';
import { STRATEGY_NAMES, strategyNamed } from '../../src/scheduling/strategies/strategies.js';
import type { Strategy } from '../../src/scheduling/strategies/strategy.js';
import { countedWork } from './counted-work.js';

const SIZES = [1, 10, 100, 1000, 10_000];
const SLOTS = 4;
/** Work of one step at the largest size over that at smaller ones. A square takes seven times as much at ten times the size. */
const MOST_GROWTH = 1.5;

/** So many executors in so many topologies, on machines with a quarter more slots and twice the room that they need. */
function cluster(
  executors: number,
  topologies: number,
  rules: ClusterTopology['rules'] = {},
): ClusterSnapshot {
  const each = Math.max(1, Math.floor(executors / topologies));
  const workers = Math.max(1, Math.ceil(each / 8));
  const machines = Math.ceil((1.25 * workers * topologies) / SLOTS) + 1;
  return {
    supervisors: Array.from({ length: machines }, (_, index) => ({
      id: `s${String(index).padStart(5, '0')}`,
      host: `h${String(index).padStart(5, '0')}`,
      rack: `r${index % 8}`,
      ports: Array.from({ length: SLOTS }, (_port, port) => 6700 + port),
      resources: { cpuPercent: 800, memoryMb: 16 * 1024 },
    })),
    topologies: Array.from({ length: topologies }, (_, index): ClusterTopology => {
      const half = Math.ceil(each / 2);
      return {
        id: `t${String(index).padStart(5, '0')}`,
        owner: `u${index % 5}`,
        workers,
        executors: Array.from({ length: each }, (_executor, task) => ({
          range: [task + 1, task + 1],
          component: task < half ? 'source' : 'sink',
        })),
        components: [
          { id: 'source', kind: 'spout' as const, resources: REQUEST, inputs: [] },
          {
            id: 'sink',
            kind: 'bolt' as const,
            resources: REQUEST,
            inputs: [{ from: 'source', grouping: 'shuffle' as const }],
          },
        ].slice(0, each === 1 ? 1 : 2),
        rules,
      };
    }),
    placement: new Map(),
  };
}

const REQUEST = { cpuPercent: 10, onHeapMb: 64, offHeapMb: 0 };

/** The three rounds whose work is counted: from nothing, after a machine was lost, and with nothing to do. */
function worksOf(strategy: Strategy, start: ClusterSnapshot): readonly number[] {
  let placement: Placement = new Map();
  const fresh = countedWork(() => (placement = strategy(start).placement));
  const lost = start.supervisors[0]!.id;
  const isLeft = ({ supervisor }: PlacedWorker): boolean => supervisor !== lost;
  const after = {
    ...start,
    supervisors: start.supervisors.slice(1),
    placement: new Map([...placement].map(([id, workers]) => [id, workers.filter(isLeft)] as const)),
  };
  const again = countedWork(() => (placement = strategy(after).placement));
  return [fresh, again, countedWork(() => strategy({ ...after, placement }))];
}

const WAYS: readonly (readonly [string, string, ClusterTopology['rules']])[] = [
  ...STRATEGY_NAMES.filter((name) => name !== 'resource-aware').map((name) => [name, name, {}] as const),
  ...Object.keys(PLACERS).map(
    (placer) => [`resource-aware, ${placer}`, 'resource-aware', { strategy: placer }] as const,
  ),
];
const ROUNDS = ['fresh', 'one machine lost', 'nothing to do'];
/** They differ from `default` in how executors and machines are ordered, which one topology shows. */
const LIKE_DEFAULT: ReadonlySet<string> = new Set(['generic', 'default-old', 'generic-old']);

const CASES = WAYS.flatMap(([title, name, rules]) => [
  { title: `${title}, one topology`, name, rules, sizes: SIZES, each: Infinity },
  ...(LIKE_DEFAULT.has(rules?.strategy ?? '')
    ? []
    : [{ title: `${title}, topologies of ten`, name, rules, sizes: SIZES.slice(1), each: 10 }]),
]);

describe('the work of', () => {
  it.each(CASES)(
    '$title is n log n for executors, and putting machines in order once for each topology',
    ({ name, rules, sizes, each }) => {
      // Operations over what is allowed: it settles, where a square would go on growing.
      const parts = sizes.map((executors) => {
        const snapshot = cluster(executors, Math.max(1, executors / each), rules);
        const [machines, topologies] = [snapshot.supervisors.length, snapshot.topologies.length];
        const allowed =
          executors * Math.log2(executors + 1) + topologies * machines * Math.log2(machines + 1);
        const works = worksOf(strategyNamed(name, compileSettings()), snapshot);
        // Every executor is looked at, so a count below is no count.
        expect(works[0]).toBeGreaterThan(executors);
        return works.map((work) => work / allowed);
      });
      for (const [round, part] of parts.at(-1)!.entries()) {
        const before = Math.max(...parts.slice(0, -1).map((one) => one[round]!));
        const what = `${ROUNDS[round]}: ${part} operations a step, ${before} in smaller clusters`;
        expect(part, what).toBeLessThan(MOST_GROWTH * before);
      }
    },
  );
});
