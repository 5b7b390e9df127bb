/** Raw settings as plain data: what a topology's file or a submitted description may carry. */
import type { RawSettings } from '../base/index.js';
import { show, showThrown, type TopologyFault } from './faults.js';

const MAX_SETTINGS = 1_000;
const MAX_TEXT_LENGTH = 10_000;
const MAX_LIST_LENGTH = 1_000;

/**
 * Copies settings, leaving out those that are undefined. Whether names and values are right is for `compileSettings` to
 * say, once all layers are known.
 */
export function readSettings(value: unknown, faults: TopologyFault[]): RawSettings {
  const where = 'settings';
  try {
    return readEntries(value, where, faults);
  } catch (thrown) {
    // A getter or a proxy of the file's.
    faults.push({
      code: 'SETTINGS_INVALID',
      message: `the settings cannot be read: ${showThrown(thrown)}`,
      expected: 'an object with plain values',
      found: showThrown(thrown),
      where,
    });
    return {};
  }
}

function readEntries(value: unknown, where: string, faults: TopologyFault[]): RawSettings {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    faults.push({
      code: 'SETTINGS_INVALID',
      message: 'the settings are not an object',
      expected: 'an object',
      found: show(value),
      where,
    });
    return {};
  }
  const entries = Object.entries(value).filter(([, setting]) => setting !== undefined);
  if (entries.length > MAX_SETTINGS) {
    faults.push({
      code: 'SETTINGS_INVALID',
      message: `there are ${entries.length} settings`,
      expected: `at most ${MAX_SETTINGS}`,
      where,
    });
    return {};
  }
  const settings: Record<string, unknown> = {};
  for (const [name, setting] of entries) {
    const copy = copyOf(setting);
    if (copy === undefined || name === '__proto__' || name.length > MAX_TEXT_LENGTH) {
      faults.push({
        code: 'SETTINGS_INVALID',
        message: `${show(name)} is ${show(setting)}`,
        expected: 'a text, a finite number, true, false, null, or a list of these',
        found: show(setting),
        where,
      });
    } else settings[name] = copy;
  }
  return settings;
}

function copyOf(setting: unknown): unknown {
  if (isScalar(setting)) return setting;
  if (!Array.isArray(setting) || setting.length > MAX_LIST_LENGTH) return undefined;
  return setting.every(isScalar) ? [...(setting as unknown[])] : undefined;
}

function isScalar(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= MAX_TEXT_LENGTH;
  return (
    value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
  );
}
