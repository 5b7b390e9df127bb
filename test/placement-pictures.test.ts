/** The pictures of docs/balanced-scheduling.md are what plans of the files beside them say. Against the build. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const TIMEOUT_MS = 120_000;

it(
  'the pictures of placements are up to date with their plans',
  async () => {
    const script = join(ROOT, 'tools/render-placements.mjs');
    const run = promisify(execFile)(process.execPath, [script, '--check']);
    await expect(run).resolves.toMatchObject({ stdout: '' });
  },
  TIMEOUT_MS,
);

it('every picture is shown in the document', () => {
  const document = readFileSync(join(ROOT, 'docs/balanced-scheduling.md'), 'utf8');
  const pictures = readdirSync(join(ROOT, 'docs/placements')).filter((name) => name.endsWith('.svg'));
  expect(pictures.length).toBeGreaterThan(0);
  for (const name of pictures) expect(document).toContain(`](placements/${name})`);
});
