import {
  appendFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LineFollower } from './line-follower.js';

let directory: string;
let seen: string[];
let follower: LineFollower;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-follower-'));
  seen = [];
  follower = new LineFollower((source, line) => seen.push(`${source} ${line}`));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe('LineFollower', () => {
  it('says whether it knew the file', () => {
    const path = join(directory, 'a.log');
    expect(follower.read(path, 'a')).toBe('absent');
    writeFileSync(path, '');
    expect(follower.read(path, 'a')).toBe('new');
    appendFileSync(path, 'one\n');
    expect(follower.read(path, 'a')).toBe('continued');
    renameSync(path, `${path}.1`);
    expect(follower.read(`${path}.1`, 'a')).toBe('continued');
    expect(seen).toEqual(['a one']);
  });

  it('reads a new file from its beginning although it has the inode of one that it knew, and is as long', () => {
    const path = join(directory, 'a.log');
    writeFileSync(path, '{"time":1}\n');
    follower.read(path, 'a');
    // The same inode, as a file system gives it to the next file.
    truncateSync(path);
    writeFileSync(path, '{"time":2}\n{"time":3}\n');
    expect(follower.read(path, 'a')).toBe('new');
    expect(seen).toEqual(['a {"time":1}', 'a {"time":2}', 'a {"time":3}']);
  });

  it('goes on where it is told to', () => {
    const path = join(directory, 'a.log');
    writeFileSync(path, 'one\ntwo\n');
    expect(follower.read(path, 'other')).toBe('new');
    seen = [];
    follower = new LineFollower((source, line) => seen.push(`${source} ${line}`));
    follower.goOn('a', statSync(path).ino, 4);
    expect(follower.read(path, 'a')).toBe('continued');
    expect(seen).toEqual(['a two']);
  });

  it('passes no file of a log by that is renamed while its files are opened, and reads none twice', () => {
    const path = join(directory, 'a.log');
    const paths = [path, `${path}.1`, `${path}.2`, `${path}.3`];
    writeFileSync(`${path}.1`, '1\n');
    writeFileSync(path, '2\n');
    expect(follower.readLog(paths, 'a')).toEqual(['new', 'new']);
    appendFileSync(path, '3\n');
    // Renamed between opening the youngest and the next.
    const renaming: readonly string[] = {
      *[Symbol.iterator]() {
        yield path;
        renameSync(`${path}.1`, `${path}.2`);
        renameSync(path, `${path}.1`);
        writeFileSync(path, '4\n');
        yield* paths.slice(1);
      },
    } as unknown as readonly string[];
    expect(follower.readLog(renaming, 'a')).toEqual(['continued', 'continued']);
    expect(follower.readLog(paths, 'a')).toEqual(['continued', 'continued', 'new']);
    expect(seen).toEqual(['a 1', 'a 2', 'a 3', 'a 4']);
  });
});
