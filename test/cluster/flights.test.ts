/** The example of docs/flights.md, by the script that the page tells users to run. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { ROOT, until, Workshop } from './command.js';

const workshop = new Workshop();
afterEach(() => workshop.close());

it('flights and airports, joined on daemons and rebalanced meanwhile, are what a plain loop finds', async () => {
  const temporary = join(workshop.home, 't');
  mkdirSync(temporary);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['examples/flights/operate.mjs'], {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: temporary },
  });
  expect(stderr).toBe('');
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toBe('submitted on two workers');
  expect(lines[1]).toMatch(
    /^rebalanced to four workers: [1-9]\d* tasks moved, \d+ of 231083 flights read by then$/,
  );
  expect(lines.slice(2)).toEqual([
    '231083 flights from 57 states: equal to the plain loop',
    'without a state: 12 airports, 0 flights, mean delay null',
    'killed',
  ]);
  await until('no process is left', () => workshop.processes().length === 0);
  expect(readdirSync(temporary)).toEqual([]);
}, 300_000);
