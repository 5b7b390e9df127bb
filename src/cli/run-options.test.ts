import { describe, expect, it } from 'vitest';
import { readRunOptions, type RunFlags } from './run-options.js';

const flags: RunFlags = { set: [], watch: false, json: false, quiet: false, check: true, keep: false };

describe('readRunOptions', () => {
  it('parts settings of the daemons from those of the topology, aliases included', () => {
    const options = readRunOptions('app.ts', {
      ...flags,
      workers: '2',
      set: [
        'supervisor.slots=3',
        'topology.message.timeout.secs=5',
        'storm.zookeeper.session.timeout = 2000',
      ],
    });
    expect(options.clusterSettings).toEqual({
      'supervisor.slots': '3',
      'storm.zookeeper.session.timeout': '2000',
    });
    expect(options.topologySettings).toEqual({
      'topology.workers': '2',
      'topology.message.timeout.secs': '5',
    });
    expect(options.settings['topology.message-timeout']).toBe(5000);
    expect(options.settings['coordinator.session-timeout']).toBe(2000);
  });

  it('keeps everything behind the first equals sign', () => {
    const { topologySettings } = readRunOptions('app.ts', {
      ...flags,
      set: ['dead-letters.directory=/tmp/a=b'],
    });
    expect(topologySettings).toEqual({ 'dead-letters.directory': '/tmp/a=b' });
  });

  it.each([
    [{ set: ['novalue'] }, 'USAGE'],
    [{ set: ['=1'] }, 'USAGE'],
    [{ set: ['topology.workers=1', 'topology.workers=2'] }, 'USAGE'],
    [{ workers: '1', set: ['topology.workers=2'] }, 'USAGE'],
    [{ json: true, quiet: true }, 'USAGE'],
    [{ state: '' }, 'USAGE'],
    [{ workers: '1.5' }, 'SETTINGS_INVALID'],
    [{ workers: '-1' }, 'SETTINGS_INVALID'],
    [{ set: ['topology.wokers=1'] }, 'SETTINGS_INVALID'],
  ] satisfies [Partial<RunFlags>, string][])('refuses %j with %s', (given, code) => {
    expect(() => readRunOptions('app.ts', { ...flags, ...given })).toThrow(
      expect.objectContaining({ code }) as Error,
    );
  });
});
