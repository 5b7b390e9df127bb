import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS, type Settings } from '../base/index.js';
import type { Assignment } from './assignment.js';
import { computeExecutors } from './executors.js';
import { numberTasks } from './numbering.js';
import type { TopologyPlan } from './plan-topology.js';
import type { RoundInput, RoundSupervisor, RoundTopology, SchedulingOutcome } from './round-types.js';
import { clusterTopologyOf, schedulingRound } from './scheduling-round.js';

const settings: Settings = {
  ...DEFAULT_SETTINGS,
  'topology.worker-timeout': 30_000,
  'topology.worker-launch-timeout': 120_000,
};

function planOf(workers: number, counts: Readonly<Record<string, number>>): TopologyPlan {
  const tasks = numberTasks(Object.entries(counts));
  const executors = computeExecutors(tasks, new Map(Object.entries(counts)));
  return { topologyWorkers: workers, tasks, executors, components: [], ackers: 0, adjustments: [] };
}

function topology(id: string, plan: TopologyPlan, more: Partial<RoundTopology> = {}): RoundTopology {
  return { id, plan, settings, stored: undefined, lastHeartbeatMs: () => undefined, ...more };
}

function machines(count: number, ports: number): RoundSupervisor[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `s${index}`,
    host: `h${index}`,
    ports: Array.from({ length: ports }, (_unused, port) => 6700 + port),
  }));
}

function round(topologies: readonly RoundTopology[], more: Partial<RoundInput> = {}): SchedulingOutcome {
  return schedulingRound({ nowMs: 1000, supervisors: machines(2, 2), strategy: 'even', topologies, ...more });
}

function assignmentOf({ topologies }: SchedulingOutcome, id: string): Assignment {
  const outcome = topologies.find(({ topologyId }) => topologyId === id);
  if (outcome?.kind !== 'changed') throw new Error(`${id} is ${outcome?.kind ?? 'absent'}, not changed`);
  return outcome.assignment;
}

const plan = planOf(2, { count: 3, words: 1 });
const first = assignmentOf(round([topology('t', plan)]), 't');

describe('a scheduling round', () => {
  it('gives a new topology its first assignment, with hosts, start times and numbering', () => {
    expect(first).toEqual({
      topologyId: 't',
      version: 1,
      tasks: [
        { component: 'count', first: 1, last: 3 },
        { component: 'words', first: 4, last: 4 },
      ],
      slots: [
        {
          supervisor: 's0',
          host: 'h0',
          port: 6700,
          executors: [
            [1, 1],
            [3, 3],
          ],
          startedMs: 1000,
        },
        {
          supervisor: 's1',
          host: 'h1',
          port: 6700,
          executors: [
            [2, 2],
            [4, 4],
          ],
          startedMs: 1000,
        },
      ],
    });
  });

  it('changes nothing while all executors live or are still being launched', () => {
    const launching = round([topology('t', plan, { stored: first })], { nowMs: 120_999 });
    expect(launching.topologies[0]?.kind).toBe('unchanged');
    const living = round([topology('t', plan, { stored: first, lastHeartbeatMs: () => 470_001 })], {
      nowMs: 500_000,
    });
    expect(living.topologies[0]?.kind).toBe('unchanged');
    expect(living.log).toEqual([]);
  });

  it('moves only the executors of a silent worker, and hides its slot for this round', () => {
    const silent = topology('t', plan, {
      stored: first,
      lastHeartbeatMs: (task) => (task % 2 === 1 ? 499_000 : 470_000),
    });
    const outcome = round([silent], { nowMs: 500_000 });
    const { version, slots } = assignmentOf(outcome, 't');
    expect(version).toBe(2);
    expect(slots[0]).toEqual(first.slots[0]);
    expect(slots[1]).toEqual({
      supervisor: 's0',
      host: 'h0',
      port: 6701,
      executors: [
        [2, 2],
        [4, 4],
      ],
      startedMs: 500_000,
    });
    const [changed] = outcome.topologies;
    expect(changed?.dead.map(({ range, cause }) => [range[0], cause])).toEqual([
      [2, 'silent'],
      [4, 'silent'],
    ]);
    expect(changed).toMatchObject({
      kind: 'changed',
      notify: ['s0', 's1'],
      started: [
        [2, 2],
        [4, 4],
      ],
    });
    expect(outcome.log.map(({ event }) => event)).toEqual(['executors.died', 'assignment.changed']);
  });

  it('moves the executors of a machine that is gone at once, and those of a supervisor that is away only when silent', () => {
    const stored = topology('t', plan, { stored: first, lastHeartbeatMs: () => 2000 });
    const [s0, s1] = machines(2, 2);
    const gone = round([stored], { nowMs: 2500, supervisors: [s0!, { ...s1!, gone: true }] });
    expect(assignmentOf(gone, 't').slots.map(({ supervisor, port }) => `${supervisor}:${port}`)).toEqual([
      's0:6700',
      's0:6701',
    ]);
    expect(gone.topologies[0]?.dead.map(({ cause }) => cause)).toEqual(['gone', 'gone']);
    const away = round([stored], { nowMs: 2500, supervisors: [s0!] });
    expect(away.topologies[0]?.kind).toBe('unchanged');
    const later = round([stored], { nowMs: 200_000, supervisors: [s0!] });
    expect(later.topologies[0]?.dead).toHaveLength(4);
  });

  it('asks for another round when executors wait for a slot that was only hidden', () => {
    const one = planOf(1, { words: 1 });
    const supervisors = machines(1, 1);
    const stored = assignmentOf(round([topology('t', one)], { supervisors }), 't');
    const dying = round([topology('t', one, { stored })], { supervisors, nowMs: 121_000 });
    expect(dying.runAgain).toBe(true);
    const [outcome] = dying.topologies;
    expect(outcome?.unplacedReason).toMatch(
      /^Topology "t" needs 1 slot; 0 are free\..* 1 more slot is held back/,
    );
    const empty = assignmentOf(dying, 't');
    expect(empty.slots).toEqual([]);
    const next = round([topology('t', one, { stored: empty })], { supervisors, nowMs: 121_001 });
    expect(assignmentOf(next, 't')).toMatchObject({
      version: 3,
      slots: [{ port: 6700, startedMs: 121_001 }],
    });
    expect(next.runAgain).toBe(false);
  });

  it('uses the slots that are free when they are fewer than the workers wanted', () => {
    const outcome = round([topology('t', planOf(9, { words: 9 }))], { supervisors: machines(1, 2) });
    expect(assignmentOf(outcome, 't').slots.map(({ executors }) => executors.length)).toEqual([5, 4]);
    expect(outcome.topologies[0]?.unplacedReason).toBeNull();
  });

  it('says what is missing when there is no slot at all, and is content with that next time', () => {
    const outcome = round([topology('t', plan)], { supervisors: [] });
    expect(outcome.topologies[0]).toMatchObject({ kind: 'changed', unplaced: plan.executors });
    expect(outcome.log.at(-1)).toMatchObject({ level: 'warn', event: 'executors.unplaced' });
    expect(outcome.runAgain).toBe(false);
    const again = round([topology('t', plan, { stored: assignmentOf(outcome, 't') })], { supervisors: [] });
    expect(again.topologies[0]).toMatchObject({ kind: 'unchanged', unplaced: plan.executors });
  });

  it('lets lost executors join live workers, unless it is to be as Storm', () => {
    const stored: Assignment = {
      ...first,
      slots: [first.slots[0]!, { ...first.slots[1]!, executors: [[4, 4]] }],
    };
    const input = [topology('t', plan, { stored, lastHeartbeatMs: () => 1000 })];
    expect(assignmentOf(round(input), 't').slots[1]?.executors).toEqual([
      [2, 2],
      [4, 4],
    ]);
    const asStorm = round(input, { compatibility: true });
    expect(asStorm.topologies[0]).toMatchObject({ kind: 'unchanged', unplaced: [{ range: [2, 2] }] });
  });

  it('weighs executors as declared, and all alike under compatibility with Flink', () => {
    const loadBy = (own: Settings): unknown =>
      clusterTopologyOf({ ...topology('t', plan), settings: own }).balance?.load;
    expect(loadBy(settings)).toBe('declared');
    expect(loadBy({ ...settings, 'load-balance.load': 'measured' })).toBe('measured');
    const asFlink = { ...settings, 'scheduling.compatibility': ['flink'] };
    expect(loadBy({ ...asFlink, 'load-balance.load': 'measured' })).toBe('executors');
  });

  it('isolates a topology that fails: it keeps its slots, and the others are placed', () => {
    const broken = topology('a', plan, {
      stored: { ...first, topologyId: 'a' },
      lastHeartbeatMs: () => {
        throw new Error('no heartbeats');
      },
    });
    const damaged = {
      ...topology('b', plan),
      stored: { slots: [{ supervisor: 's1', port: 6701 }] } as unknown as Assignment,
    };
    const outcome = round([topology('t', planOf(1, { words: 1 })), broken, damaged]);
    expect(outcome.topologies.map(({ topologyId, kind }) => [topologyId, kind])).toEqual([
      ['a', 'failed'],
      ['b', 'failed'],
      ['t', 'changed'],
    ]);
    expect(outcome.topologies[0]).toMatchObject({ error: { code: 'INTERNAL', message: 'no heartbeats' } });
    expect(assignmentOf(outcome, 't').slots).toMatchObject([{ supervisor: 's0', port: 6701 }]);
    expect(outcome.log.filter(({ event }) => event === 'scheduling.failed')).toHaveLength(2);
  });

  it('refuses what a faulty strategy returns, and keeps what was', () => {
    const stored = topology('t', plan, { stored: first });
    const lost = round([stored], {
      strategy: () => ({ placement: new Map(), unplaced: new Map(), failures: new Map(), steps: 0 }),
    });
    expect(lost.topologies[0]).toMatchObject({ kind: 'failed', error: { code: 'ASSIGNMENT_INVALID' } });
    const throwing = round([stored], {
      strategy: () => {
        throw new Error('out of ideas');
      },
    });
    expect(throwing.topologies[0]).toMatchObject({ kind: 'failed', error: { message: 'out of ideas' } });
  });

  it('gives the same outcome byte for byte for the same input in any order', () => {
    const shape = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(6), fc.nat(6));
    fc.assert(
      fc.property(
        fc.array(shape, { maxLength: 5 }),
        fc.nat(5),
        fc.nat(4),
        fc.nat(40),
        (shapes, count, ports, silent) => {
          const supervisors = machines(count, ports);
          const fresh = shapes.map(([workers, a, b], index) =>
            topology(`t${index}`, planOf(workers, { a, b })),
          );
          const start = round(fresh, { supervisors });
          const stored = fresh.map((one) =>
            topology(one.id, one.plan, {
              stored: assignmentOf(start, one.id),
              lastHeartbeatMs: (task) => ((task + silent) % 3 === 0 ? 1 : 300_000),
            }),
          );
          const more = { nowMs: 300_001, supervisors };
          const outcome = round(stored, more);
          const turned = round([...stored].reverse(), {
            ...more,
            supervisors: [...supervisors]
              .reverse()
              .map((one) => ({ ...one, ports: [...one.ports].reverse() })),
          });
          expect(JSON.stringify(turned)).toBe(JSON.stringify(outcome));
          expect(outcome.topologies.every(({ kind }) => kind !== 'failed')).toBe(true);
          // Nothing is lost: each executor has a slot or is reported.
          for (const { topologyId, unplaced } of outcome.topologies) {
            const { plan: wanted, stored: before } = stored.find(({ id }) => id === topologyId)!;
            const result = outcome.topologies.find((one) => one.topologyId === topologyId);
            const { slots } = result?.kind === 'changed' ? result.assignment : before!;
            const known = [
              ...slots.flatMap(({ executors }) => executors.map(String)),
              ...unplaced.map(({ range }) => String(range)),
            ];
            expect(known.sort()).toEqual(wanted.executors.map(({ range }) => String(range)).sort());
          }
        },
      ),
      { seed: 5 },
    );
  });

  it('looks at every executor once, from 1 to 60,000 of them', () => {
    for (const executors of [1, 10, 100, 1000, 10_000, 60_000]) {
      const many = planOf(Math.ceil(executors / 20), { count: executors });
      const supervisors = machines(Math.ceil(executors / 40), 4);
      const stored = assignmentOf(round([topology('t', many)], { supervisors }), 't');
      let looks = 0;
      const lastHeartbeatMs = (): number => {
        looks++;
        return 300_000;
      };
      const outcome = round([topology('t', many, { stored, lastHeartbeatMs })], {
        supervisors,
        nowMs: 300_000,
      });
      expect(outcome.topologies[0]?.kind).toBe('unchanged');
      expect(looks).toBe(executors);
    }
  });
});
