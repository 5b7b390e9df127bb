/**
 * Makes `dist`, which is what gets installed, of what `tsc` has built: the entries of the package as bundles, what they share in
 * `dist/chunks`, and the declarations. A process or thread then loads a few files instead of a hundred, which is a third of
 * its start, and a topology's `isobar` is the very module that the worker uses.
 */
import { cpSync, readdirSync, rmSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Besides those that are called `main.js` or `…-main.js`. */
const PUBLIC_ENTRIES = ['index.js', 'testing/index.js'];
/** Finds the package by its own place, as deep as in the sources (package-root.ts); some entries lie deeper. */
const ROOT_MODULE = 'build/base/package-root.js';
const FOR_DEVELOPERS = /^(bench|faults)\/|^.+\/testing\/|\.(test|conformance)\./;

function filesIn(folder) {
  return readdirSync(`${root}${folder}`, { recursive: true }).filter((file) =>
    statSync(`${root}${folder}/${file}`).isFile(),
  );
}

const built = filesIn('build').filter((file) => !FOR_DEVELOPERS.test(file));
const entries = [...PUBLIC_ENTRIES, ...built.filter((file) => /(^|[/-])main\.js$/.test(file))];
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: entries.map((entry) => `build/${entry}`),
  outbase: 'build',
  outdir: 'dist',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  metafile: true,
  logLevel: 'warning',
});
const home = Object.entries(metafile.outputs).find(([, { inputs }]) => ROOT_MODULE in inputs)?.[0];
if (!home?.startsWith('dist/chunks/'))
  throw new Error(`${ROOT_MODULE} must lie in a chunk; it is in ${home ?? 'no output'}.`);

const declarations = built.filter((file) => file.endsWith('.d.ts'));
for (const file of declarations) cpSync(`${root}build/${file}`, `${root}dist/${file}`);

// What only an earlier build had goes last, so that what both have is there all the time.
const wanted = new Set([...Object.keys(metafile.outputs), ...declarations.map((file) => `dist/${file}`)]);
for (const file of filesIn('dist')) if (!wanted.has(`dist/${file}`)) rmSync(`${root}dist/${file}`);
