/** Packages of users: CommonJS, ES modules, ones that read their own files, and native addons, in real workers. */
import { cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

it('runs a topology that uses every kind of package, type-checked', async () => {
  const packages: Record<string, { fields: object; files: Record<string, string> }> = {
    'old-style': {
      fields: { main: 'index.js', types: 'index.d.ts' },
      files: {
        'index.js': 'exports.double = (n) => n * 2;',
        'index.d.ts': 'export declare function double(n: number): number;',
      },
    },
    'new-style': {
      fields: { type: 'module', exports: { types: './index.d.ts', default: './index.js' } },
      files: {
        'index.js':
          "import { readFileSync } from 'node:fs'; export const text = readFileSync(new URL('./data.txt', import.meta.url), 'utf8');",
        'index.d.ts': 'export declare const text: string;',
        'data.txt': 'read by the package',
      },
    },
    'native-style': {
      fields: { main: 'index.js', types: 'index.d.ts' },
      files: {
        'index.js': "module.exports = require('./node.napi.glibc.node');",
        'index.d.ts': 'export declare function extractStrings(...values: unknown[]): unknown;',
      },
    },
  };
  const addon = dirname(
    createRequire(import.meta.url).resolve('@msgpackr-extract/msgpackr-extract-linux-x64/package.json'),
  );
  cpSync(addon, join(workshop.directory, 'node_modules/native-style'), { recursive: true });
  for (const [name, { fields, files }] of Object.entries(packages)) {
    const manifest = JSON.stringify({ name, version: '1.0.0', ...fields });
    for (const [file, text] of Object.entries({ ...files, 'package.json': manifest })) {
      workshop.write(`node_modules/${name}/${file}`, text);
    }
  }
  workshop.write('greeting.txt', 'read by the topology');
  workshop.write(
    'app.ts',
    `import { readFileSync } from 'node:fs';
import { bolt, spout, t, topology } from 'isobar';
import { extractStrings } from 'native-style';
import { text } from 'new-style';
import { double } from 'old-style';

const source = spout({
  emits: { n: t.int32 },
  *read() { yield { row: { n: 21 }, position: 1 }; },
});
const show = bolt({
  takes: { n: t.int32 },
  process({ n }) {
    const own = readFileSync(new URL('./greeting.txt', import.meta.url), 'utf8');
    console.log([double(n), text, typeof extractStrings, own].join(' | '));
  },
});
export default topology('packages', (b) => { b.bolt('show', show).shuffle(b.spout('source', source)); });
`,
  );
  const { code, stdout, stderr } = await workshop.run(['run', 'app.ts']);
  expect(`${stderr}\n${stdout}`).toContain('42 | read by the package | function | read by the topology');
  expect(code).toBe(0);
});
