/** What the repository may hold: sources, documents and data, never what a tool left behind. */
import { execFileSync } from 'node:child_process';
import { extname } from 'node:path';
import { expect, test } from 'vitest';

const root = new URL('..', import.meta.url).pathname;

/** Kinds of file that people wrote or that a test compares with. */
const KNOWN_KINDS = new Set(['.ts', '.mjs', '.cjs', '.js', '.json', '.md', '.svg', '.snap']);
const KNOWN_NAMES = new Set(['.ci/run', '.gitignore', 'LICENSE']);

test('every tracked file is of a kind that belongs into the repository', () => {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean);
  expect(tracked.length).toBeGreaterThan(100);
  expect(tracked.filter((file) => !KNOWN_KINDS.has(extname(file)) && !KNOWN_NAMES.has(file))).toEqual([]);
});
