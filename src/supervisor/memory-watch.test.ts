import { describe, expect, it } from 'vitest';
import { compileSettings, type RawSettings, VirtualClock } from '../base/index.js';
import type { AssignedTopology } from './assignment-view.js';
import { watchMemory } from './memory-watch.js';
import type { SlotWorker } from './slot-plan.js';

const WORKER: SlotWorker = {
  workerId: 'words-g1',
  topologyId: 'words',
  generation: 1,
  process: { pid: 100, startTime: '1' },
  tuning: { launchTimeoutMs: 1, timeoutMs: 1, backoffMs: 1, backoffMaxMs: 1 },
};
const SLOT = { supervisor: 's1', host: 'h1', port: 6700, startedMs: 0 };
/** Two executors of 128 MB: with the margin, 384 MB. */
const WORDS: AssignedTopology = {
  record: {
    id: 'words',
    name: 'words',
    submittedMs: 0,
    codeHash: '',
    descriptionHash: '',
    settings: {},
    secret: '',
    phase: { kind: 'active' },
  },
  assignment: {
    topologyId: 'words',
    version: 1,
    tasks: [{ component: 'split', first: 1, last: 4 }],
    slots: [
      {
        ...SLOT,
        executors: [
          [1, 1],
          [2, 2],
        ],
      },
    ],
  },
};

/** A machine whose readings the test makes up. */
function watched(raw: RawSettings, topology: AssignedTopology = WORDS) {
  const settings = compileSettings({ 'scheduling.strategy': 'resource-aware', ...raw });
  const clock = new VirtualClock();
  const machine = {
    usedMb: undefined as number | undefined,
    freeMb: 1200,
    workers: [{ port: 6700, worker: WORKER }],
  };
  const stopped: string[] = [];
  const end = watchMemory({
    supervisorId: 's1',
    settings,
    clock,
    workers: () => machine.workers,
    topology: (id) => (id === 'words' ? topology : undefined),
    settingsOf: () => settings,
    readUsedMb: () => machine.usedMb,
    readFreeMb: () => machine.freeMb,
    stop: (_port, { workerId }, why) => {
      stopped.push(`${workerId} ${why}`);
      machine.workers = [];
    },
  });
  return { clock, machine, stopped, end };
}

describe('watchMemory', () => {
  it('has a worker stopped once it has been above its limit for the grace', () => {
    const { clock, machine, stopped } = watched({});
    machine.usedMb = 385;
    clock.advance(32_000);
    expect(stopped).toEqual([]);
    clock.advance(3000);
    expect(stopped).toEqual([
      'words-g1 took 385 MB, and its limit is 384 MB (heap 256, off-heap 0, margin 128): for 30 s, while the machine has 1200 MB left',
    ]);
  });

  it('gives a successor a grace of its own', () => {
    const { clock, machine, stopped } = watched({});
    machine.usedMb = 385;
    clock.advance(30_000);
    machine.workers = [{ port: 6700, worker: { ...WORKER, workerId: 'words-g2' } }];
    clock.advance(30_000);
    expect(stopped).toEqual([]);
  });

  it('counts what a rebalance has asked for, and executors that are about to come', () => {
    const desired = {
      revision: 1,
      executors: {},
      resources: { split: { heap: 200 } },
      placement: 'few-moves',
      changedMs: 0,
    } as const;
    const target = {
      slots: [
        {
          ...SLOT,
          executors: [
            [1, 1],
            [2, 2],
            [3, 3],
          ],
        },
      ],
      sinceMs: 0,
      losesState: false,
    } as const;
    const { clock, machine, stopped } = watched(
      {},
      {
        record: { ...WORDS.record, desired },
        assignment: { ...WORDS.assignment, target },
      },
    );
    machine.freeMb = 0;
    machine.usedMb = 600 + 128;
    clock.advance(3000);
    expect(stopped).toEqual([]);
    machine.usedMb++;
    clock.advance(3000);
    expect(stopped).toHaveLength(1);
  });

  it.each([
    ['it is switched off', { 'supervisor.memory-check': false }],
    ['it is switched off by its name in Storm', { 'storm.resource.isolation.plugin.enable': false }],
    ['the strategy promises no memory', { 'scheduling.strategy': 'balanced' }],
  ])('looks at nothing when %s', (_why, raw) => {
    const { clock, machine, stopped } = watched(raw);
    machine.usedMb = 100_000;
    clock.advance(60_000);
    expect(stopped).toEqual([]);
  });

  it('stops nobody whose memory cannot be read, who has no executors, or after its end', () => {
    const unread = watched({});
    unread.clock.advance(60_000);
    expect(unread.stopped).toEqual([]);
    const leaving = watched(
      {},
      { ...WORDS, assignment: { ...WORDS.assignment, slots: [{ ...SLOT, executors: [] }] } },
    );
    leaving.machine.usedMb = 100_000;
    leaving.clock.advance(60_000);
    expect(leaving.stopped).toEqual([]);
    const ended = watched({});
    ended.machine.usedMb = 100_000;
    ended.end();
    ended.clock.advance(60_000);
    expect(ended.stopped).toEqual([]);
  });
});
