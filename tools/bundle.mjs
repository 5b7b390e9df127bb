/**
 * Makes `dist`, which is what gets installed, of what `tsc` has built: the entries of the package as bundles, what they share in
 * `dist/chunks`, and the declarations. A process or thread then loads a few files instead of a hundred, which is a third of
 * its start, and a topology's `isobar` is the very module that the worker uses.
 *
 * Packages that are `dependencies` get installed beside it; of those that are `devDependencies` what the product uses is in the
 * bundles (finding and reading their many files took a tenth of a worker's start), and their licences in `dist/licences.txt`.
 */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Besides those that are called `main.js` or `…-main.js`. */
const PUBLIC_ENTRIES = ['index.js', 'testing/index.js'];
/** Finds the package by its own place, as deep as in the sources (package-root.ts); some entries lie deeper. */
const ROOT_MODULE = 'build/base/package-root.js';
const LICENCES = 'dist/licences.txt';
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
  external: Object.keys(JSON.parse(readFileSync(`${root}package.json`, 'utf8')).dependencies),
  // Bundled CommonJS packages ask for Node's own modules.
  banner: {
    js: "import { createRequire as createBundleRequire } from 'node:module';\nconst require = createBundleRequire(import.meta.url);",
  },
  metafile: true,
  logLevel: 'warning',
});
const home = Object.entries(metafile.outputs).find(([, { inputs }]) => ROOT_MODULE in inputs)?.[0];
if (!home?.startsWith('dist/chunks/'))
  throw new Error(`${ROOT_MODULE} must lie in a chunk; it is in ${home ?? 'no output'}.`);

const declarations = built.filter((file) => file.endsWith('.d.ts'));
for (const file of declarations) cpSync(`${root}build/${file}`, `${root}dist/${file}`);

const bundled = Object.values(metafile.outputs)
  .flatMap(({ inputs }) => Object.keys(inputs))
  .flatMap((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []);
writeFileSync(`${root}${LICENCES}`, [...new Set(bundled)].sort().map(licenceOf).join('\n'));

/** Name, version and the full text, as these licences ask for it. */
function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${root}${folder}/package.json`, 'utf8'));
  const file = readdirSync(`${root}${folder}`).find((one) => /^licen[cs]e/i.test(one));
  if (file === undefined) throw new Error(`${folder} is bundled and has no file with its licence.`);
  const text = readFileSync(`${root}${folder}/${file}`, 'utf8').trim();
  return `${name} ${version} (${license})\n\n${text}\n\n${'-'.repeat(80)}\n`;
}

// What only an earlier build had goes last, so that what both have is there all the time.
const wanted = new Set([
  ...Object.keys(metafile.outputs),
  LICENCES,
  ...declarations.map((file) => `dist/${file}`),
]);
for (const file of filesIn('dist')) if (!wanted.has(`dist/${file}`)) rmSync(`${root}dist/${file}`);
