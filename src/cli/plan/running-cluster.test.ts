import { describe, expect, it } from 'vitest';
import type { SchedulingPicture } from '../../api/index.js';
import { planCluster } from '../../scheduling/index.js';
import { mergeDrafts } from './cluster-draft.js';
import { type GivenSettings, toImagined } from './imagine-cluster.js';
import { InputFaults } from './input-faults.js';
import { runningDraft } from './running-cluster.js';

const stream = { name: 'default', fields: [{ name: 'word', kind: 'string', nullable: false }] } as const;
const shared = { tasks: null, stateful: false, movable: true, tickMs: null, manual: false, unordered: false };

const picture: SchedulingPicture = {
  nowMs: 1e12,
  settings: {},
  blacklistedHosts: [],
  supervisors: ['a', 'b'].map((id) => ({ id, host: id, ports: [1, 2] })),
  topologies: [
    {
      id: 'words-1-2',
      name: 'words',
      description: {
        format: 1,
        name: 'words',
        settings: { 'topology.ackers': 0 },
        components: [
          {
            ...shared,
            id: 'lines',
            kind: 'spout',
            parallelism: 4,
            streams: [stream],
            inputs: [],
            subscriptions: [],
          },
        ],
        warnings: [],
      },
      settings: { 'topology.ackers': 0, 'topology.workers': 2 },
      desired: null,
      rebalance: null,
      stored: {
        topologyId: 'words-1-2',
        version: 3,
        tasks: [{ component: 'lines', first: 1, last: 4 }],
        slots: [
          {
            supervisor: 'a',
            host: 'a',
            port: 1,
            executors: [
              [1, 1],
              [3, 3],
            ],
            startedMs: 1,
          },
          {
            supervisor: 'b',
            host: 'b',
            port: 1,
            executors: [
              [2, 2],
              [4, 4],
            ],
            startedMs: 1,
          },
        ],
      },
      silentSlots: [],
      uptimeMs: 5,
    },
  ],
};

function plan(from: SchedulingPicture, given: GivenSettings = { all: {}, byTopology: new Map() }) {
  const faults = new InputFaults();
  const imagined = toImagined(mergeDrafts([runningDraft(from)], faults), given, faults);
  faults.throwIfAny();
  return planCluster(imagined!.changed, { strategy: 'balanced', maxRounds: 10 });
}

describe('runningDraft', () => {
  it('is a cluster in which nothing changes while nobody changes it', () => {
    expect(plan(picture)).toMatchObject({ rounds: 0, isSettled: true, moves: [], lacks: [] });
  });

  it('places nothing new on hosts that are blacklisted', () => {
    const [topology] = picture.topologies;
    const fresh = { ...picture, blacklistedHosts: ['b'], topologies: [{ ...topology!, stored: null }] };
    const { after, warnings } = plan(fresh);
    expect(after.machines.map(({ id, executors }) => [id, executors])).toEqual([
      ['a', 4],
      ['b', 0],
    ]);
    expect(warnings.map(({ rule, subject }) => [rule, subject])).toContainEqual(['blacklisted', 'b']);
  });

  it('moves what a silent worker had', () => {
    const [topology] = picture.topologies;
    const silent = plan({ ...picture, topologies: [{ ...topology!, silentSlots: ['b:1'] }] });
    expect(silent.moves.map(({ from, left }) => [from, left])).toEqual([
      [{ supervisor: 'b', port: 1 }, 'worker-silent'],
    ]);
  });

  it('takes another number of workers as a rebalance, which leaves tasks as they are', () => {
    const byTopology = new Map([['words', { 'topology.workers': '4' }]]);
    const { moves, after } = plan(picture, { all: {}, byTopology });
    expect(after.workers).toBe(4);
    expect(moves.map(({ executors, left }) => [executors.length, left])).toEqual([
      [1, 'rebalance'],
      [1, 'rebalance'],
    ]);
  });
});
