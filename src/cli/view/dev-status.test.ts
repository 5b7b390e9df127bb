import { describe, expect, it } from 'vitest';
import type { DevStatus } from '../../engines/index.js';
import { devStatusLines } from './dev-status.js';

const supervisor = (name: string, isWanted: boolean): DevStatus['supervisors'][number] => ({
  ...{ name, host: name, rack: 'r', isWanted, isPresent: false, daemon: name, pid: 7, owner: '' },
  ...{ cores: 0, memoryBytes: 0, slots: [] },
});

const lines = (
  topologies: DevStatus['topologies'],
  coordinatorProblem: DevStatus['coordinatorProblem'] = null,
): readonly string[] => {
  const status: DevStatus = {
    coordinatorProblem,
    ...{ directory: '/d', state: 'not-ready', keeper: null, coordinator: 'embedded', controlSocket: '/d/s' },
    ...{
      daemons: [],
      supervisors: [supervisor('s1', true), supervisor('s2', false)],
      topologies,
      problem: null,
    },
  };
  return devStatusLines(status);
};

const rows = (topologies: DevStatus['topologies']): string[] =>
  lines(topologies).filter((line) => /^s\d/.test(line));

describe('the status of a cluster', () => {
  it('calls supervisors away only where Nimbus says so', () => {
    expect(rows([])[0]).toMatch(/ away +0\/0 /);
    expect(rows(null)[0]).toMatch(/ not known +– /);
  });

  it('says beside the coordinator why it does not answer', () => {
    expect(lines([])).toContain('coordinator  embedded');
    expect(lines([], { code: 'COORDINATOR_UNAVAILABLE', message: 'no connection' })).toContain(
      'coordinator  embedded; COORDINATOR_UNAVAILABLE: no connection',
    );
  });

  it('knows of a supervisor that was stopped without Nimbus', () => {
    expect(rows([])[1]).toMatch(/ stopped /);
    expect(rows(null)[1]).toMatch(/ stopped /);
  });
});
