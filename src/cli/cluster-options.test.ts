import { describe, expect, it } from 'vitest';
import type { SettingValue } from '../api/index.js';
import { readRebalance, readWaitMs, wantedSettings } from './cluster-options.js';

describe('a wait', () => {
  it('is seconds, or a duration', () => {
    expect([readWaitMs(undefined), readWaitMs('5'), readWaitMs('0'), readWaitMs('2m')]).toEqual([
      undefined,
      5000,
      0,
      120_000,
    ]);
  });

  it.each(['-1', 'soon', '', '5 years', '99999999999'])('is not %j', (text) => {
    expect(() => readWaitMs(text)).toThrow(expect.objectContaining({ code: 'USAGE' }) as Error);
  });
});

describe('settings', () => {
  const setting = (name: string, origin: SettingValue['origin']): SettingValue => ({
    ...{ name: name as SettingValue['name'], origin, value: 1, unit: 'ms', scope: 'topology', what: '' },
  });
  const all = [
    setting('topology.message-timeout', 'default'),
    setting('drain.timeout', 'file'),
    setting('log.files', 'cluster'),
  ];
  const names = (flags: Parameters<typeof wantedSettings>[1]): readonly string[] =>
    wantedSettings(all, flags).map(({ name }) => name);

  it('are those that were changed, those with a text in their name, or both, or all', () => {
    expect(names({ changed: true })).toEqual(['drain.timeout', 'log.files']);
    expect(names({ match: 'TimeOut' })).toEqual(['topology.message-timeout', 'drain.timeout']);
    expect(names({ changed: true, match: 'timeout' })).toEqual(['drain.timeout']);
    expect(names({})).toHaveLength(3);
  });
});

describe('a rebalance', () => {
  it('is read from its flags', () => {
    const flags = {
      wait: '10',
      workers: '4',
      executors: ['a=2', 'b=c=5'],
      resources: '{"a":{"cpu":50}}',
      fromScratch: true,
    };
    expect(readRebalance(flags, 'r')).toEqual({
      workers: 4,
      executors: { a: 2, 'b=c': 5 },
      resources: { a: { cpu: 50 } },
      waitMs: 10_000,
      fromScratch: true,
      preview: false,
      requestId: 'r',
    });
    expect(readRebalance({}, 'r')).toMatchObject({ executors: {}, waitMs: null, fromScratch: false });
  });

  it('leaves it to Nimbus which counts of executors will do, and takes the last one of a component', () => {
    expect(readRebalance({ executors: ['a=7', 'b=0', 'a=-1'] }, 'r')).toMatchObject({
      executors: { a: -1, b: 0 },
    });
  });

  it.each([
    { workers: 'many' },
    { executors: ['a'] },
    { executors: ['=3'] },
    { executors: ['a=x'] },
    { executors: ['a='] },
    { workers: '0' },
    { workers: '2.5' },
    { executors: ['a=2.5'] },
    { executors: ['a=1e400'] },
    { resources: 'cpu=5' },
    { resources: '{"a":5}' },
    { resources: '[]' },
  ])('refuses %j', (flags) => {
    expect(() => readRebalance(flags, 'r')).toThrow(expect.objectContaining({ code: 'USAGE' }) as Error);
  });
});
