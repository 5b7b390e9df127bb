import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../base/index.js';
import { CrashRecord, createAloneMarks } from './crash-record.js';

const directory = (): string => mkdtempSync(join(tmpdir(), 'crash-record-'));

describe('CrashRecord', () => {
  it('counts ends that nobody asked for, and suspects only the task whose row was out alone', () => {
    const path = directory();
    expect(new CrashRecord(path, silentLogger).crashesOf(3)).toBe(0);
    expect(new CrashRecord(path, silentLogger).crashesOf(3)).toBe(1);
    const marks = createAloneMarks(path, silentLogger);
    for (const life of [1, 2, 3]) {
      marks.set(3, { offset: 7 });
      marks.set(5, { offset: life });
      const record = new CrashRecord(path, silentLogger);
      expect(record.crashesOf(3)).toBe(2 + life);
      expect(record.crashesOf(4)).toBe(2);
      // Another row each time: nothing is known of any of them.
      expect(record.crashesOf(5)).toBe(3);
      expect(record.positionOf(3)).toEqual({ offset: 7 });
      expect(record.positionOf(4)).toBeUndefined();
    }
    marks.clear(3);
    expect(new CrashRecord(path, silentLogger).crashesOf(3)).toBe(2);
  });

  it('forgets all but the last crash when a source moves on, and everything after a clean end', () => {
    const path = directory();
    new CrashRecord(path, silentLogger);
    new CrashRecord(path, silentLogger).onProgress();
    const next = new CrashRecord(path, silentLogger);
    expect(next.crashesOf(1)).toBe(1);
    next.onCleanEnd();
    expect(new CrashRecord(path, silentLogger).crashesOf(1)).toBe(0);
  });

  it('knows nothing where its files are damaged or cannot be written', () => {
    const path = directory();
    writeFileSync(join(path, 'unclean-ends'), 'many');
    expect(new CrashRecord(path, silentLogger).crashesOf(1)).toBe(0);
    expect(new CrashRecord(join(path, 'missing'), silentLogger).crashesOf(1)).toBe(0);
  });
});
