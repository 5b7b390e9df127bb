import { processIdentity } from '../../base/index.js';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import {
  checkStateDirectory,
  createRunDirectory,
  removeRunDirectory,
  sweepDeadRuns,
} from './run-directory.js';

let base: string;
beforeEach(() => (base = realpathSync(mkdtempSync(join(tmpdir(), 'isobar-base-')))));
afterEach(() => rmSync(base, { recursive: true, force: true }));

const alive = processIdentity(process.pid)!;
const dead = { pid: process.pid, startTime: 'another process' };
const nobody = (): boolean => false;

describe('run directories', () => {
  it('are private and never shared', () => {
    const [one, two] = [
      createRunDirectory({ base, keeper: alive }),
      createRunDirectory({ base, keeper: alive }),
    ];
    expect(one.path).not.toBe(two.path);
    for (const path of [one.path, one.socketDirectory]) expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('put sockets elsewhere when their own path is too long for them', () => {
    const long = join(base, 'x'.repeat(80));
    const directory = createRunDirectory({ base: long, keeper: alive });
    expect(directory.socketDirectory.startsWith('/tmp/')).toBe(true);
    expect(removeRunDirectory(directory, { keepLogs: false })).toBe(false);
    expect(existsSync(directory.socketDirectory)).toBe(false);
    expect(readdirSync(long)).toEqual([]);
  });

  it('keep dead letters when they are removed, and nothing else', () => {
    const directory = createRunDirectory({ base, keeper: alive });
    mkdirSync(directory.deadLetterDirectory, { recursive: true });
    mkdirSync(join(directory.stateDirectory, 'coordinator'));
    writeFileSync(join(directory.deadLetterDirectory, 'a.jsonl'), '{}\n');
    expect(removeRunDirectory(directory, { keepLogs: false })).toBe(true);
    expect(readdirSync(directory.path)).toEqual(['state']);
    expect(readdirSync(directory.stateDirectory)).toEqual(['dead-letters']);
  });

  it('are swept when their run is dead and nobody uses them, not when they were kept', () => {
    const living = createRunDirectory({ base, keeper: alive });
    const remains = createRunDirectory({ base, keeper: dead });
    const used = createRunDirectory({ base, keeper: dead });
    const kept = createRunDirectory({ base, keeper: dead });
    mkdirSync(join(base, 'isobar-run-foreign'));
    removeRunDirectory(kept, { keepLogs: true });
    expect(sweepDeadRuns(base, (path) => path === used.path)).toEqual([remains.path]);
    expect(sweepDeadRuns(base, nobody)).toEqual([used.path]);
    for (const { path } of [living, kept]) expect(existsSync(path)).toBe(true);
  });

  it('never remove a state directory of the user', () => {
    const stateDirectory = join(base, 'mine');
    mkdirSync(stateDirectory);
    const directory = createRunDirectory({ base, keeper: alive, stateDirectory });
    expect(removeRunDirectory(directory, { keepLogs: false })).toBe(false);
    expect(readdirSync(base)).toEqual(['mine']);
  });
});

describe('checkStateDirectory', () => {
  it('refuses what cannot be written, naming it', () => {
    const file = join(base, 'file');
    writeFileSync(file, '');
    expect(() => checkStateDirectory(file)).toThrow(
      expect.objectContaining({
        code: 'STATE_DIRECTORY_UNUSABLE',
        details: expect.objectContaining({ where: file }) as object,
      }) as Error,
    );
    expect(() => checkStateDirectory(join(base, 'new/one'))).not.toThrow();
  });

  it.runIf(existsSync('/proc/self'))('returns where nothing can be made although the parent exists', () => {
    for (const path of ['/proc/self/isobar', '/proc/self/isobar/state']) {
      expect(() => checkStateDirectory(path)).toThrow(
        expect.objectContaining({ code: 'STATE_DIRECTORY_UNUSABLE' }) as Error,
      );
    }
  });
});
