import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LogFile, type LogFileOptions } from './log-file.js';

/** Called before each rename, as if another thread ran just then. */
let beforeRename: (() => void) | undefined;
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  return {
    ...fs,
    renameSync: (from: string, to: string) => {
      beforeRename?.();
      fs.renameSync(from, to);
    },
  };
});

let directory: string;
let nowMs: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-log-'));
  nowMs = 0;
  beforeRename = undefined;
});
afterEach(() => rmSync(directory, { recursive: true }));

function open(options: Partial<LogFileOptions> = {}): LogFile {
  return new LogFile({
    path: join(directory, 'a.log'),
    maxBytes: 100,
    maxFiles: 3,
    maxRecordsPerSecond: null,
    nowMs: () => nowMs,
    ...options,
  });
}

function read(name = 'a.log'): string {
  return readFileSync(join(directory, name), 'utf8');
}

describe('a log file', () => {
  it('never takes more of the disk than its files may, and keeps the youngest records', () => {
    const log = open();
    for (let index = 0; index < 100; index++) log.write(`record ${String(index).padStart(3, '0')}\n`);
    expect(readdirSync(directory).sort()).toEqual(['a.log', 'a.log.1', 'a.log.2']);
    const kept = read('a.log.2') + read('a.log.1') + read();
    expect(kept.length).toBeLessThanOrEqual(3 * 111);
    const numbers = kept
      .trimEnd()
      .split('\n')
      .map((line) => Number(line.slice(7)));
    expect(numbers.at(-1)).toBe(99);
    expect(numbers).toEqual(numbers.map((_, place) => numbers[0]! + place));
    expect(log.dropped).toBe(0);
  });

  it('is cut where only one file is kept', () => {
    const log = open({ maxFiles: 1 });
    for (let index = 0; index < 30; index++) log.write(`record ${index}\n`);
    expect(readdirSync(directory)).toEqual(['a.log']);
    expect(read().length).toBeLessThan(120);
    expect(read()).toContain('record 29\n');
  });

  it('goes on behind what an earlier process has written, and counts it', () => {
    open().write(`${'x'.repeat(99)}\n`);
    const log = open();
    log.write('next\n');
    expect([read('a.log.1').length, read()]).toEqual([100, 'next\n']);
  });

  it('is one file for all that share it: none writes on to a file that another has renamed', () => {
    const shared = LogFile.allocateShared();
    const [one, two] = [open({ shared }), open({ shared })];
    for (let index = 0; index < 60; index++) {
      one.write(`one ${index} of all\n`);
      two.write(`two ${index} of all\n`);
    }
    const kept = (read('a.log.2') + read('a.log.1') + read()).trimEnd().split('\n');
    expect(kept.slice(-2)).toEqual(['one 59 of all', 'two 59 of all']);
    expect(kept).toEqual(
      kept.map((_, place) => (kept[0]!.startsWith('one') ? name(place) : name(place + 1))),
    );
    function name(place: number): string {
      const first = Number(kept[0]!.split(' ')[1]);
      return `${place % 2 === 0 ? 'one' : 'two'} ${first + Math.floor(place / 2)} of all`;
    }
  });

  it('drops what comes too fast, counts it, and says so when it writes again', () => {
    const log = open({ maxBytes: 10_000, maxRecordsPerSecond: 2 });
    for (let index = 0; index < 5; index++) log.write(`${index}\n`);
    expect([read(), log.dropped]).toEqual(['0\n1\n', 3]);
    nowMs = 1000;
    log.write('5\n');
    const [, , told, last] = read().split('\n');
    expect(JSON.parse(told!)).toMatchObject({ level: 40, count: 3, msg: 'log.dropped' });
    expect(last).toBe('5');
  });

  it('counts what could not be written, throws nothing, and goes on when it can be', () => {
    const log = open({ path: join(directory, 'gone', 'a.log') });
    log.write('one\n');
    expect([log.dropped, existsSync(join(directory, 'gone'))]).toEqual([1, false]);
    expect([log.unwritten, log.lastFailure]).toEqual([1, 'ENOENT']);
    mkdirSync(join(directory, 'gone'));
    log.write('two\n');
    expect(log.dropped).toBe(2);
    nowMs = 1000;
    log.write('three\n');
    const lines = read('gone/a.log').trimEnd().split('\n');
    expect(JSON.parse(lines[0]!)).toMatchObject({ count: 2 });
    expect(lines[1]).toBe('three');
  });

  it('loses nothing when a thread is slow in the middle of a rename and others write whole files meanwhile', () => {
    const shared = LogFile.allocateShared();
    const [slow, other] = [open({ shared, maxFiles: 8 }), open({ shared, maxFiles: 8 })];
    const written: string[] = [];
    const write = (log: LogFile): void => {
      const record = `record ${written.length}\n`;
      written.push(record);
      log.write(record);
    };
    for (let index = 0; index < 25; index++) write(index % 2 === 0 ? slow : other);
    beforeRename = () => {
      // Every rename of the one that is slow; those of the other are as fast as ever.
      beforeRename = undefined;
      for (let index = 0; index < 20; index++) write(other);
      nowMs += 60_000;
      for (let index = 0; index < 20; index++) write(other);
    };
    for (let index = 0; index < 20; index++) write(slow);
    const files = readdirSync(directory).sort().reverse();
    // The record whose file is begun by the slow one comes behind those that were written meanwhile.
    expect(files.flatMap((name) => read(name).match(/record \d+\n/gu) ?? []).sort()).toEqual(
      [...written].sort(),
    );
    expect([slow.unwritten, other.unwritten]).toEqual([0, 0]);
  });

  it('goes on renaming after a thread that was ended in the middle of it, and one that was only slow stops then', () => {
    const shared = LogFile.allocateShared();
    const [gone, other] = [open({ shared, maxFiles: 8 }), open({ shared, maxFiles: 8 })];
    for (let index = 0; index < 20; index++) gone.write(`early ${index}\n`);
    let late = 0;
    beforeRename = () => {
      beforeRename = undefined;
      for (; late < 200; late++) {
        other.write(`later ${late}\n`);
        nowMs += 100;
      }
    };
    while (late === 0) gone.write('the last of the slow one\n');
    const names = readdirSync(directory);
    expect(names.length).toBeGreaterThan(5);
    expect(names).toContain('a.log');
    const kept = names.flatMap((name) => read(name).match(/later \d+\n/gu) ?? []);
    expect(kept.length).toBe(new Set(kept).size);
    expect(kept).toContain('later 199\n');
    expect(read()).toContain('the last of the slow one');
  });

  it('begins no new file because of a size that another thread noted too late', () => {
    const shared = LogFile.allocateShared();
    const log = open({ shared });
    log.write('one\n');
    new Int32Array(shared)[2] = 1000;
    log.write('two\n');
    expect([readdirSync(directory), read()]).toEqual([['a.log'], 'one\ntwo\n']);
  });
});
