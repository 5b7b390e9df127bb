import { describe, expect, it } from 'vitest';
import { IsobarError } from './errors.js';
import {
  aliasNotes,
  canonicalSettingName,
  compileSettings,
  DEFAULT_SETTINGS,
  parseDurationMs,
  type SettingFault,
} from './settings.js';

const faultsOf = (...layers: Record<string, unknown>[]): string[] => {
  try {
    compileSettings(...layers);
  } catch (error) {
    if (!(error instanceof IsobarError)) throw error;
    expect(error.code).toBe('SETTINGS_INVALID');
    return (error.details['faults'] as SettingFault[]).map(({ message }) => message);
  }
  return [];
};

describe('compileSettings', () => {
  it('gives the defaults when nothing is set', () => {
    expect(compileSettings()).toEqual(DEFAULT_SETTINGS);
  });

  it('lets a later layer win', () => {
    expect(compileSettings({ 'topology.workers': 2 }, { 'topology.workers': '3' })['topology.workers']).toBe(
      3,
    );
  });

  it('understands the names of Storm and Flink in their units', () => {
    const settings = compileSettings({
      'topology.message.timeout.secs': 7,
      'topology.acker.executors': 0,
      'execution.buffer-timeout': 5,
      'topology.max.spout.pending': '100',
    });
    expect(settings['topology.message-timeout']).toBe(7000);
    expect(settings['topology.ackers']).toBe(0);
    expect(settings['messaging.flush-interval']).toBe(5);
    expect(settings['topology.max-spout-pending']).toBe(100);
    expect(canonicalSettingName('topology.acker.executors')).toBe('topology.ackers');
  });

  it('are noted where they are given by a name of another system', () => {
    const flink = { 'taskmanager.load-balance.mode': 'MIN_RESOURCES', 'load-balance.load': 'tasks' };
    expect(aliasNotes(flink, { 'topology.acker.executors': 2 }, flink)).toEqual([
      `Settings are taken from other names: Flink's "taskmanager.load-balance.mode" as load-balance.mode "min-resources", Storm's "topology.acker.executors" as topology.ackers.`,
    ]);
    expect(aliasNotes({ 'load-balance.mode': 'tasks' }, {})).toEqual([]);
  });

  it("translates Flink's names of load-balance modes, old ones too", () => {
    const mode = (settings: Record<string, unknown>): unknown =>
      compileSettings(settings)['load-balance.mode'];
    expect(mode({})).toBe('tasks');
    expect(mode({ 'taskmanager.load-balance.mode': 'MIN_RESOURCES' })).toBe('min-resources');
    expect(mode({ 'cluster.evenly-spread-out-slots': true })).toBe('slots');
    expect(mode({ 'cluster.evenly-spread-out-slots': 'false' })).toBe('none');
    expect(faultsOf({ 'cluster.evenly-spread-out-slots': 'yes' })[0]).toContain(
      'cluster.evenly-spread-out-slots: expected one of true, false, found "yes"',
    );
    expect(faultsOf({ 'taskmanager.load-balance.mode': 'BALANCED' })[0]).toContain(
      'expected one of TASKS, SLOTS, NONE, MIN_RESOURCES, found "BALANCED"',
    );
    expect(faultsOf({ 'load-balance.mode': 'TASKS' })[0]).toContain(
      'expected one of tasks, slots, none, min-resources',
    );
  });

  it('reports every fault at once, with the closest name for an unknown setting', () => {
    const faults = faultsOf({
      'topology.workerz': 1,
      'topology.workers': 1.5,
      'topology.message-timeout': 'soon',
      'spout.pending-limit': -1,
      'topology.executor-threads': 'many',
    });
    expect(faults).toHaveLength(5);
    expect(faults[0]).toContain('did you mean "topology.workers"');
    expect(faults[1]).toContain('whole number');
    expect(faults[2]).toContain('"10s"');
    // A name that is like none gets no advice that would mislead.
    expect(faultsOf({ nothing: 1 })[0]).toBe('unknown setting "nothing"; `isobar config` lists them all');
  });

  it('refuses a duration in text without a unit under its own name, and takes it in the unit of an alias', () => {
    expect(faultsOf({ 'topology.message-timeout': '10' })[0]).toContain('"10s"');
    expect(compileSettings({ 'topology.message.timeout.secs': '10' })['topology.message-timeout']).toBe(
      10_000,
    );
    expect(compileSettings({ 'topology.message-timeout': 10 })['topology.message-timeout']).toBe(10);
  });

  it('refuses two names of one setting in one layer', () => {
    expect(faultsOf({ 'topology.ackers': 1, 'topology.acker.executors': 2 })[0]).toContain(
      'the same setting',
    );
  });

  it('refuses contradictions instead of adjusting them', () => {
    expect(faultsOf({ 'worker.restart-backoff': '20s', 'worker.restart-backoff-max': '10s' })[0]).toContain(
      'must not be greater',
    );
  });

  it('refuses NaN, infinities and null where a value is needed', () => {
    expect(faultsOf({ 'topology.workers': Number.NaN })).toHaveLength(1);
    expect(faultsOf({ 'topology.workers': Infinity })).toHaveLength(1);
    expect(faultsOf({ 'topology.workers': null })).toHaveLength(1);
    expect(compileSettings({ 'topology.ackers': null })['topology.ackers']).toBeNull();
  });
});

describe('parseDurationMs', () => {
  it.each([
    ['250ms', 250],
    ['10s', 10_000],
    ['1.5m', 90_000],
    [30, 30],
    ['7', undefined],
    ['10 parsecs', undefined],
    ['', undefined],
    [null, undefined],
  ])('reads %j as %j', (raw, expected) => {
    expect(parseDurationMs(raw)).toBe(expected);
  });
});
