import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS, IsobarError, type RawSettings } from '../base/index.js';
import { checkSubmission, overlaySettings, topologyId } from './submission.js';

const STREAM = { name: 'default', fields: [{ name: 'word', kind: 'string', nullable: false }] };
const SHARED = {
  parallelism: 2,
  tasks: null,
  streams: [STREAM],
  stateful: false,
  movable: false,
  tickMs: null,
  manual: false,
  unordered: false,
};
const subscription = (source: string) => ({
  input: 'default',
  source,
  stream: 'default',
  grouping: { kind: 'shuffle' },
});
const bolt = (id: string, sources: readonly string[]) => ({
  ...SHARED,
  id,
  kind: 'bolt',
  inputs: [{ name: 'default', fields: STREAM.fields }],
  subscriptions: sources.map(subscription),
});
const SPOUT = { ...SHARED, id: 'lines', kind: 'spout', inputs: [], subscriptions: [] };

export function described(
  settings: RawSettings,
  bolts: readonly object[] = [bolt('count', ['lines'])],
): unknown {
  return { format: 1, name: 'words', settings, components: [SPOUT, ...bolts], warnings: [] };
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof IsobarError) return error.code;
    throw error;
  }
  return 'none';
}

describe('checkSubmission', () => {
  it('lays what is given over what the file says, and plans with both', () => {
    const checked = checkSubmission(
      described({ 'topology.workers': 2, 'topology.ackers': 3 }),
      { 'topology.workers': 1 },
      DEFAULT_SETTINGS,
    );
    expect(checked.raw).toEqual({ 'topology.workers': 1, 'topology.ackers': 3 });
    expect(checked.plan).toMatchObject({ topologyWorkers: 1, ackers: 3 });
  });

  it.each<[string, unknown, RawSettings]>([
    ['DESCRIPTION_INVALID', { format: 1 }, {}],
    ['SETTINGS_INVALID', described({}), { 'topology.wrokers': 1 }],
    ['SETTINGS_INVALID', described({ 'supervisor.slots': 9 }), {}],
    ['TOO_MANY_WORKERS', described({ 'topology.workers': 3 }), {}],
    [
      'CYCLE_NEEDS_ACKERS',
      described({}, [bolt('a', ['lines', 'b']), bolt('b', ['a'])]),
      { 'topology.ackers': 0 },
    ],
    ['none', described({}, [bolt('a', ['lines', 'b']), bolt('b', ['a'])]), {}],
    ['none', described({}), { 'topology.ackers': 0 }],
  ])('answers %s', (code, description, given) => {
    const cluster = { ...DEFAULT_SETTINGS, 'nimbus.slots-per-topology': 2 };
    expect(codeOf(() => checkSubmission(description, given, cluster))).toBe(code);
  });
});

describe('overlaySettings', () => {
  it('replaces a setting under all of its names', () => {
    const file = { 'topology.max.spout.pending': 5, 'topology.workers': 2 };
    expect(overlaySettings(file, { 'topology.max-spout-pending': 7 })).toEqual({
      'topology.max-spout-pending': 7,
      'topology.workers': 2,
    });
  });

  it('keeps unknown names, so that they can be complained about', () => {
    expect(overlaySettings({ a: 1 }, { b: 2 })).toEqual({ a: 1, b: 2 });
  });
});

describe('topologyId', () => {
  it('is made of name, counter and time', () => {
    expect(topologyId('word-count', 3, 1_700_000_000)).toBe('word-count-3-1700000000');
  });

  it('can be a file name and a path, whatever the name', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1 }),
        fc.nat(),
        fc.nat(),
        (name, counter, seconds) => {
          expect(topologyId(name, counter, seconds)).toMatch(/^[A-Za-z0-9_-]{1,80}$/);
        },
      ),
      { seed: 1 },
    );
  });
});
