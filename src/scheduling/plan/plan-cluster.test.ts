import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slotKey } from '../cluster-snapshot.js';
import { schedulingRound } from '../scheduling-round.js';
import { STRATEGY_NAMES, strategyNamed } from '../strategies/strategies.js';
import { addSupervisors, type ImaginedCluster, killWorkers, removeSupervisors } from './imagined-cluster.js';
import { type ClusterPlan, planCluster } from './plan-cluster.js';
import { chain, cluster, machines, NOW_MS } from './testing/clusters.js';

const OPTIONS = { strategy: 'balanced', maxRounds: 100 };
const words = chain('words', { source: 2, map: 4, sink: 6 });
const three = cluster(machines([3, 3, 3]), [words]);

/** The cluster as it runs after a plan. */
function running(base: ImaginedCluster, plan: ClusterPlan): ImaginedCluster {
  const planned = new Map(plan.topologies.map((one) => [one.id, one.planned]));
  return {
    ...base,
    nowMs: base.nowMs + 1_000_000,
    topologies: base.topologies.map((one) => ({ ...one, stored: planned.get(one.id) })),
  };
}

function loads({ after }: ClusterPlan): Record<string, number> {
  return Object.fromEntries(after.machines.map(({ id, load }) => [id, load]));
}

describe('planCluster', () => {
  it('spreads 2, 4 and 6 executors as 4/4/4 and says that no placement is better', () => {
    const plan = planCluster(three, OPTIONS);
    expect(loads(plan)).toEqual({ m1: 4, m2: 4, m3: 4 });
    expect(plan.after.lowestMaxLoad).toBe(4);
    expect(plan).toMatchObject({ rounds: 1, isSettled: true, lacks: [] });
  });

  it('changes nothing about what runs as planned', () => {
    const again = planCluster(running(three, planCluster(three, OPTIONS)), OPTIONS);
    expect(again).toMatchObject({ rounds: 0, isSettled: true, moves: [] });
  });

  it('shows a lost machine as 6/6 with the machine as the reason, and its return as two moves for balance', () => {
    const before = running(three, planCluster(three, OPTIONS));
    const lost = planCluster(removeSupervisors(before, ['m3']), OPTIONS, before);
    expect(loads(lost)).toEqual({ m1: 6, m2: 6 });
    expect(lost.before.machines.map(({ load }) => load)).toEqual([4, 4, 4]);
    expect(new Set(lost.moves.map(({ left }) => left))).toEqual(new Set(['machine-gone']));
    expect(lost.moves.every(({ from }) => from?.supervisor === 'm3')).toBe(true);

    const twoLeft = running(cluster(machines([3, 3]), [words]), lost);
    const back = planCluster(addSupervisors(twoLeft, machines([3, 3, 3]).slice(2)), OPTIONS, twoLeft);
    expect(loads(back)).toEqual({ m1: 4, m2: 4, m3: 4 });
    const moved = back.moves.flatMap(({ round, executors }) =>
      executors.map(({ range }) => `${round} ${range[0]}`),
    );
    expect(new Set(moved).size).toBe(moved.length);
    expect(back.moves.map(({ left, chosen, to }) => [left, chosen, to?.supervisor])).toEqual([
      ['more-even', 'least-loaded', 'm3'],
      ['more-even', 'least-loaded', 'm3'],
    ]);
  });

  it('says of a worker that is given up for another topology, and of one that is added later, why', () => {
    const big = chain('big', { source: 1, map: 6 });
    const alone = cluster(machines([3, 3]), [big]);
    const full = running(alone, planCluster(alone, OPTIONS));
    const both = cluster(machines([3, 3]), [full.topologies[0]!, chain('small', { other: 1 })]);
    const plan = planCluster({ ...full, topologies: both.topologies }, OPTIONS);
    const why = ({ moves }: ClusterPlan): string[] =>
      moves.map(({ topologyId, left, chosen }) => `${topologyId} ${left} ${chosen}`);
    expect(why(plan)).toEqual(['big slot-given joins-worker', 'small null least-loaded']);
    const after = running({ ...full, topologies: both.topologies }, plan);
    const more = planCluster(addSupervisors(after, machines([3, 3, 1]).slice(2)), OPTIONS, after);
    expect(why(more)).toContain('big spreads-out least-loaded');
  });

  it('places what a silent worker had elsewhere, with that as the reason', () => {
    const before = running(three, planCluster(three, OPTIONS));
    const slot = before.topologies[0]!.stored!.slots[0]!;
    const plan = planCluster(killWorkers(before, [{ machine: slot.host, port: slot.port }]), OPTIONS, before);
    const moved = plan.moves.filter(({ left }) => left === 'worker-silent');
    expect(moved.map(({ from }) => from && slotKey(from))).toEqual([slotKey(slot)]);
    expect(plan.lacks).toEqual([]);
  });

  it('decides what a round of Nimbus decides, for every strategy and any cluster', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }),
        fc.array(
          fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 5 }), { minKeys: 1 }),
          { maxLength: 3 },
        ),
        fc.constantFrom(...STRATEGY_NAMES),
        (slots, counts, strategy) => {
          const base = cluster(
            machines(slots, 2),
            counts.map((one, index) => chain(`t${index}`, one)),
          );
          const plan = planCluster(base, { strategy, maxRounds: 1 });
          const round = schedulingRound({
            nowMs: NOW_MS,
            supervisors: base.supervisors,
            topologies: base.topologies.map((one) => ({ ...one, lastHeartbeatMs: () => NOW_MS })),
            strategy: strategyNamed(strategy, base.settings),
          });
          const assigned = round.topologies.map((one) =>
            one.kind === 'changed' ? one.assignment : undefined,
          );
          expect(plan.topologies.map(({ planned }) => planned)).toEqual(assigned);
          // Each executor has a place, or is told to have none.
          const placed = plan.after.executors;
          const lacking = plan.lacks.reduce((sum, { executors }) => sum + executors.length, 0);
          expect(placed + lacking).toBe(
            base.topologies.reduce((sum, one) => sum + one.plan.executors.length, 0),
          );
          expect(plan.after.machineLoad.max).toBeGreaterThanOrEqual(plan.after.lowestMaxLoad - 1e-9);
        },
      ),
      { seed: 51_265, numRuns: 150 },
    );
  });

  it('says of a cluster without machines that it is empty, and what each topology needs', () => {
    const plan = planCluster(cluster([], [words]), OPTIONS);
    expect(plan.warnings[0]).toMatchObject({ rule: 'empty-cluster' });
    expect(plan.lacks).toMatchObject([
      { topologyId: 'words', need: { slots: 1 }, have: { slots: 0 }, best: null, rule: 'no-supervisor' },
    ]);
    expect(planCluster(cluster([], []), OPTIONS).warnings.map(({ rule }) => rule)).toEqual([
      'empty-cluster',
      'empty-cluster',
    ]);
  });

  it('names need, have, best machine and the rule that failed where resources are short', () => {
    const heavy = chain('heavy', { source: 90 });
    const huge = (component: (typeof heavy.plan.components)[number]) => ({
      ...component,
      resources: { cpuPercent: 1, onHeapMb: 5000, offHeapMb: 0 },
    });
    const plan = planCluster(cluster(machines([4, 4]), [heavy]), {
      strategy: 'resource-aware',
      maxRounds: 5,
    });
    const [lack] = plan.lacks;
    expect(lack).toMatchObject({
      topologyId: 'heavy',
      need: { cpuPercent: 900 },
      have: { cpuPercent: 800 },
      best: { machine: 'm1', have: { cpuPercent: 400 } },
      rule: 'cluster-total',
    });
    const one = chain('one', { source: 1 });
    const big = { ...one, plan: { ...one.plan, components: one.plan.components.map(huge) } };
    const [other] = planCluster(cluster(machines([4, 4]), [big]), {
      strategy: 'resource-aware',
      maxRounds: 5,
    }).lacks;
    expect(other).toMatchObject({ component: 'source', need: { memoryMb: 5000 }, best: { machine: 'm1' } });
  });

  it('makes no more rounds than allowed and says so', () => {
    const before = running(cluster(machines([12]), [chain('t', { a: 12 })]), {
      ...planCluster(cluster(machines([12]), [chain('t', { a: 12 })]), OPTIONS),
    });
    const wider = addSupervisors(before, machines([12, 12, 12]).slice(1));
    const short = planCluster(wider, { ...OPTIONS, maxRounds: 1 });
    expect(short).toMatchObject({ rounds: 1, isSettled: false });
    expect(short.warnings.map(({ rule }) => rule)).toContain('not-settled');
    expect(loads(planCluster(wider, OPTIONS))).toEqual({ m1: 4, m2: 4, m3: 4 });
  });

  it('warns of hot machines, single points of failure and a mode that the strategy does not read', () => {
    const mode = chain('t', { a: 8 }, { 'load-balance.mode': 'tasks', 'topology.workers': 1 });
    const plan = planCluster(cluster(machines([4, 4]), [mode]), { ...OPTIONS, strategy: 'even' });
    expect(plan.warnings.map(({ rule }) => rule)).toEqual(
      expect.arrayContaining(['single-point-of-failure', 'mode-ignored', 'heavy-worker']),
    );
    const skewed = chain('s', { a: 8 }, { 'load-balance.mode': 'none' });
    const hot = planCluster(cluster(machines([8, 8]), [skewed]), OPTIONS);
    expect(hot.warnings.map(({ rule, subject }) => [rule, subject])).toContainEqual(['hot-machine', 'm1']);
  });
});
