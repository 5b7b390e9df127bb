import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LogFilter } from './log-entry.js';
import { daemonLogs, topologyWithLogs, workerLogs } from './log-places.js';
import { LogReader } from './log-reader.js';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-logs-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A file of a worker of a run. */
function file(worker: string, name = 'worker.log'): string {
  const own = join(directory, 'supervisor', 'workers', worker);
  mkdirSync(own, { recursive: true });
  return join(own, name);
}

function record(second: number, msg: string, parts: object = {}): string {
  const time = new Date(second * 1000).toISOString();
  return `${JSON.stringify({ level: 30, time, ...parts, msg })}\n`;
}

function reader(filter: LogFilter = {}): LogReader {
  return new LogReader(
    () => workerLogs(directory, 'words-1-99'),
    filter,
    () => 7000,
  );
}

function messages(entries: Iterable<{ readonly from: string; readonly message: string }>): string[] {
  return [...entries].map(({ from, message }) => `${from} ${message}`);
}

describe('reading logs', () => {
  it('gives the records of all workers in the order of time, older files first', () => {
    writeFileSync(file('words-1-99-6700', 'worker.log.1'), record(1, 'a') + record(3, 'c'));
    writeFileSync(file('words-1-99-6700'), record(5, 'e'));
    writeFileSync(file('words-1-99-6701'), record(2, 'b') + record(4, 'd') + record(6, 'f'));
    writeFileSync(file('words-2-99-6702'), record(2, 'of another topology'));
    expect(messages(reader().stored())).toEqual([
      'local:6700 a',
      'local:6701 b',
      'local:6700 c',
      'local:6701 d',
      'local:6700 e',
      'local:6701 f',
    ]);
  });

  it('gives them in the order of time although the threads of a worker write past each other', () => {
    const shuffled = Array.from({ length: 5000 }, (_, index) => index * 0.001 + (index % 7 === 0 ? 0.9 : 0));
    writeFileSync(
      file('words-1-99-6700'),
      shuffled.map((second) => record(10 + second, 'x')).join('') + record(3, 'after the clock was set back'),
    );
    writeFileSync(file('words-1-99-6701'), record(11, 'y') + record(12, 'y'));
    const times = [...reader().stored()].map(({ timeMs }) => timeMs);
    expect(times).toHaveLength(5003);
    const young = times.filter((timeMs) => timeMs >= 10_000);
    expect(young).toEqual(young.toSorted((a, b) => a - b));
  });

  it('goes on behind what it has given, over renames and with workers that come later', () => {
    const path = file('words-1-99-6700');
    writeFileSync(path, record(1, 'a') + record(2, 'b').slice(0, 10));
    const logs = reader();
    expect(messages(logs.stored())).toEqual(['local:6700 a']);
    appendFileSync(path, record(2, 'b').slice(10) + record(3, 'c'));
    renameSync(path, `${path}.1`);
    writeFileSync(path, record(5, 'e'));
    writeFileSync(file('words-1-99-6701'), record(4, 'd'));
    expect(messages(logs.added())).toEqual(['local:6700 b', 'local:6700 c', 'local:6701 d', 'local:6700 e']);
    expect(logs.added()).toEqual([]);
  });

  it('leaves out what is older, of another component, or less than asked for', () => {
    const path = file('words-1-99-6700');
    writeFileSync(
      path,
      record(1, 'old', { component: 'split' }) +
        record(5, 'mine', { component: 'split', level: 40 }) +
        record(5, 'small', { component: 'split', level: 20 }) +
        record(5, 'theirs', { component: 'count', level: 50 }),
    );
    writeFileSync(`${path}.1`, record(5, 'in a file that was changed long ago', { component: 'split' }));
    utimesSync(`${path}.1`, 1, 1);
    const filter: LogFilter = { sinceMs: 2000, component: 'split', level: 'info' };
    expect(messages(reader(filter).stored())).toEqual(['local:6700 mine']);
    const logs = reader({ sinceMs: 2000 });
    expect(messages(logs.stored())).toHaveLength(3);
    expect(logs.added()).toEqual([]);
  });

  it('reads what a user printed, fields of an event, and lines that are no records', () => {
    writeFileSync(
      file('words-1-99-6700'),
      record(1, 'two\nlines', { component: 'split', task: 7, output: 'warn', level: 40, thread: 0 }) +
        record(2, 'worker.started', { port: 6700, topology: 'words-1-99' }) +
        '{"level":50,"ti\n\n',
    );
    const raw = file('words-1-99-6700', 'output.log');
    writeFileSync(raw, 'Segmentation fault\n');
    utimesSync(raw, 3, 3);
    utimesSync(file('words-1-99-6700'), 4, 4);
    const none = { component: null, task: null, output: null };
    const from = 'local:6700';
    expect([...reader().stored()]).toEqual([
      {
        from,
        timeMs: 1000,
        level: 'warn',
        component: 'split',
        task: 7,
        output: 'warn',
        message: 'two\nlines',
        fields: { thread: 0 },
      },
      { ...none, from, timeMs: 2000, level: 'info', message: 'worker.started', fields: { port: 6700 } },
      {
        ...none,
        from,
        timeMs: 3000,
        level: 'info',
        output: 'raw',
        message: 'Segmentation fault',
        fields: {},
      },
      { ...none, from, timeMs: 4000, level: 'info', output: 'raw', message: '{"level":50,"ti', fields: {} },
    ]);
  });

  it('keeps characters whole that lie over the border of two chunks', () => {
    const text = `${'x'.repeat(65_480)}grüße`;
    for (let shift = 0; shift < 4; shift++) {
      writeFileSync(file('words-1-99-6700'), record(1, 'y'.repeat(shift) + text) + record(2, 'end'));
      const [first, last] = [...reader().stored()];
      expect([first?.message.endsWith('grüße'), last?.message]).toEqual([true, 'end']);
    }
  });
});

describe('places of logs', () => {
  it('are found without any daemon: the last submitted topology of a name, and the daemon of a run', () => {
    for (const worker of ['my_app-1-98-6700', 'my_app-2-99-6700', 'my_app-10-99-6701', 'my_app-x-1-99-6700'])
      writeFileSync(file(worker), '');
    writeFileSync(join(directory, 'daemon.log'), record(1, 'daemon.ready'));
    writeFileSync(join(directory, 'other.log'), '');
    expect(topologyWithLogs(directory, 'my app')).toBe('my_app-10-99');
    expect(topologyWithLogs(directory, 'app')).toBeUndefined();
    expect(daemonLogs(directory).map(({ name }) => name)).toEqual(['daemon']);
  });
});
