/**
 * The package as users get it: packed, installed into an empty folder beside a file of theirs, and run by its command.
 * Nothing of this checkout's node_modules may help, so the folder has none above it.
 */
import { execFile } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from './command.js';

const INSTALL_TIMEOUT_MS = 180_000;
const MAX_PACKED_BYTES = 1_500_000;
const MAX_UNPACKED_BYTES = 8_000_000;

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface PackedFile {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
}

const directory = mkdtempSync(join(placeWithoutModules(), 'isobar-package-'));
const folder = join(directory, 'app');
const home = join(directory, 'home');
let packed: { filename: string; size: number; unpackedSize: number; files: PackedFile[] };

function placeWithoutModules(): string {
  const hasModules = (path: string): boolean =>
    existsSync(join(path, 'node_modules')) || (dirname(path) !== path && hasModules(dirname(path)));
  const place = [tmpdir(), '/var/tmp'].map((path) => realpathSync(path)).find((path) => !hasModules(path));
  if (place === undefined) throw new Error(`a folder without node_modules above it is needed; set TMPDIR`);
  return place;
}

function run(command: string, words: readonly string[], where = folder): Promise<Ended> {
  // Settings of the npm that runs the tests are not those of the user.
  const environment = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|INIT_CWD$|NODE_PATH$)/i.test(name),
  );
  return new Promise((resolve) => {
    execFile(
      command,
      words,
      {
        cwd: where,
        env: { ...Object.fromEntries(environment), NO_COLOR: '1', ISOBAR_HOME: home },
        maxBuffer: 1e8,
      },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      },
    );
  });
}

const isobar = (...words: string[]): Promise<Ended> => run('npx', ['--no-install', 'isobar', ...words]);

beforeAll(async () => {
  mkdirSync(folder);
  mkdirSync(home);
  const packing = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', directory],
    ROOT,
  );
  expect(packing.code, packing.stderr).toBe(0);
  [packed] = JSON.parse(packing.stdout) as [typeof packed];
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const installing = await run('npm', [
    'install',
    join(directory, packed.filename),
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
  ]);
  expect(installing.code, installing.stderr).toBe(0);
}, INSTALL_TIMEOUT_MS);

afterAll(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));

describe('the package', () => {
  it('holds the build with its types, README and LICENSE, and nothing for developers', () => {
    const paths = packed.files.map(({ path }) => path);
    const needed = [
      'package.json',
      'README.md',
      'LICENSE',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/cli/main.js',
      'dist/testing/index.js',
      'dist/testing/index.d.ts',
      'examples/tutorial/first.ts',
    ];
    expect(paths).toEqual(expect.arrayContaining(needed));
    const unwanted = paths.filter(
      (path) =>
        (path.includes('/') && !/^(dist|docs|examples\/tutorial)\//.test(path)) ||
        /\.(test|conformance)\b|^dist\/.+\/testing\/|^dist\/(bench|faults)\/|tsbuildinfo/.test(path),
    );
    expect(unwanted).toEqual([]);
    expect(packed.size).toBeLessThan(MAX_PACKED_BYTES);
    expect(packed.unpackedSize).toBeLessThan(MAX_UNPACKED_BYTES);
  });

  it('names the licence of each package whose code it holds', () => {
    const dist = join(folder, 'node_modules/isobar/dist');
    const scripts = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.js'),
    );
    const packages = scripts.flatMap((path) =>
      [
        ...readFileSync(join(dist, path), 'utf8').matchAll(/^\s*\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm),
      ].map(([, name]) => name),
    );
    expect(packages).toContain('pino');
    const licences = readFileSync(join(dist, 'licences.txt'), 'utf8');
    const named = [...licences.matchAll(/^(\S+) \d+\.\d+\.\d+ \((MIT|ISC)\)$/gm)].map(([, name]) => name);
    expect(named).toEqual([...new Set(packages)].sort());
  });

  it('has a command that can be executed and tells its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(await run(join(folder, 'node_modules/.bin/isobar'), ['--version'])).toMatchObject({
      code: 0,
      stdout: `${version}\n`,
    });
  });
});

describe('beside a file of a user, the installed command', () => {
  it('type-checks the file and runs it to its end', async () => {
    copyFileSync(join(ROOT, 'examples/readme/app.ts'), join(folder, 'app.ts'));
    const { code, stdout, stderr } = await isobar('run', 'app.ts');
    expect(stderr).toContain('checking, bundling and starting app.ts');
    expect(stdout).toContain('the,4');
    expect(stdout).toContain('Every one of 2 rows was acked.');
    expect(code).toBe(0);
  });

  it('points with the stack of a thrown error into the file', async () => {
    const text = readFileSync(join(ROOT, 'examples/tutorial/failing.ts'), 'utf8');
    writeFileSync(join(folder, 'failing.ts'), text);
    const line = 1 + text.split('\n').findIndex((one) => one.includes('seven is always too much'));
    const { code, stderr } = await isobar('run', 'failing.ts');
    expect(stderr).toContain('USER_CODE_FAILED: seven is always too much');
    expect(stderr).toContain(`${join(realpathSync(folder), 'failing.ts')}:${line}:`);
    expect(code).toBe(1);
  });

  it('gives the file the very isobar that its worker runs', async () => {
    writeFileSync(
      join(folder, 'one-copy.ts'),
      `import { bolt, IsobarError, spout, t, topology } from 'isobar';
const numbers = spout({ emits: { n: t.int32 }, *read() { yield { row: { n: 1 }, position: 1 }; } });
const provoke = bolt({
  takes: { n: t.int32 },
  emits: { n: t.int32 },
  process(_row, out) {
    try {
      out.emit({ n: 'no number' } as never);
    } catch (error) {
      console.log('thrown by the worker:', error instanceof IsobarError);
    }
  },
});
export default topology('one-copy', (b) => {
  b.bolt('provoke', provoke).shuffle(b.spout('numbers', numbers));
});
`,
    );
    const { code, stdout, stderr } = await isobar('run', 'one-copy.ts');
    expect(stdout, stderr).toContain('thrown by the worker: true');
    expect(code).toBe(0);
  });

  it('reports a type error with file and line, and runs nothing', async () => {
    const text = readFileSync(join(ROOT, 'examples/readme/app.ts'), 'utf8').replace("['word']", "['wrd']");
    writeFileSync(join(folder, 'typo.ts'), text);
    const line = 1 + text.split('\n').findIndex((one) => one.includes("['wrd']"));
    const { code, stdout, stderr } = await isobar('run', 'typo.ts');
    expect(stderr).toContain('TYPE_CHECK_FAILED');
    expect(stderr).toContain(`typo.ts:${line}:`);
    expect(stderr).toContain('"wrd"');
    expect(stdout).toBe('');
    expect(code).toBe(3);
  });

  it('has the files of the tutorial, with types that are whole in an editor that was told of no others', async () => {
    const tutorial = join(folder, 'tutorial');
    cpSync(join(folder, 'node_modules/isobar/examples/tutorial'), tutorial, { recursive: true });
    const compilerOptions = { module: 'nodenext', target: 'esnext', strict: true, types: [], noEmit: true };
    writeFileSync(join(tutorial, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    const ended = await run('npx', ['--no-install', 'tsc', '-p', tutorial]);
    expect(ended).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('has isobar/testing for tests of topologies', async () => {
    writeFileSync(
      join(folder, 'check.mjs'),
      `import { bolt, t } from 'isobar';
import { driveBolt } from 'isobar/testing';
const twice = bolt({ takes: { n: t.int32 }, emits: { n: t.int32 }, process: ({ n }, out) => out.emit({ n: 2 * n }) });
const driver = driveBolt(twice);
console.log(JSON.stringify((await driver.process({ n: 21 })).emitted));
await driver.close();
`,
    );
    const ended = await run(process.execPath, ['check.mjs']);
    expect(ended).toEqual({ code: 0, stdout: '[{"stream":"default","row":{"n":42}}]\n', stderr: '' });
  });

  it('has types that the compiler and editors find by themselves', async () => {
    const flags = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
    expect(await run(join(folder, 'node_modules/.bin/tsc'), [...flags, 'app.ts'])).toMatchObject({
      code: 0,
      stdout: '',
    });
  });
});
