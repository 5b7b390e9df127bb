import { describe, expect, it } from 'vitest';
import { IsobarError, silentLogger, VirtualClock } from '../base/index.js';
import type { Coordination, TopologyRecord } from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import { AssignmentView } from './assignment-view.js';

const OWN = 's1';

/** A coordinator with topologies, each of which has one slot; it notes what is read. */
class Setting {
  readonly clock = new VirtualClock();
  readonly records = new Map<string, TopologyRecord>();
  readonly assignments = new Map<string, Assignment>();
  readonly reads: string[] = [];
  changes = 0;
  isAway = false;
  tell: (ids?: readonly string[]) => void = () => undefined;
  readonly view: AssignmentView;

  constructor() {
    const read = async <T>(what: string, answer: () => T): Promise<T> => {
      await Promise.resolve();
      this.reads.push(what);
      if (this.isAway) throw new IsobarError('COORDINATOR_UNAVAILABLE', 'away');
      return answer();
    };
    const coordination: Partial<Coordination> = {
      watchAssignments: (onChange) => {
        this.tell = onChange;
        return () => undefined;
      },
      watchTopologies: () => () => undefined,
      onReconnect: () => () => undefined,
      listAssignments: () => read('all', () => [...this.assignments.values()]),
      listTopologies: () =>
        read('all', () => [...this.records.values()].map((value) => ({ value, version: 1 }))),
      readAssignment: (id) => read(id, () => this.assignments.get(id)),
      readTopology: (id) =>
        read(id, () => {
          const value = this.records.get(id);
          return value === undefined ? undefined : { value, version: 1 };
        }),
    };
    this.view = new AssignmentView({
      coordination: coordination as Coordination, // Whatever else is called fails the test.
      supervisorId: OWN,
      clock: this.clock,
      logger: silentLogger,
      onChange: () => this.changes++,
    });
  }

  place(
    id: string,
    port: number,
    parts: {
      supervisor?: string;
      startedMs?: number;
      ended?: boolean;
      executors?: Assignment['slots'][number]['executors'];
      target?: Assignment['slots'][number]['executors'];
    } = {},
  ): void {
    const { supervisor = OWN, startedMs = 0, ended = false, executors = [[1, 1]], target } = parts;
    const phase = { kind: ended ? 'finished' : 'active' };
    this.records.set(id, { id, name: id, phase } as unknown as TopologyRecord);
    const slot = { supervisor, host: supervisor, port, executors, startedMs };
    const prepared = target && {
      target: { slots: [{ ...slot, executors: target }], sinceMs: 0, losesState: false },
    };
    this.assignments.set(id, { topologyId: id, version: 1, tasks: [], slots: [slot], ...prepared });
  }

  /** What has been read since this was last asked. */
  async read(): Promise<string[]> {
    for (let i = 0; i < 30; i++) await Promise.resolve();
    return this.reads.splice(0);
  }
}

describe('AssignmentView', () => {
  it('reads everything once, then only the topologies that a watch has named', async () => {
    const setting = new Setting();
    setting.place('a', 1);
    setting.place('b', 1, { supervisor: 's2' });
    expect(setting.view.desired(1)).toEqual({ kind: 'unknown' });
    setting.view.start();
    expect(await setting.read()).toEqual(['all', 'all']);
    expect(setting.view.desired(1)).toEqual({ kind: 'worker', topologyId: 'a', hasTasks: true });
    setting.place('c', 2);
    setting.tell(['c']);
    expect(await setting.read()).toEqual(['c', 'c']);
    expect(setting.view.desired(2)).toEqual({ kind: 'worker', topologyId: 'c', hasTasks: true });
    expect(setting.view.desired(1)).toEqual({ kind: 'worker', topologyId: 'a', hasTasks: true });
    setting.records.delete('a');
    setting.tell(['a']);
    expect(await setting.read()).toEqual(['a', 'a']);
    expect([setting.view.desired(1), setting.view.topology('a')]).toEqual([{ kind: 'none' }, undefined]);
    expect(setting.changes).toBe(3);
  });

  it('reads a topology that changes during a read once more, and everything where anything may have changed', async () => {
    const setting = new Setting();
    setting.place('a', 1);
    setting.view.start();
    // Nothing has been read yet, so a part of it would say nothing.
    setting.tell(['a']);
    expect(await setting.read()).toEqual(['all', 'all', 'a', 'a']);
    setting.tell(['a']);
    setting.tell();
    setting.tell(['a']);
    expect(await setting.read()).toEqual(['a', 'a', 'all', 'all']);
    setting.clock.advance(30_000);
    expect(await setting.read()).toEqual(['all', 'all']);
  });

  it('keeps its view while the coordinator is away, and reads what it has missed as soon as it can', async () => {
    const setting = new Setting();
    setting.place('a', 1);
    setting.view.start();
    await setting.read();
    setting.isAway = true;
    setting.place('b', 2);
    setting.tell(['b']);
    await setting.read();
    expect(setting.view.desired(1)).toEqual({ kind: 'worker', topologyId: 'a', hasTasks: true });
    setting.isAway = false;
    setting.clock.advance(200);
    expect(await setting.read()).toEqual(['b', 'b']);
    expect(setting.view.desired(2)).toEqual({ kind: 'worker', topologyId: 'b', hasTasks: true });
  });

  it('tells a slot that is to have tasks, now or soon, from one that is kept for what its worker has to say', async () => {
    const setting = new Setting();
    setting.place('a', 1, { executors: [] });
    setting.place('b', 2, { executors: [], target: [[3, 4]] });
    setting.place('c', 3, { executors: [], target: [] });
    setting.view.start();
    await setting.read();
    expect([1, 2, 3].map((port) => setting.view.desired(port))).toEqual([
      { kind: 'worker', topologyId: 'a', hasTasks: false },
      { kind: 'worker', topologyId: 'b', hasTasks: true },
      { kind: 'worker', topologyId: 'c', hasTasks: false },
    ]);
  });

  it('wants no worker for what has ended, and of two topologies in one slot that of the later decision', async () => {
    const setting = new Setting();
    setting.place('a', 1, { ended: true });
    setting.place('b', 2, { startedMs: 5 });
    setting.place('c', 2, { startedMs: 3 });
    setting.view.start();
    await setting.read();
    expect(setting.view.desired(1)).toEqual({ kind: 'none' });
    expect(setting.view.desired(2)).toEqual({ kind: 'worker', topologyId: 'b', hasTasks: true });
    expect([setting.view.wantedWorkers, setting.view.topologies().length]).toEqual([1, 3]);
  });
});
