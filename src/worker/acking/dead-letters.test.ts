import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DeadLetterWriter, type DeadLetter, type DeadLetterFiles } from './dead-letters.js';

const LETTER: DeadLetter = {
  topology: 'clicks-1-1767225600',
  component: 'lines',
  task: 4,
  stream: 'default',
  row: { text: 'boom', big: 5n },
  position: { file: 'a', offset: 7 },
  failures: 3,
  failingTask: 9,
  reason: 'user',
  error: { code: 'USER_CODE_FAILED', message: 'no', details: {} },
  atMs: 1_767_225_600_000,
};

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'isobar-dead-letters-'));
});
afterEach(() => {
  fs.rmSync(directory, { recursive: true });
});

function writer(
  options: { files?: DeadLetterFiles; component?: string; topologyId?: string } = {},
): DeadLetterWriter {
  return new DeadLetterWriter({
    directory: path.join(directory, 'dead-letters'),
    topologyId: 'clicks-1-1767225600',
    component: 'lines',
    task: 4,
    ...options,
  });
}

function lines(file: string): unknown[] {
  const text = fs.readFileSync(file, 'utf8');
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line): unknown => JSON.parse(line));
}

/** The real files, with some calls replaced. */
function filesWith(replaced: Partial<DeadLetterFiles>): DeadLetterFiles {
  return { ...(fs as DeadLetterFiles), ...replaced };
}

describe('dead letters', () => {
  it('are appended as one JSON line each, to a file named after topology, component and task', () => {
    const file = writer().append(LETTER);
    expect(path.basename(file)).toBe('clicks-1-1767225600-lines-4.jsonl');
    expect(writer().append({ ...LETTER, position: 8 })).toBe(file);
    const [first, second, ...rest] = lines(file);
    expect(first).toEqual({ ...LETTER, row: { text: 'boom', big: { $bigint: '5' } } });
    expect(second).toMatchObject({ position: 8 });
    expect(rest).toEqual([]);
  });

  it('are on disk, with the names of file and directory, before append returns (D1)', () => {
    const calls: string[] = [];
    const names = new Map<number, string>();
    const files = filesWith({
      openSync: (file, flags, mode) => {
        const descriptor = fs.openSync(file, flags, mode);
        names.set(descriptor, path.relative(directory, file));
        return descriptor;
      },
      writeSync: (descriptor, bytes, offset, length, position) => {
        calls.push(`write ${names.get(descriptor)!}`);
        return fs.writeSync(descriptor, bytes, offset, length, position);
      },
      fsyncSync: (descriptor) => {
        calls.push(`sync ${names.get(descriptor)!}`);
        fs.fsyncSync(descriptor);
      },
    });
    const own = writer({ files });
    const name = path.join('dead-letters', path.basename(own.path));
    own.append(LETTER);
    expect(calls).toEqual([`write ${name}`, `sync ${name}`, 'sync dead-letters', 'sync ']);
    calls.length = 0;
    own.append(LETTER);
    expect(calls).toEqual([`write ${name}`, `sync ${name}`]);
    calls.length = 0;
    // Several cost no more than one.
    own.append(LETTER, { ...LETTER, position: 8 }, { ...LETTER, position: 9 });
    expect(calls).toEqual([`write ${name}`, `sync ${name}`]);
    expect(lines(own.path)).toHaveLength(5);
    expect(lines(own.path).at(-1)).toMatchObject({ position: 9 });
  });

  it('that are large are not all in memory as text at a time, and still wait for the disk once', () => {
    const lengths: number[] = [];
    let syncs = 0;
    const files = filesWith({
      writeSync: (descriptor, bytes, offset, length, position) => {
        lengths.push(length);
        return fs.writeSync(descriptor, bytes, offset, length, position);
      },
      fsyncSync: (descriptor) => {
        syncs++;
        fs.fsyncSync(descriptor);
      },
    });
    const own = writer({ files });
    own.append(LETTER);
    syncs = 0;
    const sizes = [600_000, 600_000, 10, 2_000_000, 10];
    own.append(...sizes.map((size, position) => ({ ...LETTER, row: { text: 'x'.repeat(size) }, position })));
    expect(syncs).toBe(1);
    expect(Math.max(...lengths)).toBeLessThan(2_001_000);
    const written = lines(own.path).slice(1) as DeadLetter[];
    expect(written.map(({ row }) => String(row['text']).length)).toEqual(sizes);
    expect(written.map(({ position }) => position)).toEqual([0, 1, 2, 3, 4]);
  });

  it('leave nothing of a line behind when the disk is full, and can be written again (D2)', () => {
    let room = Infinity;
    const files = filesWith({
      writeSync: (descriptor, bytes, offset, length, position) => {
        if (room === 0)
          throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
        const written = fs.writeSync(descriptor, bytes, offset, Math.min(length, room), position);
        room -= written;
        return written;
      },
    });
    const own = writer({ files });
    own.append(LETTER);
    room = 100;
    let thrown: unknown;
    try {
      own.append({ ...LETTER, position: 2 }, { ...LETTER, position: 3 });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      code: 'DEAD_LETTER_WRITE_FAILED',
      retryable: true,
      details: { where: own.path },
    });
    expect(String((thrown as Error).cause)).toContain('ENOSPC');
    expect(lines(own.path)).toHaveLength(1);
    room = Infinity;
    own.append({ ...LETTER, position: 2 });
    expect(lines(own.path)).toHaveLength(2);
  });

  it('put the names on disk although the very first write failed', () => {
    let fail = true;
    let syncs = 0;
    const files = filesWith({
      fsyncSync: (descriptor) => {
        syncs++;
        if (fail) throw new Error('EIO: i/o error, fsync');
        fs.fsyncSync(descriptor);
      },
    });
    const own = writer({ files });
    expect(() => own.append(LETTER)).toThrow(/could not be written/);
    expect(lines(own.path)).toEqual([]);
    fail = false;
    syncs = 0;
    own.append(LETTER);
    expect(syncs).toBe(3);
  });

  it('cut off the torn line of a crash, even one longer than a read, and keep whole lines', () => {
    const file = writer().append(LETTER);
    fs.appendFileSync(file, `{"topology":"${'x'.repeat(200_000)}`);
    writer().append({ ...LETTER, position: 3 });
    expect(lines(file).map((line) => (line as DeadLetter).position)).toEqual([LETTER.position, 3]);
    fs.writeFileSync(file, 'torn from the start');
    writer().append(LETTER);
    expect(lines(file)).toHaveLength(1);
  });

  it('cut off a torn line that could not be taken back at the time', () => {
    let full = false;
    const files = filesWith({
      writeSync: (descriptor, bytes, offset, length, position) => {
        if (!full) return fs.writeSync(descriptor, bytes, offset, length, position);
        fs.writeSync(descriptor, bytes, offset, 10, position);
        throw new Error('EIO: i/o error, write');
      },
      ftruncateSync: (descriptor, sizeBytes) => {
        if (full) throw new Error('EIO: i/o error, ftruncate');
        fs.ftruncateSync(descriptor, sizeBytes);
      },
    });
    const own = writer({ files });
    own.append(LETTER);
    full = true;
    expect(() => own.append(LETTER)).toThrow(
      expect.objectContaining({ code: 'DEAD_LETTER_WRITE_FAILED' }) as Error,
    );
    full = false;
    own.append({ ...LETTER, position: 4 });
    expect(lines(own.path).map((line) => (line as DeadLetter).position)).toEqual([LETTER.position, 4]);
  });

  it('stay inside their directory and within the length of a name, whatever the component is called', () => {
    const names = ['../../etc/x', 'a/b', '.hidden', 'ümlaut 😀', 'x'.repeat(300), `${'x'.repeat(299)}y`].map(
      (component) => {
        const file = writer({ component, topologyId: '..' }).append(LETTER);
        expect(path.dirname(file)).toBe(path.join(directory, 'dead-letters'));
        return path.basename(file);
      },
    );
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(Buffer.byteLength(name)).toBeLessThan(256);
  });

  it('name the path when the directory cannot be made', () => {
    fs.writeFileSync(path.join(directory, 'dead-letters'), 'in the way');
    expect(() => writer().append(LETTER)).toThrow(
      expect.objectContaining({ code: 'DEAD_LETTER_WRITE_FAILED' }) as Error,
    );
  });
});
