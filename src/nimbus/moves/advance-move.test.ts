import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Handover } from '../../coordination/index.js';
import type { Assignment, ExecutorRange, SlotAssignment } from '../../scheduling/index.js';
import { advanceMove, type MoveEvent, type MoveInput, type SlotFacts } from './advance-move.js';
import { keyOf, piecesOf, slotOfTask, tasksOf, type SlotKey } from './pieces.js';

const TASKS = [
  { component: '__acker', first: 1, last: 2 },
  { component: 'spout', first: 3, last: 4 },
  { component: 'bolt', first: 5, last: 10 },
];
const USER_TASKS = [3, 4, 5, 6, 7, 8, 9, 10];
const PROBLEM = { code: 'USER_CODE_FAILED' as const, message: 'no', details: {} };

const slot = (key: SlotKey, executors: readonly ExecutorRange[]): SlotAssignment => {
  const [supervisor = '', port = ''] = key.split(':');
  return { supervisor, host: `host-${supervisor}`, port: Number(port), executors, startedMs: 0 };
};
const placed = (
  slots: Readonly<Record<SlotKey, readonly ExecutorRange[]>>,
  more: Partial<Assignment> = {},
): Assignment => ({
  topologyId: 't',
  version: 1,
  tasks: TASKS,
  slots: Object.entries(slots).map(([key, executors]) => slot(key, executors)),
  ...more,
});
const ready = (running: readonly number[]): SlotFacts => ({
  isCurrent: true,
  isReady: true,
  isIdle: running.length === 0,
  hasWorker: true,
  running: new Set(running),
});
const input = (stored: Assignment, more: Partial<MoveInput> = {}): MoveInput => ({
  stored,
  desired: undefined,
  dead: new Set(),
  gone: new Set(),
  slots: new Map(
    stored.slots.map((one) => [keyOf(one), ready(one.executors.flatMap((range) => tasksOf(range)))]),
  ),
  handovers: [],
  mayMove: true,
  losesState: false,
  isMovable: () => true,
  isStateless: () => false,
  nowMs: 1000,
  prepareTimeoutMs: 500,
  ...more,
});
function written(given: MoveInput): { assignment: Assignment; events: readonly MoveEvent[] } {
  const step = advanceMove(given);
  if (step.kind !== 'write') throw new Error(`nothing is written: ${JSON.stringify(step)}`);
  return step;
}
const executorsOf = ({ slots }: Assignment): Record<SlotKey, readonly ExecutorRange[]> =>
  Object.fromEntries(slots.map((one) => [keyOf(one), one.executors]));

const TWO = placed({
  's1:1': [
    [1, 2],
    [3, 3],
    [5, 7],
  ],
  's1:2': [
    [4, 4],
    [8, 10],
  ],
});

describe('a planned move', () => {
  it('first lets new workers get ready, then sends all tasks on their way at once, then is over', () => {
    const desired = placed(
      {
        's1:1': [
          [1, 2],
          [3, 3],
          [5, 7],
        ],
        's2:1': [
          [4, 4],
          [8, 10],
        ],
      },
      { revision: 4 },
    );
    const prepared = written(input(TWO, { desired })).assignment;
    expect(executorsOf(prepared)).toEqual({ ...executorsOf(TWO), 's2:1': [] });
    expect(prepared).toMatchObject({ version: 2, target: { sinceMs: 1000, revision: 4 } });
    expect(prepared.revision).toBeUndefined();
    const starting = input(prepared, { slots: new Map([['s2:1', { ...ready([]), isReady: false }]]) });
    expect(advanceMove(starting)).toEqual({ kind: 'none', wakeInMs: 500 });
    const cut = written(input(prepared)).assignment;
    expect(executorsOf(cut)).toEqual({
      's1:1': [
        [1, 2],
        [3, 3],
        [5, 7],
      ],
      's1:2': [],
      's2:1': [
        [4, 4],
        [8, 10],
      ],
    });
    expect(cut).toMatchObject({ version: 3, revision: 4 });
    expect(cut.target).toBeUndefined();
    expect(cut.moves).toEqual([
      { tasks: [4, 4], from: { supervisor: 's1', port: 2 }, move: 3 },
      { tasks: [8, 10], from: { supervisor: 's1', port: 2 }, move: 3 },
    ]);
    const notThere = new Map([['s2:1', ready([4, 8])]]);
    expect(advanceMove(input(cut, { slots: notThere })).kind).toBe('none');
    const late = new Map([['s2:1', { ...ready([4, 8, 9, 10]), isCurrent: false }]]);
    expect(advanceMove(input(cut, { slots: late })).kind).toBe('none');
    const busy = new Map([
      ['s1:2', { ...ready([]), isIdle: false }],
      ['s2:1', ready([4, 8, 9, 10])],
    ]);
    const over = written(input(cut, { slots: busy })).assignment;
    expect(over.moves).toBeUndefined();
    // The old worker has still something to say.
    expect(executorsOf(over)).toEqual(executorsOf(cut));
    expect(executorsOf(written(input(over)).assignment)).toEqual(executorsOf(desired));
  });

  it('goes at once to workers that run already, and cuts executors anew in place without moving them', () => {
    const desired = placed({
      's1:1': [
        [1, 2],
        [3, 3],
        [5, 6],
      ],
      's1:2': [
        [4, 4],
        [7, 8],
        [9, 10],
      ],
    });
    const { assignment } = written(input(TWO, { desired }));
    expect(assignment.moves).toEqual([{ tasks: [7, 7], from: { supervisor: 's1', port: 1 }, move: 2 }]);
    const inPlace = placed({
      's1:1': [
        [1, 2],
        [3, 3],
        [5, 5],
        [6, 7],
      ],
      's1:2': [
        [4, 4],
        [8, 10],
      ],
    });
    expect(written(input(TWO, { desired: inPlace })).assignment.moves).toBeUndefined();
  });

  it('leaves what cannot travel where it is and says so, unless its state may be lost', () => {
    const desired = placed({
      's1:1': [
        [1, 2],
        [3, 3],
        [5, 7],
        [8, 10],
      ],
      's1:2': [[4, 4]],
    });
    const isMovable = (task: number): boolean => task !== 9;
    expect(advanceMove(input(TWO, { desired, isMovable })).kind).toBe('none');
    const more = { ...desired, revision: 2 };
    const { assignment, events } = written(input(TWO, { desired: more, isMovable }));
    expect(executorsOf(assignment)).toEqual(executorsOf(TWO));
    expect(assignment.revision).toBe(2);
    expect(events).toEqual([
      { kind: 'stayed', component: 'bolt', tasks: [8, 10], reason: 'its state cannot travel' },
    ]);
    // As long as nobody has said whether it can, it is only put off, and what was asked for is still wanted.
    const unknown = (task: number): true | undefined => (task === 9 ? undefined : true);
    expect(advanceMove(input(TWO, { desired: more, isMovable: unknown })).kind).toBe('none');
    const lost = written(input(TWO, { desired, isMovable, losesState: true }));
    expect(lost.assignment.moves?.map(({ tasks }) => tasks)).toEqual([[8, 10]]);
  });

  it('does not wait for new workers where what moves has no state and does not run yet', () => {
    const desired = placed({
      's1:1': executorsOf(TWO)['s1:1']!,
      's1:2': [[4, 4]],
      's2:1': [[8, 10]],
    });
    const starting = new Map([['s1:2', { ...ready([4]), isReady: false }]]);
    const cut = written(input(TWO, { desired, slots: starting, isStateless: (task) => task > 4 })).assignment;
    expect(cut.moves).toEqual([{ tasks: [8, 10], from: { supervisor: 's1', port: 2 }, move: 2 }]);
    expect(executorsOf(cut)).toEqual(executorsOf(desired));
    const others: Partial<MoveInput>[] = [
      { slots: starting },
      { slots: new Map([['s1:2', { ...ready([4, 9]), isReady: false }]]), isStateless: (task) => task > 4 },
      { slots: starting, isStateless: (task) => task > 8 },
      // Its supervisor has not been heard of yet.
      { slots: new Map(), isStateless: (task) => task > 4 },
    ];
    for (const other of others)
      expect(written(input(TWO, { desired, ...other })).assignment.target).toBeDefined();
  });

  it('does not begin while the topology ends, but places what has no place', () => {
    const desired = placed({
      's1:1': [
        [1, 2],
        [3, 3],
        [5, 7],
      ],
      's2:1': [
        [4, 4],
        [8, 10],
      ],
    });
    expect(advanceMove(input(TWO, { desired, mayMove: false })).kind).toBe('none');
    const { assignment } = written(input(TWO, { desired, mayMove: false, gone: new Set(['s1']) }));
    expect(executorsOf(assignment)).toEqual(executorsOf(desired));
  });

  it('is called off when its workers do not get ready in time, and is not asked for again', () => {
    const desired = placed(
      {
        's1:1': [
          [1, 2],
          [3, 3],
          [5, 7],
        ],
        's2:1': [
          [4, 4],
          [8, 10],
        ],
      },
      { revision: 4 },
    );
    const prepared = written(input(TWO, { desired })).assignment;
    const { assignment, events } = written(input(prepared, { slots: new Map(), nowMs: 1500 }));
    expect(executorsOf(assignment)).toEqual(executorsOf(TWO));
    expect(assignment).toMatchObject({ revision: 4 });
    expect(events).toMatchObject([{ kind: 'cancelled', error: { code: 'MOVE_CANCELLED' } }]);
  });

  it('gives way to a newer one while it is prepared', () => {
    const first = placed(
      {
        's1:1': [
          [1, 2],
          [3, 3],
          [5, 7],
        ],
        's2:1': [
          [4, 4],
          [8, 10],
        ],
      },
      { revision: 1 },
    );
    const prepared = written(input(TWO, { desired: first })).assignment;
    const second = placed(
      {
        's1:1': [
          [1, 2],
          [3, 3],
          [5, 7],
        ],
        's2:2': [
          [4, 4],
          [8, 10],
        ],
      },
      { revision: 2 },
    );
    const { assignment } = written(input(prepared, { desired: second, slots: new Map() }));
    expect(assignment.target?.slots.map(keyOf)).toEqual(['s1:1', 's2:2']);
    expect(advanceMove(input(assignment, { desired: second, slots: new Map() })).kind).toBe('none');
  });

  it('brings a whole executor back when one of its tasks is kept or cannot be started', () => {
    const desired = placed({
      's1:1': [
        [1, 2],
        [3, 3],
        [5, 7],
        [8, 10],
      ],
      's1:2': [[4, 4]],
    });
    const cut = written(input(TWO, { desired })).assignment;
    const handovers: Handover[] = [
      { task: 8, move: 2, step: { kind: 'released', state: { kind: 'none' } } },
      { task: 9, move: 2, step: { kind: 'kept', error: PROBLEM } },
    ];
    const onItsWay = new Map([
      ['s1:1', ready([3, 5, 6, 7, 8])],
      ['s1:2', ready([4, 9, 10])],
    ]);
    expect(advanceMove(input(cut, { handovers, slots: onItsWay })).kind).toBe('none');
    const slots = new Map([
      ['s1:1', ready([3, 5, 6, 7, 8, 10])],
      ['s1:2', ready([4, 9])],
    ]);
    const { assignment, events } = written(input(cut, { handovers, slots }));
    expect(executorsOf(assignment)).toEqual(executorsOf(TWO));
    expect(events).toEqual([{ kind: 'returned', component: 'bolt', task: 9, error: PROBLEM }]);
    expect(assignment.moves).toEqual([
      { tasks: [8, 8], from: { supervisor: 's1', port: 1 }, move: 3 },
      { tasks: [10, 10], from: { supervisor: 's1', port: 1 }, move: 3 },
    ]);
  });
});

// ── a model of everybody else, to see that no step lets a task live twice ──

type Action =
  | { readonly kind: 'nimbus' }
  | { readonly kind: 'want'; readonly seed: number }
  | { readonly kind: 'sync' | 'work' | 'crash'; readonly slot: number }
  | { readonly kind: 'keep' | 'fail'; readonly slot: number }
  | { readonly kind: 'gone'; readonly supervisor: number };

const SLOTS = ['s1:1', 's1:2', 's2:1', 's2:2'];

class World {
  stored: Assignment;
  desired: Assignment | undefined;
  handovers: Handover[] = [];
  /** Assignment that the worker of a slot has seen. */
  readonly seen = new Map<SlotKey, Assignment>();
  readonly alive = new Map<SlotKey, Set<number>>(SLOTS.map((key) => [key, new Set()]));
  readonly failedAt = new Map<string, number>();
  /** Tasks that are closed, or about to be, and not released yet. */
  readonly closing = new Map<string, number>();
  /** Tasks whose state went with a crash: only these, and those that never ran, may start without one. */
  readonly lost = new Set<number>(USER_TASKS);
  readonly gone = new Set<string>();
  nowMs = 0;
  revision = 0;

  readonly #stateless: ReadonlySet<number>;

  constructor(stateless: readonly number[] = []) {
    this.#stateless = new Set(stateless);
    this.stored = placed({
      's1:1': [
        [1, 1],
        [3, 3],
        [5, 6],
        [9, 10],
      ],
      's1:2': [
        [2, 2],
        [4, 4],
        [7, 8],
      ],
    });
    for (const key of SLOTS) this.sync(key);
  }

  do(action: Action): void {
    this.nowMs += 10;
    const key = 'slot' in action ? SLOTS[action.slot]! : '';
    if (key !== '' && this.gone.has(key.split(':')[0]!)) return;
    switch (action.kind) {
      case 'nimbus':
        return this.nimbus();
      case 'want':
        return this.want(action.seed);
      case 'sync':
        return this.sync(key);
      case 'work':
        return this.work(key, 'well');
      case 'keep':
        return this.work(key, 'keep');
      case 'fail':
        return this.work(key, 'fail');
      case 'crash':
        this.end(key);
        return this.sync(key);
      case 'gone':
        // One machine at most: somebody has to be left.
        if (this.gone.size > 0) return;
        this.gone.add(`s${action.supervisor + 1}`);
        for (const one of SLOTS) if (this.gone.has(one.split(':')[0]!)) this.end(one);
    }
  }

  /** A worker ends, with all that its tasks know. */
  end(key: SlotKey): void {
    for (const task of this.alive.get(key)!) {
      this.lost.add(task);
      this.closing.delete(`${key}/${task}`);
    }
    this.alive.set(key, new Set());
  }

  /** Where everything goes next: executors of one or two tasks, spread by the seed over the machines that are there. */
  want(seed: number): void {
    const open = SLOTS.filter((key) => !this.gone.has(key.split(':')[0]!));
    const executors: ExecutorRange[] = [
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
    ];
    for (let task = 5, bits = seed; task <= 10; bits >>= 1) {
      const last = (bits & 1) === 1 ? Math.min(10, task + 1) : task;
      executors.push([task, last]);
      task = last + 1;
    }
    const slots = new Map<SlotKey, ExecutorRange[]>();
    executors.forEach((range, i) => {
      const key = open[((seed >> i) ^ (seed * (i + 3))) % open.length] ?? open[0]!;
      slots.set(key, [...(slots.get(key) ?? []), range]);
    });
    this.desired = placed(Object.fromEntries(slots), { revision: ++this.revision });
  }

  nimbus(): void {
    // As a round does: what is on a machine that is gone is wanted elsewhere.
    const isStranded = this.stored.slots.some(
      ({ supervisor, executors }) => this.gone.has(supervisor) && executors.length > 0,
    );
    const wantsGone = this.desired?.slots.some(({ supervisor }) => this.gone.has(supervisor)) ?? true;
    if (isStranded && wantsGone) this.want(this.nowMs);
    const step = advanceMove({
      stored: this.stored,
      desired: this.desired,
      dead: new Set(),
      gone: this.gone,
      slots: new Map(SLOTS.map((key) => [key, this.facts(key)])),
      handovers: this.handovers,
      mayMove: true,
      losesState: false,
      isMovable: () => true,
      isStateless: (task) => this.#stateless.has(task),
      nowMs: this.nowMs,
      prepareTimeoutMs: 500,
    });
    if (step.kind === 'release') this.handovers.push(...step.handovers);
    if (step.kind !== 'write') return;
    expect(step.assignment.version).toBe(this.stored.version + 1);
    const places = piecesOf(step.assignment.slots).flatMap(({ range }) => tasksOf(range));
    expect([...places].sort((a, b) => a - b)).toEqual([...new Set(places)].sort((a, b) => a - b));
    this.stored = step.assignment;
    if (this.desired?.revision === this.stored.revision && this.stored.moves === undefined)
      this.desired = undefined;
  }

  facts(key: SlotKey): SlotFacts {
    const seen = this.seen.get(key);
    const running = this.alive.get(key)!;
    const wanted = this.wantedIn(key, seen);
    const isLeaving = [...running].some((task) => !wanted.has(task));
    return {
      isCurrent: seen?.version === this.stored.version,
      isReady: [...wanted].every((task) => running.has(task)),
      isIdle: running.size === 0 && !isLeaving,
      hasWorker: seen?.slots.some((one) => keyOf(one) === key) ?? false,
      running: new Set(running),
    };
  }

  wantedIn(key: SlotKey, assignment: Assignment | undefined): Set<number> {
    const own = assignment?.slots.find((one) => keyOf(one) === key);
    return new Set((own?.executors ?? []).flatMap((range) => tasksOf(range)).filter((task) => task > 2));
  }

  moveOf(assignment: Assignment, task: number): NonNullable<Assignment['moves']>[number] | undefined {
    return assignment.moves?.find(({ tasks: [first, last] }) => first <= task && task <= last);
  }

  has(task: number, move: number, ...kinds: Handover['step']['kind'][]): boolean {
    return this.handovers.some(
      (one) => one.task === task && one.move === move && kinds.includes(one.step.kind),
    );
  }

  /** The worker of a slot takes the newest assignment in. */
  sync(key: SlotKey): void {
    const assignment = this.stored;
    this.seen.set(key, assignment);
    const wanted = this.wantedIn(key, assignment);
    for (const task of [...this.alive.get(key)!]) {
      const move = this.moveOf(assignment, task);
      const leaves = move !== undefined && keyOf(move.from) === key;
      if (wanted.has(task)) {
        // A departure that was under way is cancelled: the task is kept.
        const isLate =
          this.closing.has(`${key}/${task}`) || this.has(task, move?.move ?? 0, 'released', 'kept');
        if (leaves && !isLate)
          this.handovers.push({ task, move: move.move, step: { kind: 'kept', error: PROBLEM } });
      } else if (!leaves) {
        this.alive.get(key)!.delete(task);
        this.lost.add(task);
      }
    }
    for (const task of wanted) {
      if (this.moveOf(assignment, task) !== undefined || this.alive.get(key)!.has(task)) continue;
      expect(this.lost, `state of task ${task} lost in silence`).toContain(task);
      this.start(key, task);
    }
    for (const task of USER_TASKS) {
      const move = this.moveOf(assignment, task);
      const isMissing = move !== undefined && keyOf(move.from) === key && !this.alive.get(key)!.has(task);
      if (isMissing && !this.has(task, move.move, 'released', 'kept'))
        this.handovers.push({ task, move: move.move, step: { kind: 'released', state: { kind: 'lost' } } });
    }
  }

  /** The worker of a slot takes one step with a task that leaves or arrives. */
  work(key: SlotKey, how: 'well' | 'keep' | 'fail'): void {
    const seen = this.seen.get(key)!;
    const wanted = this.wantedIn(key, seen);
    const alive = this.alive.get(key)!;
    for (const task of alive) {
      const closing = this.closing.get(`${key}/${task}`);
      if (closing !== undefined) {
        alive.delete(task);
        this.closing.delete(`${key}/${task}`);
        const state = { kind: 'saved', hash: 'h', bytes: 1 } as const;
        this.handovers.push({ task, move: closing, step: { kind: 'released', state } });
        return;
      }
      const move = this.moveOf(seen, task);
      const leaves = move !== undefined && keyOf(move.from) === key && !wanted.has(task);
      if (!leaves || this.has(task, move.move, 'kept', 'released')) continue;
      if (how === 'keep')
        this.handovers.push({ task, move: move.move, step: { kind: 'kept', error: PROBLEM } });
      else this.closing.set(`${key}/${task}`, move.move);
      return;
    }
    for (const task of wanted) {
      const move = this.moveOf(seen, task);
      if (alive.has(task) || move === undefined || !this.has(task, move.move, 'released')) continue;
      const isReturn = keyOf(move.from) === key;
      if (!isReturn && this.has(task, move.move, 'kept')) continue;
      const failKey = `${key}/${task}/${move.move}`;
      if ((this.failedAt.get(failKey) ?? -1) >= seen.version && !isReturn) continue;
      if (how === 'fail') {
        this.failedAt.set(failKey, seen.version);
        const [supervisor = '', port = ''] = key.split(':');
        if (!isReturn)
          this.handovers.push({
            task,
            move: move.move,
            step: { kind: 'failed', supervisor, port: Number(port), error: PROBLEM },
          });
      } else {
        this.lost.delete(task);
        this.start(key, task);
        this.handovers.push({ task, move: move.move, step: { kind: 'taken', generation: 1 } });
      }
      return;
    }
  }

  start(key: SlotKey, task: number): void {
    this.lost.delete(task);
    this.alive.get(key)!.add(task);
    const places = SLOTS.filter((one) => this.alive.get(one)!.has(task));
    expect(places, `task ${task}, assignment ${JSON.stringify(this.stored)}`).toEqual([key]);
  }

  /** Everybody does what is left to do. */
  finish(): void {
    for (let round = 0; round < 400; round++) {
      this.nimbus();
      for (const key of SLOTS) {
        if (this.gone.has(key.split(':')[0]!)) continue;
        this.sync(key);
        for (let i = 0; i < 20; i++) this.work(key, 'well');
      }
      this.nowMs += 10;
      const { target, moves } = this.stored;
      if (target === undefined && moves === undefined && this.desired === undefined && round > 5) return;
    }
    throw new Error(`never settles: ${JSON.stringify(this.stored)} ${JSON.stringify(this.handovers)}`);
  }
}

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: 'nimbus' } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('want' as const), seed: fc.nat({ max: 4095 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('sync' as const), slot: fc.nat({ max: 3 }) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('work' as const), slot: fc.nat({ max: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('keep' as const, 'fail' as const, 'crash' as const),
      slot: fc.nat({ max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('gone' as const), supervisor: fc.nat({ max: 1 }) }),
  },
);

const stateless = fc.subarray(USER_TASKS.slice(2));

describe('whatever happens in between', () => {
  it('no task lives twice, and in the end each lives where the assignment says', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 150, size: 'max' }), stateless, (actions, tasks) => {
        const world = new World(tasks);
        for (const one of actions) world.do(one);
        world.finish();
        const places = slotOfTask(piecesOf(world.stored.slots));
        for (const task of USER_TASKS) {
          const alive = SLOTS.filter((key) => world.alive.get(key)!.has(task));
          expect(alive).toEqual([places.get(task)]);
        }
      }),
      { seed: 20_264, numRuns: 800 },
    );
  });

  it('without faults everything ends up where it was wanted last', () => {
    const calm = action.filter(({ kind }) => !['keep', 'fail', 'gone'].includes(kind));
    fc.assert(
      fc.property(
        fc.array(calm, { maxLength: 100, size: 'max' }),
        fc.nat({ max: 4095 }),
        stateless,
        (actions, seed, tasks) => {
          const world = new World(tasks);
          for (const one of actions) world.do(one);
          world.want(seed);
          const wanted = slotOfTask(piecesOf(world.desired!.slots));
          world.finish();
          expect(slotOfTask(piecesOf(world.stored.slots))).toEqual(wanted);
        },
      ),
      { seed: 20_265, numRuns: 200 },
    );
  });
});
