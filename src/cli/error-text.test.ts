import { describe, expect, it } from 'vitest';
import type { ErrorRecord } from '../base/index.js';
import { plainColors } from './colors.js';
import { errorText, userFrames } from './error-text.js';

const place = { prefixes: ['/isobar/dist/', '/isobar/src/'] };
const stack = `Error: boom
    at fail (/home/me/app.ts:4:9)
    at callUser (/isobar/src/worker/call.ts:1:1)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)`;

describe('errorText', () => {
  it('shows code, facts that the message lacks, frames of the user, and what to do', () => {
    const error: ErrorRecord = {
      code: 'USER_CODE_FAILED',
      message: 'process of "split" threw: boom',
      details: { expected: 'a return', found: 'boom', where: 'split task 3' },
      stack,
    };
    expect(errorText(error, place, plainColors)).toMatchInlineSnapshot(`
      "USER_CODE_FAILED: process of "split" threw: boom
        expected  a return
        where     split task 3
        → Fix the error shown below; its stack points into your file.
          at fail (/home/me/app.ts:4:9)"
    `);
  });

  it('shows the whole stack of a fault of our own, which it asks to report', () => {
    const stack = `Error: x\n    at write (${place.prefixes[0] ?? ''}/keeper.js:1:2)\n    at node:fs:1:1`;
    const lines = (code: 'INTERNAL' | 'STATE_DAMAGED') =>
      errorText({ code, message: 'x', details: {}, stack }, place, plainColors);
    expect(lines('INTERNAL')).toContain('keeper.js:1:2');
    expect(lines('STATE_DAMAGED')).not.toContain('keeper.js');
  });

  it('lists all faults and what the file printed', () => {
    const error: ErrorRecord = {
      code: 'FIELD_UNKNOWN',
      message: 'no field "wrd"',
      details: {
        faults: [
          { message: 'no field "wrd"', where: 'bolt a' },
          { message: 'no field "x"', where: 'bolt b' },
        ],
        output: 'line 1\nline 2',
      },
    };
    const text = errorText(error, place, plainColors);
    expect(text).toContain('  - no field "x" (bolt b)\n');
    expect(text).not.toContain('- no field "wrd"');
    expect(text).toContain('  output of the file:\n    line 1\n    line 2');
  });

  it('says what to do about each kind of fault, once', () => {
    const error: ErrorRecord = {
      code: 'FIELD_KIND_MISMATCH',
      message: '3 faults',
      details: {
        faults: [
          { code: 'FIELD_KIND_MISMATCH' },
          { code: 'FIELD_UNKNOWN' },
          { code: 'FIELD_UNKNOWN' },
          null,
          { code: 'x' },
        ],
      },
    };
    const actions = errorText(error, place, plainColors)
      .split('\n')
      .filter((line) => line.includes('→'));
    expect(actions).toEqual([
      expect.stringMatching(/^ {2}→ FIELD_KIND_MISMATCH: /),
      expect.stringMatching(/^ {2}→ FIELD_UNKNOWN: /),
    ]);
  });

  it('names the class of what was thrown, where that says more than Error', () => {
    const thrown = (first: string): string => {
      const error: ErrorRecord = {
        code: 'USER_CODE_FAILED',
        message: 'x',
        details: {},
        stack: `${first}\n  at a`,
      };
      return errorText(error, place, plainColors).split('\n')[0] ?? '';
    };
    expect(thrown('TypeError: x')).toBe('USER_CODE_FAILED: TypeError: x');
    expect(thrown('Error: x')).toBe('USER_CODE_FAILED: x');
    expect(thrown('TypeError: y')).toBe('USER_CODE_FAILED: x');
  });

  it('does not announce output where there was none', () => {
    const error: ErrorRecord = { code: 'WORKER_LOST', message: 'gone', details: { output: '\n' } };
    expect(errorText(error, place, plainColors)).not.toContain('output of the file');
  });
});

describe('userFrames', () => {
  it('leaves out the parser of the command line', () => {
    const frame = 'at Command.listener (/home/me/node_modules/commander/lib/command.js:1:1)';
    const error: ErrorRecord = { code: 'USAGE', message: 'no', details: {}, stack: `Error\n    ${frame}` };
    expect(userFrames(error, place)).toEqual([]);
  });

  it('takes the frames of the innermost cause that has any', () => {
    const error: ErrorRecord = {
      code: 'BUILDER_THREW',
      message: 'threw',
      details: {},
      stack: 'Error\n    at build (/isobar/src/topology/topology.ts:1:1)',
      cause: { code: 'INTERNAL', message: 'boom', details: {}, stack },
    };
    expect(userFrames(error, place)).toEqual(['at fail (/home/me/app.ts:4:9)']);
  });
});
