import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { checkTypes, type CheckReport, shortMessage } from './check-types.js';
import { describeFaults } from './type-check.js';

const project = realpathSync(mkdtempSync(join(tmpdir(), 'isobar-types-')));
afterAll(() => rmSync(project, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const full = join(project, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

const declarations = write(
  'installation/index.d.ts',
  'export declare function topology(name: string): { name: string };',
);
const check = (file: string): CheckReport => checkTypes(file, declarations);

describe('checkTypes', () => {
  it('knows the types of isobar and of Node without anything installed beside the file', () => {
    const file = write(
      'bare/app.ts',
      "import { topology } from 'isobar';\nimport { join } from 'node:path';\nconsole.log(join('a', process.cwd()));\nexport default topology('x');\n",
    );
    expect(check(file)).toEqual({ faults: [], config: null });
  });

  it('is strict by default and tells places in every file of the user', () => {
    write('strict/lib.ts', "export const n: number = 'text';\n");
    const file = write(
      'strict/app.ts',
      "import { n } from './lib.js';\nexport function f(a) { return a + n; }\n",
    );
    const { faults } = check(file);
    expect(describeFaults(faults, join(project, 'strict'))).toBe(
      "lib.ts:1:14: TS2322: Type 'string' is not assignable to type 'number'.\n" +
        "app.ts:2:19: TS7006: Parameter 'a' implicitly has an 'any' type.",
    );
  });

  it('takes the nearest tsconfig.json, its globals included, and its faults', () => {
    write(
      'configured/tsconfig.json',
      '{ "compilerOptions": { "strict": false, "module": "nodenext" }, "include": ["**/*"] }',
    );
    write('configured/globals.d.ts', 'declare const VERSION: string;');
    write('configured/other.ts', 'const broken: number = "not part of the topology";');
    const file = write('configured/src/app.ts', 'export function f(a) { return a + VERSION; }\n');
    expect(check(file)).toEqual({ faults: [], config: join(project, 'configured/tsconfig.json') });
    write('configured/src/tsconfig.json', '{ "compilerOptions": { "strict": "perhaps" } }');
    expect(check(file).faults).toMatchObject([{ code: 'TS5024', line: 1 }]);
  });

  it('tells the cause of a nested misfit, and what it is about', () => {
    const file = write(
      'nested/app.ts',
      'interface Item { row: { word: string } }\n' +
        'export const read: () => Iterable<Item> = function* () { yield { row: { word: 1 } }; };\n',
    );
    expect(describeFaults(check(file).faults, join(project, 'nested'))).toBe(
      "app.ts:2:14: TS2322: Type 'number' is not assignable to type 'string'.\n" +
        "    The types of 'row.word' are incompatible between these types.",
    );
  });

  it('prints only the sentences that the types have for a misfit', () => {
    const file = write(
      'sentence/app.ts',
      'declare function shuffle(source: \'field "a" is string here, the bolt takes int32\' | ' +
        '\'field "b" is missing in this stream\'): void;\n' +
        "declare function fields(key: { error: 'name at least one field' }): void;\n" +
        'shuffle(1);\nfields(2);\n',
    );
    expect(check(file).faults.map(({ message }) => message)).toEqual([
      'field "a" is string here, the bolt takes int32\nfield "b" is missing in this stream',
      'name at least one field',
    ]);
    const own = `Type '"wrd"' is not assignable to type '"word"'.`;
    expect(shortMessage(own)).toBe(own);
  });

  it('shows the first twenty errors and counts the rest', () => {
    const fault = { file: null, line: 0, column: 0, code: 'TS1', message: 'x' };
    const lines = describeFaults(Array.from({ length: 23 }, () => fault)).split('\n');
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('… and 3 more');
  });
});
