import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../engines/index.js';
import { plainColors } from '../colors.js';
import { logJson, logLine } from './log-lines.js';

const entry: LogEntry = {
  from: 's1:6700',
  timeMs: Date.UTC(2026, 10, 30, 12, 5, 6, 7),
  level: 'warn',
  component: 'split',
  task: 7,
  output: null,
  message: 'user-code.failed',
  fields: {
    call: 'process',
    message: 'no "x"',
    stack: 'Error: no\n    at f (/own/a.js:1:1)\n    at g (/app.ts:2:1)',
  },
};
const line = (parts: Partial<LogEntry> = {}): string =>
  logLine({ ...entry, ...parts }, plainColors, { prefixes: ['/own/'] });

describe('a line of a log', () => {
  it('says when, how bad, who and what, and where in the code of the user', () => {
    expect(line()).toBe(
      '2026-11-30 12:05:06.007 WARN  s1:6700 split[7] user-code.failed call=process message="no \\"x\\""\n    at g (/app.ts:2:1)',
    );
  });

  it('keeps the lines of what was printed and nothing that steers the terminal', () => {
    const parts = {
      output: 'log',
      message: 'a\n\u001b[2Jb',
      fields: { thread: 1 },
      component: null,
      task: null,
    };
    expect(line(parts)).toBe('2026-11-30 12:05:06.007 WARN  s1:6700 a\n [2Jb');
  });

  it('is one object with the same keys for every record as JSON', () => {
    expect(Object.keys(logJson(entry))).toEqual([
      'type',
      'time',
      'level',
      'from',
      'component',
      'task',
      'output',
      'message',
      'fields',
    ]);
  });
});
