import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ERROR_TABLE, SETTINGS_TABLE } from '../src/base/index.js';

const read = (name: string): string => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8');
const firstCells = (text: string): string[] =>
  [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]!);

describe('documentation', () => {
  it('lists exactly the error codes of the code, with their texts', () => {
    const text = read('errors.md');
    expect(firstCells(text)).toEqual(Object.keys(ERROR_TABLE));
    for (const { when, action } of Object.values(ERROR_TABLE)) {
      expect(text).toContain(when.replaceAll('|', '\\|'));
      expect(text).toContain(action.replaceAll('|', '\\|'));
    }
  });

  it('lists exactly the settings of the code, with their meaning', () => {
    const text = read('settings.md');
    expect(firstCells(text)).toEqual(Object.keys(SETTINGS_TABLE));
    for (const { what } of Object.values(SETTINGS_TABLE)) expect(text).toContain(what.replaceAll('|', '\\|'));
  });
});
