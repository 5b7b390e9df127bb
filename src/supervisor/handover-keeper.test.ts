import { describe, expect, it } from 'vitest';
import { IsobarError, silentLogger, VirtualClock } from '../base/index.js';
import type { Coordination, Handover, HandoverNode } from '../coordination/index.js';
import type { Assignment, TaskMove } from '../scheduling/index.js';
import type { AssignmentView } from './assignment-view.js';
import { HandoverKeeper } from './handover-keeper.js';

const ID = 'words-1-9';
const OWN = 's1';
const TASKS = [
  { component: '__acker', first: 1, last: 1 },
  { component: 'count', first: 2, last: 5 },
];

const released = (task: number, move = 7, hash?: string): Handover => ({
  task,
  move,
  step: {
    kind: 'released',
    state: hash === undefined ? { kind: 'lost' } : { kind: 'saved', hash, bytes: 3 },
  },
});
const failed = (task: number): Handover => ({
  task,
  move: 7,
  step: {
    kind: 'failed',
    supervisor: OWN,
    port: 1,
    error: { code: 'USER_CODE_FAILED', message: 'no', details: {}, retryable: false },
  } as unknown as Handover['step'],
});
const moveFrom = (supervisor: string, tasks: readonly [number, number], move = 7): TaskMove => ({
  tasks,
  from: { supervisor, port: 1 },
  move,
});

/** A coordinator that keeps handovers, and answers when it is told to. */
class Setting {
  readonly clock = new VirtualClock();
  readonly nodes = new Map<string, readonly Handover[]>();
  readonly writes: (readonly Handover[])[] = [];
  readonly changed: string[] = [];
  readonly held = new Set<number>([1]);
  assignment: Assignment | undefined;
  isReadable = true;
  isWritable = true;
  #tell: () => void = () => undefined;
  readonly keeper: HandoverKeeper;

  constructor(moves: readonly TaskMove[] = [], version = 7) {
    this.assignment = { topologyId: ID, version, tasks: TASKS, slots: [], moves };
    const coordination: Partial<Coordination> = {
      watchHandovers: (onChange) => {
        this.#tell = onChange;
        return () => undefined;
      },
      onReconnect: () => () => undefined,
      listHandovers: async () => {
        await Promise.resolve();
        if (!this.isReadable) throw new IsobarError('COORDINATOR_UNAVAILABLE', 'away');
        return [...this.nodes].map(
          ([writer, handovers]): HandoverNode => ({ topologyId: ID, writer, handovers }),
        );
      },
      storeHandovers: async (_topologyId, writer, handovers) => {
        await Promise.resolve();
        if (!this.isWritable) throw new IsobarError('COORDINATOR_UNAVAILABLE', 'away');
        this.nodes.set(writer, handovers);
        this.writes.push(handovers);
      },
    };
    const view: Pick<AssignmentView, 'topology' | 'topologies'> = {
      topology: () => this.#assigned(),
      topologies: () => [this.#assigned()].filter((one) => one !== undefined),
    };
    this.keeper = new HandoverKeeper({
      coordination: coordination as Coordination, // Whatever else is called fails the test.
      supervisorId: OWN,
      view: view as AssignmentView,
      isHeld: (port) => this.held.has(port),
      clock: this.clock,
      logger: silentLogger,
      onChange: (id) => this.changed.push(id),
    });
  }

  get own(): readonly Handover[] {
    return this.nodes.get(OWN) ?? [];
  }

  /** Somebody has written something. */
  notify(): void {
    this.#tell();
  }

  #assigned(): ReturnType<AssignmentView['topology']> {
    if (this.assignment === undefined) return undefined;
    return { assignment: this.assignment, record: {} } as unknown as ReturnType<AssignmentView['topology']>;
  }
}

/** Whatever can happen without time passing has happened. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** Is a promise still waiting? */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const waiting = Symbol('waiting');
  await settle();
  return (await Promise.race([promise, Promise.resolve(waiting)])) === waiting;
}

describe('HandoverKeeper', () => {
  it('answers a step only when it is stored, also if the coordinator is away for a while', async () => {
    const setting = new Setting([moveFrom(OWN, [2, 3])]);
    setting.keeper.start();
    setting.isWritable = false;
    const answer = setting.keeper.record(ID, [released(2, 7, 'h')]);
    expect(await isPending(answer)).toBe(true);
    setting.isWritable = true;
    setting.clock.advance(200);
    await answer;
    expect(setting.own).toEqual([released(2, 7, 'h')]);
  });

  it('stores steps in order, a repeated one once, and those that come during a write with the next', async () => {
    const setting = new Setting([moveFrom(OWN, [2, 5])]);
    setting.keeper.start();
    const first = setting.keeper.record(ID, [released(2, 7, 'h')]);
    const again = setting.keeper.record(ID, [released(2, 7, 'h'), released(3, 7, 'i')]);
    await Promise.all([first, again]);
    await setting.keeper.record(ID, [released(2, 7, 'h')]);
    expect(setting.own).toEqual([released(2, 7, 'h'), released(3, 7, 'i')]);
    // Each failure to start counts: the place was tried again in between.
    await setting.keeper.record(ID, [failed(4)]);
    await setting.keeper.record(ID, [failed(4)]);
    expect(setting.own.filter(({ step }) => step.kind === 'failed')).toHaveLength(2);
  });

  it('answers no step that it cannot store any more', async () => {
    const setting = new Setting([moveFrom(OWN, [2, 3])]);
    setting.keeper.start();
    await settle();
    setting.isWritable = false;
    const answer = setting.keeper.record(ID, [released(2, 7, 'h')]);
    await settle();
    setting.keeper.close();
    setting.clock.advance(200);
    await expect(answer).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
    await expect(setting.keeper.record(ID, [released(3)])).rejects.toMatchObject({
      code: 'COORDINATOR_UNAVAILABLE',
    });
  });

  it('loses nothing that an earlier supervisor of the machine has said, whatever comes before it has been read', async () => {
    const setting = new Setting([moveFrom(OWN, [2, 5])]);
    setting.nodes.set(OWN, [released(3, 7, 'kept'), released(4, 7, 'too')]);
    setting.held.clear();
    setting.isReadable = false;
    setting.keeper.start();
    await settle();
    // The assignment is known first, and a worker says again what was not answered.
    setting.keeper.releaseLost();
    const answer = setting.keeper.record(ID, [released(5, 7, 'new')]);
    expect(await isPending(answer)).toBe(true);
    expect(setting.writes).toEqual([]);
    setting.isReadable = true;
    setting.clock.advance(200);
    await answer;
    await settle();
    const states = new Map(setting.own.map(({ task, step }) => [task, step]));
    expect([...states.keys()].sort()).toEqual([2, 3, 4, 5]);
    for (const task of [3, 4, 5]) expect(states.get(task)).toMatchObject({ state: { kind: 'saved' } });
    expect(states.get(2)).toMatchObject({ state: { kind: 'lost' } });
  });

  it('releases as lost, once, what leaves a slot without a worker, and with its state what had been stored', async () => {
    const setting = new Setting([moveFrom(OWN, [1, 4]), moveFrom('s2', [5, 5])]);
    setting.keeper.start();
    await settle();
    setting.keeper.noteStored(ID, 3, 7, { kind: 'saved', hash: 'h', bytes: 3 });
    await setting.keeper.record(ID, [
      { task: 4, move: 7, step: { ...failed(4).step, kind: 'kept' } as unknown as Handover['step'] },
    ]);
    setting.keeper.releaseLost();
    await settle();
    expect(setting.own).toHaveLength(1);
    setting.held.delete(1);
    setting.keeper.releaseLost();
    setting.keeper.releaseLost();
    await settle();
    // A range that begins with a system task is one of system tasks; nothing of another machine is decided here.
    expect(setting.own).toHaveLength(1);
    setting.assignment = { ...setting.assignment!, moves: [moveFrom(OWN, [2, 4]), moveFrom('s2', [5, 5])] };
    setting.keeper.releaseLost();
    setting.keeper.releaseLost();
    await settle();
    expect(setting.own.slice(1)).toEqual([released(2), released(3, 7, 'h')]);
  });

  it('forgets steps of moves that are over, and of topologies that are gone, with its next write', async () => {
    const setting = new Setting([moveFrom(OWN, [2, 3])]);
    setting.keeper.start();
    await setting.keeper.record(ID, [released(2, 7, 'h')]);
    setting.assignment = { ...setting.assignment!, version: 9, moves: [moveFrom(OWN, [2, 3], 9)] };
    await setting.keeper.record(ID, [released(2, 9, 'i')]);
    expect(setting.own).toEqual([released(2, 9, 'i')]);
    // A worker may know of a move before this supervisor does.
    await setting.keeper.record(ID, [released(3, 12, 'j')]);
    expect(setting.own).toEqual([released(2, 9, 'i'), released(3, 12, 'j')]);
    setting.assignment = undefined;
    await setting.keeper.record(ID, [released(4, 12, 'k')]);
    expect(setting.own).toEqual([]);
  });

  it('tells of what others have written, and finds it also when nobody tells it', async () => {
    const setting = new Setting([moveFrom('s2', [2, 3])]);
    setting.keeper.start();
    await settle();
    expect(setting.changed).toEqual([]);
    setting.nodes.set('s2', [released(2, 7, 'h')]);
    setting.notify();
    await settle();
    expect(setting.changed).toEqual([ID]);
    expect(setting.keeper.of(ID)).toEqual([released(2, 7, 'h')]);
    setting.nodes.set('s2', [released(2, 7, 'h'), released(3, 7, 'i')]);
    setting.clock.advance(5000);
    await settle();
    expect(setting.changed).toEqual([ID, ID]);
    setting.keeper.close();
    setting.nodes.clear();
    setting.notify();
    await settle();
    expect(setting.keeper.of(ID)).toHaveLength(2);
  });
});
