import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../base/index.js';
import { StateRecord } from './state-record.js';

const directory = (): string => mkdtempSync(join(tmpdir(), 'state-record-'));

describe('StateRecord', () => {
  it('tells the successor once of each task whose state went with the predecessor, and of none that had left', () => {
    const path = directory();
    const first = new StateRecord(path, silentLogger);
    expect(first.takeLost(3)).toBe(false);
    first.hold([3, 4, 5]);
    first.drop(4);
    const second = new StateRecord(path, silentLogger);
    expect([3, 4, 5, 3].map((task) => second.takeLost(task))).toEqual([true, false, true, false]);
  });

  it('forgets what the predecessor held as soon as it holds something itself', () => {
    const path = directory();
    new StateRecord(path, silentLogger).hold([3]);
    new StateRecord(path, silentLogger).hold([4]);
    const third = new StateRecord(path, silentLogger);
    expect([third.takeLost(3), third.takeLost(4)]).toEqual([false, true]);
  });

  it('knows nothing where its file is damaged, and goes on where it cannot be written', () => {
    const path = directory();
    writeFileSync(join(path, 'tasks-with-state.json'), '{"torn');
    expect(new StateRecord(path, silentLogger).takeLost(3)).toBe(false);
    const missing = new StateRecord(join(path, 'missing'), silentLogger);
    missing.hold([3]);
    expect(missing.takeLost(3)).toBe(false);
  });
});
