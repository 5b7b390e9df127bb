import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleTopology, stopBundler } from './bundle.js';

let project: string;
let elsewhere: string;

function write(path: string, text: string): string {
  const full = join(project, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

function writePackage(name: string, fields: object, files: Record<string, string>): void {
  write(`node_modules/${name}/package.json`, JSON.stringify({ name, version: '1.0.0', ...fields }));
  for (const [file, text] of Object.entries(files)) write(`node_modules/${name}/${file}`, text);
}

/** Bundles, puts the bundle into a folder far from the project, and returns what running it prints. */
async function run(file: string): Promise<unknown> {
  const bundle = await bundleTopology(file, { isobarEntry: pathToFileURL(join(project, 'fake-isobar.mjs')) });
  const place = join(elsewhere, 'bundle.mjs');
  writeFileSync(place, bundle.code);
  writeFileSync(`${place}.map`, bundle.sourceMap);
  return JSON.parse(execFileSync(process.execPath, ['--enable-source-maps', place], { encoding: 'utf8' }));
}

beforeAll(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), 'isobar-bundle-')));
  elsewhere = realpathSync(mkdtempSync(join(tmpdir(), 'isobar-elsewhere-')));
  write('fake-isobar.mjs', 'export const topology = (name) => ({ name });');
  writePackage(
    'plain-cjs',
    { main: 'index.js' },
    {
      'index.js':
        "const { join } = require('node:path'); exports.place = () => join('a', 'b'); exports.dir = __dirname;",
    },
  );
  writePackage(
    'plain-esm',
    { type: 'module', exports: { '.': { import: './m.js' }, './deep': './deep.js' } },
    {
      'm.js': "import './deep.js'; export const url = import.meta.url; export default 'esm';",
      'deep.js': "export const deep = 'deep';",
    },
  );
  writePackage(
    'reads-files',
    { type: 'module', exports: './index.js' },
    {
      'index.js':
        "import { readFileSync } from 'node:fs'; export const text = readFileSync(new URL('./data.txt', import.meta.url), 'utf8');",
      'data.txt': 'own data',
    },
  );
  writePackage(
    'dual',
    { exports: { '.': { module: './wrong.js', import: './index.mjs', require: './index.cjs' } } },
    {
      'index.mjs': "export const kind = 'import';",
      'index.cjs': "exports.kind = 'require';",
      'wrong.js': "export const kind = 'module';",
    },
  );
  writePackage('with-json', {}, { 'data.json': '{"answer":42}' });
  const require = createRequire(import.meta.url);
  const addon = dirname(require.resolve('@msgpackr-extract/msgpackr-extract-linux-x64/package.json'));
  cpSync(addon, join(project, 'node_modules/native-addon'), { recursive: true });
  writePackage(
    'native-addon',
    { main: 'index.js' },
    {
      'index.js': "module.exports = require('./node.napi.glibc.node');",
    },
  );
});

afterAll(async () => {
  await stopBundler();
  for (const directory of [project, elsewhere]) rmSync(directory, { recursive: true, force: true });
});

describe('bundleTopology', () => {
  it('loads CommonJS and ES packages, subpaths, conditions and JSON from where they are installed', async () => {
    const file = write(
      'src/packages.ts',
      `import { place, dir } from 'plain-cjs';
       import word, { url } from 'plain-esm';
       import { deep } from 'plain-esm/deep';
       import { kind } from 'dual';
       import data from 'with-json/data.json';
       import { basename } from 'path';
       console.log(JSON.stringify([place(), dir, word, url, deep, kind, data.answer, basename('/x/y')]));`,
    );
    expect(await run(file)).toEqual([
      'a/b',
      join(project, 'node_modules/plain-cjs'),
      'esm',
      pathToFileURL(join(project, 'node_modules/plain-esm/m.js')).href,
      'deep',
      'import',
      42,
      'y',
    ]);
  });

  it('finds named exports of CommonJS packages that only show when they run', async () => {
    writePackage(
      'computed',
      { main: 'index.js' },
      {
        'index.js':
          "const names = ['one', 'two']; names.forEach((name, i) => { module.exports[name] = i + 1; });",
      },
    );
    const file = write(
      'src/computed.ts',
      "import whole, { one, two } from 'computed'; console.log(JSON.stringify([one, two, whole.two]));",
    );
    expect(await run(file)).toEqual([1, 2, 2]);
  });

  it('loads a native addon through its package, by path and by require', async () => {
    const file = write(
      'src/addon.ts',
      `import { createRequire } from 'node:module';
       import viaPackage from 'native-addon';
       import byPath from '../node_modules/native-addon/node.napi.glibc.node';
       const require = createRequire(import.meta.url);
       const byRequire = require('../node_modules/native-addon/node.napi.glibc.node');
       console.log(JSON.stringify([viaPackage, byPath, byRequire].map((addon) => typeof addon.extractStrings)));`,
    );
    expect(await run(file)).toEqual(['function', 'function', 'function']);
  });

  it('lets packages and the files of the user read what lies beside them', async () => {
    write('src/lib/beside.txt', 'mine');
    write(
      'src/lib/reader.ts',
      `import { readFileSync } from 'node:fs';
       import { dirname, join } from 'node:path';
       import { fileURLToPath } from 'node:url';
       const __dirname = dirname(fileURLToPath(import.meta.url));
       export const mine = readFileSync(join(__dirname, 'beside.txt'), 'utf8');`,
    );
    write('src/lib/old.cjs', "exports.here = [__dirname, __filename]; exports.kind = require('dual').kind;");
    const file = write(
      'src/reads.ts',
      `#!/usr/bin/env node
import { text } from 'reads-files';
import { mine } from './lib/reader.js';
import { here, kind } from './lib/old.cjs';
console.log(JSON.stringify([text, mine, import.meta.url, here, kind]));`,
    );
    expect(await run(file)).toEqual([
      'own data',
      'mine',
      pathToFileURL(file).href,
      [join(project, 'src/lib'), join(project, 'src/lib/old.cjs')],
      'require',
    ]);
  });

  it('gives import and require of isobar the running installation', async () => {
    write('src/required.cjs', "exports.made = require('isobar').topology('required');");
    const file = write(
      'src/isobar.ts',
      `import { topology } from 'isobar';
       import { made } from './required.cjs';
       console.log(JSON.stringify([topology('imported'), made]));`,
    );
    expect(await run(file)).toEqual([{ name: 'imported' }, { name: 'required' }]);
  });

  it('keeps stacks pointing into the source wherever the bundle lies', async () => {
    write(
      'src/lib/throws.ts',
      'type Ignored = string;\n\nexport function fail(): never {\n  throw new Error("boom");\n}\n',
    );
    const file = write(
      'src/stack.ts',
      "import { fail } from './lib/throws.js';\nconst at = import.meta.url;\nfail();\n",
    );
    const bundle = await bundleTopology(file);
    const place = join(elsewhere, 'bundle.mjs');
    writeFileSync(place, bundle.code);
    writeFileSync(`${place}.map`, bundle.sourceMap);
    const { stderr } = spawnSync(process.execPath, ['--enable-source-maps', place], { encoding: 'utf8' });
    expect(stderr).toContain(`${join(project, 'src/lib/throws.ts')}:4:9`);
    expect(stderr).toContain(`${file}:3:1`);
  });

  it('names its inputs, so that they can be watched', async () => {
    const file = write(
      'src/watched.ts',
      "import { fail } from './lib/throws.js'; import 'plain-cjs'; fail();",
    );
    const { inputs } = await bundleTopology(file);
    expect([...inputs].sort()).toEqual([join(project, 'src/lib/throws.ts'), file]);
  });

  it.each([
    ['a syntax error', 'export const = 1;', /broken\.ts:1:14: Expected identifier/],
    [
      'an import that cannot be resolved',
      "import 'no-such-package';",
      /broken\.ts:1:8: Could not resolve "no-such-package"(?!.*external)[^]*installed[^]*npm install no-such-package$/,
    ],
    [
      'a module of a scoped package that is not installed',
      "import '@no-such/package/deep.js';",
      /npm install @no-such\/package$/,
    ],
    [
      'a relative import that cannot be resolved',
      "import './nowhere.js';",
      /broken\.ts:1:8: Could not resolve[^]*There is no such file beside/,
    ],
  ])('reports %s with its position', async (_what, text, message) => {
    const file = write('src/broken.ts', text);
    await expect(bundleTopology(file)).rejects.toMatchObject({
      code: 'BUNDLE_FAILED',
      message: expect.stringMatching(message) as unknown,
    });
  });

  it('refuses what is not a file to run', async () => {
    for (const path of ['src/missing.ts', 'src', 'node_modules/reads-files/data.txt']) {
      await expect(bundleTopology(join(project, path))).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    }
  });
});
