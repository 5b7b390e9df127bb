import { describe, expect, it } from 'vitest';
import type { ClusterSummary, SettingValue, TopologySummary } from '../../api/index.js';
import { configLines, listLines } from './cluster-views.js';

const summary = (parts: Partial<TopologySummary>): TopologySummary => ({
  ...{ id: 'words-1', name: 'words', status: 'ACTIVE', submittedMs: 0, uptimeMs: 9000 },
  ...{ lastChange: 'submitted', lastChangeMs: 0, workers: { desired: 1, actual: 1 } },
  ...{
    executors: { desired: 1, actual: 1 },
    tasks: 1,
    isRebalancing: false,
    waitLeftMs: null,
    problem: null,
  },
  ...parts,
});

describe('the settings', () => {
  const value: SettingValue = {
    ...{ name: 'topology.message-timeout', value: 30_000, unit: 'ms', origin: 'default' },
    scope: 'topology',
    what: 'Time in which a tree of rows has to complete, or it fails and is replayed.',
  };

  it('keep their names and values where a line is short; meanings give way', () => {
    expect(configLines([value], 70)).toEqual([
      'SETTING                   VALUE     FROM     MEANING',
      'topology.message-timeout  30000 ms  default  Time in which a tree of …',
    ]);
  });

  it('keep them even where there is no room for a meaning at all', () => {
    expect(configLines([value], 20)).toEqual([
      'SETTING                   VALUE     FROM',
      'topology.message-timeout  30000 ms  default',
    ]);
  });
});

describe('the list', () => {
  it('says which change of status was the last one', () => {
    const topologies = [
      summary({ status: 'INACTIVE', lastChange: 'status', lastChangeMs: 7000 }),
      summary({ name: 'lines', lastChange: 'rebalanced', lastChangeMs: 6000 }),
    ];
    const slots = { used: 2, total: 4 };
    const all: ClusterSummary = { nimbusId: 'n', topologies, atMs: 9000, slots, supervisors: 1 };
    const lines = listLines(all, 200);
    expect(lines[1]).toContain('  became INACTIVE 2.0 s ago');
    expect(lines[2]).toContain('  rebalanced 3.0 s ago');
  });
});
