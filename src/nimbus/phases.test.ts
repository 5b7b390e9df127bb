import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  FoldedHeartbeat,
  SlotReport,
  TaskReport,
  TopologyPhase,
  WorkerHeartbeat,
} from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { ComponentDescription, TopologyDescription } from '../topology/index.js';
import { advancePhase, type PhaseInput } from './phases.js';

const ACTIVE: TopologyPhase = { kind: 'active' };
const STAGES = [['split'], ['count']];

function component(id: string, source: string | null): ComponentDescription {
  return {
    id,
    kind: source === null ? 'spout' : 'bolt',
    parallelism: 1,
    tasks: null,
    streams: [],
    inputs: [],
    subscriptions:
      source === null ? [] : [{ input: 'default', source, stream: 'default', grouping: { kind: 'shuffle' } }],
    stateful: false,
    movable: false,
    tickMs: null,
    manual: false,
    unordered: false,
  };
}

/** Tasks 1 (acker), 2 and 3 (lines), 4 (split), 5 (count); worker a holds 1, 2, 4 and worker b holds 3, 5. */
const DESCRIPTION: TopologyDescription = {
  format: 1,
  name: 'words',
  settings: {},
  components: [component('lines', null), component('split', 'lines'), component('count', 'split')],
  warnings: [],
};
const TASKS = [
  { component: '__acker', first: 1, last: 1 },
  { component: 'lines', first: 2, last: 3 },
  { component: 'split', first: 4, last: 4 },
  { component: 'count', first: 5, last: 5 },
];
const ASSIGNMENT: Assignment = {
  topologyId: 'words-1',
  version: 4,
  tasks: TASKS,
  slots: [
    {
      supervisor: 's1',
      host: 'h',
      port: 1,
      startedMs: 0,
      executors: [
        [1, 1],
        [2, 2],
        [4, 4],
      ],
    },
    {
      supervisor: 's1',
      host: 'h',
      port: 2,
      startedMs: 0,
      executors: [
        [3, 3],
        [5, 5],
      ],
    },
  ],
};

function report(task: number, parts: Partial<TaskReport> = {}): TaskReport {
  const component = TASKS.find(({ first, last }) => first <= task && task <= last)?.component ?? '';
  return {
    task,
    component,
    emitted: 0,
    transferred: 0,
    executed: 0,
    acked: 0,
    failed: 0,
    replayed: 0,
    deadLetters: 0,
    unreplayable: 0,
    queued: 0,
    pending: 0,
    ended: false,
    stopped: false,
    generation: 1,
    ...parts,
  };
}

function slot(port: number, tasks: readonly TaskReport[], parts: Partial<WorkerHeartbeat> = {}): SlotReport {
  const heartbeat: WorkerHeartbeat = {
    workerId: `w${port}`,
    topologyId: 'words-1',
    supervisorId: 's1',
    port,
    generation: 1,
    pid: 1,
    startedMs: 0,
    assignmentVersion: 4,
    ready: true,
    sequence: 1,
    cpuMicros: 0,
    rssBytes: 0,
    threads: [],
    tasks,
    components: [],
    errors: [],
    lostStates: [],
    oldestPending: null,
    deadLetterFiles: [],
    ...parts,
  };
  return {
    port,
    state: 'running',
    topologyId: 'words-1',
    workerId: `w${port}`,
    pid: 1,
    restarts: 0,
    lastProblem: null,
    heartbeat,
    heartbeatMs: 0,
  };
}

function heartbeats(...slots: SlotReport[]): readonly FoldedHeartbeat[] {
  return [{ supervisorId: 's1', pid: 1, sequence: 1, slots, lastReports: [] }];
}

/** All tasks in the same condition, except those given. */
function reports(parts: Partial<TaskReport>, others: Readonly<Record<number, Partial<TaskReport>>> = {}) {
  const of = (task: number): TaskReport => report(task, { ...parts, ...others[task] });
  return heartbeats(slot(1, [of(2), of(4)]), slot(2, [of(3), of(5)]));
}

function advance(phase: TopologyPhase, parts: Partial<PhaseInput>): TopologyPhase {
  return advancePhase({
    topologyId: 'words-1',
    phase,
    description: DESCRIPTION,
    plan: { tasks: TASKS, ackers: 1 },
    assignment: ASSIGNMENT,
    heartbeats: [],
    isAtRest: false,
    nowMs: 1000,
    drainTimeoutMs: 500,
    ...parts,
  });
}

describe('an active topology', () => {
  const ended = { ended: true, pending: 0 };

  it('begins to end when every spout task has ended and owes nothing', () => {
    expect(advance(ACTIVE, { heartbeats: reports({}, { 2: ended, 3: ended }) })).toEqual({
      kind: 'ending',
      stage: 0,
      stages: STAGES,
    });
  });

  it.each([
    ['one spout task has not ended', reports({}, { 2: ended })],
    ['one tree is pending', reports({}, { 2: ended, 3: { ended: true, pending: 1 } })],
    ['a worker is missing', heartbeats(slot(1, [report(2, ended), report(4)]))],
    [
      'a worker is not ready',
      heartbeats(slot(1, [report(2, ended)]), slot(2, [report(3, ended)], { ready: false })),
    ],
    [
      'a worker has yet to reconcile with the assignment in force',
      heartbeats(slot(1, [report(2, ended)]), slot(2, [report(3, ended)], { assignmentVersion: 3 })),
    ],
    [
      'a report is the last word of a worker that is gone',
      heartbeats(slot(1, [report(2, ended)]), {
        ...slot(2, [report(3, ended)]),
        workerId: null,
        state: 'backing-off',
      }),
    ],
    [
      'the slot has another worker now',
      heartbeats(slot(1, [report(2, ended)]), { ...slot(2, [report(3, ended)]), workerId: 'w9' }),
    ],
    [
      'a worker is being stopped',
      heartbeats(slot(1, [report(2, ended)]), { ...slot(2, [report(3, ended)]), state: 'stopping' }),
    ],
    [
      'a spout task is reported from a slot that does not hold it',
      heartbeats(slot(1, [report(2, ended), report(3, ended)])),
    ],
  ])('stays active while %s', (_, given) => {
    expect(advance(ACTIVE, { heartbeats: given })).toBe(ACTIVE);
  });

  it('stays active while an executor has no slot', () => {
    const [first] = ASSIGNMENT.slots;
    const assignment = { ...ASSIGNMENT, slots: first === undefined ? [] : [first] };
    expect(advance(ACTIVE, { assignment, heartbeats: reports(ended) })).toBe(ACTIVE);
    expect(advance(ACTIVE, { assignment: undefined, heartbeats: reports(ended) })).toBe(ACTIVE);
  });

  it('does not wait for trees of ticks, which may never pause', () => {
    const given = reports({ pending: 3 }, { 2: ended, 3: ended });
    expect(advance(ACTIVE, { heartbeats: given }).kind).toBe('ending');
  });

  it('finishes at once without bolts', () => {
    const given = heartbeats(slot(1, [report(2, ended)]), slot(2, [report(3, ended)]));
    const description = { ...DESCRIPTION, components: DESCRIPTION.components.slice(0, 1) };
    const plan = { tasks: TASKS.slice(0, 2), ackers: 1 };
    expect(advance(ACTIVE, { heartbeats: given, description, plan })).toEqual({
      kind: 'finished',
      drained: false,
    });
  });

  it('finishes without stages when acking is off and every task has ended', () => {
    const plan = { tasks: TASKS.slice(1), ackers: 0 };
    expect(advance(ACTIVE, { plan, heartbeats: reports({ ended: true }) })).toEqual({
      kind: 'finished',
      drained: false,
    });
    expect(advance(ACTIVE, { plan, heartbeats: reports({ ended: true }, { 5: { ended: false } }) })).toBe(
      ACTIVE,
    );
  });
});

describe('an ending topology', () => {
  const first: TopologyPhase = { kind: 'ending', stage: 0, stages: STAGES };
  const second: TopologyPhase = { kind: 'ending', stage: 1, stages: STAGES };

  it('goes on when each task of the stage has ended and its rows are complete', () => {
    expect(advance(first, { heartbeats: reports({}, { 4: { ended: true } }) })).toEqual(second);
    expect(advance(first, { heartbeats: reports({}, { 4: { ended: true, pending: 1 } }) })).toBe(first);
    expect(advance(second, { heartbeats: reports({}, { 5: { ended: true } }) })).toEqual({
      kind: 'finished',
      drained: false,
    });
  });

  it('waits again for a task that was started again', () => {
    const given = reports({}, { 4: { ended: false, generation: 7 } });
    expect(advance(first, { heartbeats: given })).toBe(first);
  });

  it('never goes on by absence', () => {
    expect(advance(first, { heartbeats: [] })).toBe(first);
    expect(advance(second, { heartbeats: heartbeats(slot(1, [report(4, { ended: true })])) })).toBe(second);
  });

  it('does not wait for a spout that was started again: its trees were complete', () => {
    const given = reports({}, { 2: { ended: false }, 4: { ended: true } });
    expect(advance(first, { heartbeats: given })).toEqual(second);
  });
});

describe('a draining topology', () => {
  const draining: TopologyPhase = { kind: 'draining', sinceMs: 900 };
  const drained: TopologyPhase = { kind: 'finished', drained: true };
  const stopped = { stopped: true };

  it('is drained when the spouts have stopped and nothing is queued or pending', () => {
    expect(advance(draining, { heartbeats: reports({}, { 2: stopped, 3: stopped }) })).toEqual(drained);
  });

  it.each([
    ['a spout still reads', reports({}, { 2: stopped })],
    ['a tree is pending', reports({}, { 2: stopped, 3: { stopped: true, pending: 1 } })],
    ['a bolt has queued rows', reports({}, { 2: stopped, 3: stopped, 5: { queued: 1 } })],
    ['a bolt owes a tree', reports({}, { 2: stopped, 3: stopped, 5: { pending: 1 } })],
    ['a worker is missing', heartbeats(slot(1, [report(2, stopped), report(4)]))],
  ])('goes on draining while %s', (_, given) => {
    expect(advance(draining, { heartbeats: given })).toBe(draining);
  });

  it('needs more than one look where no tree tells that rows are under way', () => {
    const plan = { tasks: TASKS.slice(1), ackers: 0 };
    const given = reports({}, { 2: stopped, 3: stopped });
    expect(advance(draining, { plan, heartbeats: given })).toBe(draining);
    expect(advance(draining, { plan, heartbeats: given, isAtRest: true })).toEqual(drained);
  });

  it('is drained if it never ran', () => {
    expect(advance(draining, { assignment: undefined })).toEqual(drained);
    expect(advance(draining, { assignment: { ...ASSIGNMENT, slots: [] } })).toEqual(drained);
  });

  it('is killed when its time is over', () => {
    expect(advance(draining, { nowMs: 1399 })).toBe(draining);
    expect(advance(draining, { nowMs: 1400 })).toEqual({ kind: 'stopped' });
  });
});

describe('a topology that no worker can run', () => {
  const error = { code: 'GRAPH_MISMATCH', message: 'another graph', details: {} } as const;
  const unusable = heartbeats({ ...slot(1, []), state: 'unusable', workerId: null, lastProblem: error });

  it.each([ACTIVE, { kind: 'draining', sinceMs: 0 }, { kind: 'ending', stage: 0, stages: STAGES }] as const)(
    'fails from $kind',
    (phase) => {
      expect(advance(phase, { heartbeats: unusable })).toEqual({ kind: 'failed', error });
    },
  );

  it('does not fail because of another topology in the slot', () => {
    const [heartbeat] = unusable;
    const other = heartbeat?.slots.map((one) => ({ ...one, topologyId: 'other' })) ?? [];
    expect(advance(ACTIVE, { heartbeats: heartbeats(...other) })).toBe(ACTIVE);
  });
});

describe('any reports', () => {
  const anyReport = (task: number) =>
    fc
      .record({
        pending: fc.nat({ max: 1 }),
        queued: fc.nat({ max: 1 }),
        ended: fc.boolean(),
        stopped: fc.boolean(),
        generation: fc.integer({ min: 1, max: 3 }),
      })
      .map((parts) => report(task, parts));
  const anySlot = (port: number, tasks: readonly number[]) =>
    fc
      .record({
        tasks: fc.tuple(...tasks.map(anyReport)),
        isThere: fc.boolean(),
        isCurrent: fc.boolean(),
      })
      .map(({ tasks: own, isThere, isCurrent }) =>
        isThere ? [slot(port, own, { assignmentVersion: isCurrent ? 4 : 3 })] : [],
      );

  it('leave final phases alone, and never skip a stage', () => {
    const phases: TopologyPhase[] = [
      ACTIVE,
      { kind: 'draining', sinceMs: 999 },
      { kind: 'ending', stage: 0, stages: STAGES },
      { kind: 'ending', stage: 1, stages: STAGES },
      { kind: 'finished', drained: false },
      { kind: 'failed', error: { code: 'INTERNAL', message: '', details: {} } },
      { kind: 'stopped' },
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...phases),
        anySlot(1, [2, 4]),
        anySlot(2, [3, 5]),
        fc.constantFrom(0, 1),
        (phase, one, two, ackers) => {
          const next = advance(phase, {
            heartbeats: heartbeats(...one, ...two),
            plan: { tasks: TASKS, ackers },
          });
          if (next === phase) return;
          expect(['active', 'draining', 'ending']).toContain(phase.kind);
          if (phase.kind === 'ending' && next.kind === 'ending') expect(next.stage).toBe(phase.stage + 1);
          if (phase.kind === 'ending' && next.kind === 'finished')
            expect(phase.stage).toBe(STAGES.length - 1);
          if (phase.kind === 'active' && next.kind === 'ending') expect(next.stage).toBe(0);
          // Something was there to conclude it from.
          expect(one.length + two.length).toBeGreaterThan(0);
        },
      ),
      { seed: 11, numRuns: 3000 },
    );
  });
});
