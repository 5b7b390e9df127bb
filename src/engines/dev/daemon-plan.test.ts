import { describe, expect, it } from 'vitest';
import { planDaemons } from './daemon-plan.js';
import type { ClusterFile, SupervisorFile } from './dev-directory.js';

function cluster(parts: Partial<ClusterFile> = {}): ClusterFile {
  return {
    format: 1,
    version: '1',
    coordinator: null,
    together: null,
    settings: {},
    workingDirectory: '/',
    ...parts,
  };
}

function supervisor(name: string, isWanted = true): SupervisorFile {
  return { format: 1, spec: { name, host: name, rack: 'r' }, isWanted };
}

function parts(...given: Parameters<typeof planDaemons>): string[] {
  return planDaemons(...given).map(({ id, coordinator, nimbus, supervisor: spec }) => {
    const all = [coordinator ? 'coordinator' : '', nimbus ? 'nimbus' : '', spec?.name ?? ''];
    return `${id}: ${all.filter((part) => part !== '').join(' ')}`;
  });
}

describe('the daemons of a cluster', () => {
  it('are one process for one supervisor', () => {
    expect(parts(cluster({ together: 'local' }), [supervisor('local')])).toEqual([
      'local: coordinator nimbus local',
    ]);
  });

  it('are a process each for several supervisors, those first that others need', () => {
    expect(parts(cluster(), [supervisor('a'), supervisor('b')])).toEqual([
      'coordinator: coordinator',
      'nimbus: nimbus',
      'supervisor-a: a',
      'supervisor-b: b',
    ]);
  });

  it('have no coordinator of their own over another one', () => {
    const coordinator = 'zookeeper://one:2181/isobar';
    expect(parts(cluster({ coordinator, together: 'a' }), [supervisor('a')])).toEqual(['local: nimbus a']);
    expect(parts(cluster({ coordinator }), [supervisor('a'), supervisor('b')])).toEqual([
      'nimbus: nimbus',
      'supervisor-a: a',
      'supervisor-b: b',
    ]);
  });

  it('leave out supervisors that were stopped, and give one that came later a process of its own', () => {
    expect(parts(cluster(), [supervisor('a', false), supervisor('b')])).toEqual([
      'coordinator: coordinator',
      'nimbus: nimbus',
      'supervisor-b: b',
    ]);
    expect(parts(cluster({ together: 'local' }), [supervisor('late'), supervisor('local')])).toEqual([
      'local: coordinator nimbus local',
      'supervisor-late: late',
    ]);
  });
});
