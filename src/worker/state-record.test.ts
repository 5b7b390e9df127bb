import { appendFileSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../base/index.js';
import { StateRecord } from './state-record.js';

const FILE = 'tasks-with-state';
const directory = (): string => mkdtempSync(join(tmpdir(), 'state-record-'));

describe('StateRecord', () => {
  it('tells the successor once of each task whose state went with the predecessor, and of none that had left', () => {
    const path = directory();
    const first = new StateRecord(path, silentLogger);
    expect(first.takeLost(3)).toBe(false);
    first.hold([3, 4, 5]);
    first.drop([4, 9]);
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

  it('writes what has changed, not what it holds, and never grows without bound', () => {
    const path = directory();
    const many = Array.from({ length: 20_000 }, (_, index) => index);
    const record = new StateRecord(path, silentLogger);
    record.hold(many);
    const file = join(path, FILE);
    const { size } = statSync(file);
    record.drop([5, 6]);
    record.drop(many.slice(10, 20));
    expect(readFileSync(file, 'latin1').slice(size)).toBe('-5,6\n-10,11,12,13,14,15,16,17,18,19\n');
    for (let round = 0; round < 20_000; round++) {
      record.drop([7]);
      record.hold([7]);
    }
    expect(statSync(file).size).toBeLessThan(2 * size + 64 * 1024);
    const second = new StateRecord(path, silentLogger);
    expect([5, 6, 7, 8, 19, 20].map((task) => second.takeLost(task))).toEqual([
      false,
      false,
      true,
      true,
      false,
      true,
    ]);
  });

  it('leaves out a change that its process did not get to the end of', () => {
    const path = directory();
    new StateRecord(path, silentLogger).hold([31, 4]);
    appendFileSync(join(path, FILE), '-3');
    const second = new StateRecord(path, silentLogger);
    expect([31, 4, 3].map((task) => second.takeLost(task))).toEqual([true, true, false]);
  });

  it('knows nothing where its file is damaged, and goes on where it cannot be written', () => {
    const path = directory();
    writeFileSync(join(path, FILE), '{"3"}\n+3\n');
    expect(new StateRecord(path, silentLogger).takeLost(3)).toBe(false);
    const missing = new StateRecord(join(path, 'missing'), silentLogger);
    missing.hold([3]);
    expect(missing.takeLost(3)).toBe(false);
  });
});
