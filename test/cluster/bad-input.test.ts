/** What is wrong with a file or a command line ends with a stable code, a place, and what to do; nothing is left behind. */
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ERROR_TABLE, type ErrorCode } from '../../src/base/index.js';
import { CLI, numbersApp, until, Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

const IMPORTS = "import { bolt, spout, t, topology } from 'isobar';\n";
const PARTS = `${IMPORTS}
const source = spout({ emits: { value: t.int64 }, *read() { yield { row: { value: 1 }, position: 1 }; } });
const sink = bolt({ takes: { value: t.int64 }, process() {} });
`;

interface Case {
  readonly what: string;
  readonly text: string;
  readonly code: ErrorCode;
  readonly says: RegExp;
  readonly flags?: readonly string[];
  readonly exitCode?: number;
}

const cases: readonly Case[] = [
  { what: 'a syntax error', text: 'export const = 1;\n', code: 'BUNDLE_FAILED', says: /app\.ts:1:14: / },
  {
    what: 'an import that cannot be resolved',
    text: `import 'no-such-package';\n${numbersApp(1)}`,
    code: 'BUNDLE_FAILED',
    says: /app\.ts:1:8: Could not resolve "no-such-package"/,
  },
  {
    what: 'a type error',
    text: `${numbersApp(1)}\nconst wrong: number = 'text';\n`,
    code: 'TYPE_CHECK_FAILED',
    says: /app\.ts:\d+:7: TS2322: /,
    flags: [],
  },
  {
    what: 'a subscription that the types refuse',
    text: `${PARTS}export default topology('x', (b) => { b.bolt('sink', sink).fields(b.spout('s', source), ['valeu']); });\n`,
    code: 'TYPE_CHECK_FAILED',
    says: /valeu/,
    flags: [],
  },
  {
    what: 'no default export',
    text: 'export const x = 1;\n',
    code: 'NO_DEFAULT_EXPORT',
    says: /expected +export default/,
  },
  {
    what: 'a default export of another kind',
    text: 'export default 42;\n',
    code: 'NOT_A_TOPOLOGY',
    says: /42/,
  },
  {
    what: 'a file that throws',
    text: "const limit: number = 1;\nfunction check(): void { throw new RangeError('no luck'); }\ncheck();\nexport default limit;\n",
    code: 'EVALUATION_FAILED',
    says: /RangeError: no luck[\s\S]*at check .*app\.ts:2:/,
  },
  {
    what: 'a rejection that nobody awaits',
    text: `Promise.reject(new Error('left alone'));\n${numbersApp(1)}`,
    code: 'EVALUATION_FAILED',
    says: /left alone/,
  },
  {
    what: 'an await that nothing settles',
    text: 'await new Promise(() => undefined);\nexport default 1;\n',
    code: 'EVALUATION_FAILED',
    says: /an await at its top that nothing will ever settle/,
  },
  {
    what: 'a file that answers for its process',
    text: "process.send?.('ready');\nprocess.disconnect?.();\nexport default 42;\n",
    code: 'NOT_A_TOPOLOGY',
    says: /42/,
  },
  {
    what: 'a file that ends the process',
    text: "console.log('printed before');\nprocess.exit(7);\n",
    code: 'EVALUATION_FAILED',
    says: /exit code 7[\s\S]*printed before/,
  },
  {
    what: 'a file that hangs',
    text: 'for (;;);\n',
    code: 'EVALUATION_TIMEOUT',
    says: /longer than 700 ms/,
    flags: ['--no-check', '--set', 'submit.evaluation-timeout=700ms'],
  },
  {
    what: 'a file that waits for ever',
    text: `await new Promise((resolve) => setTimeout(resolve, 1e9));\n${numbersApp(1)}`,
    code: 'EVALUATION_TIMEOUT',
    says: /longer than 700 ms/,
    flags: ['--no-check', '--set', 'submit.evaluation-timeout=700ms'],
  },
  {
    what: 'a file that waits for what never comes',
    text: 'await new Promise(() => {});\nexport default 1;\n',
    code: 'EVALUATION_FAILED',
    says: /exit code 13/,
  },
  {
    what: 'a builder that throws',
    text: `${IMPORTS}export default topology('x', () => {\n  throw new Error('not today');\n});\n`,
    code: 'BUILDER_THREW',
    says: /not today[\s\S]*app\.ts:3:/,
  },
  {
    what: 'a builder that gives another graph the second time',
    text: `${PARTS}let calls = 0;\nexport default topology('x', (b) => { b.bolt('sink', sink, { parallelism: ++calls }).shuffle(b.spout('s', source)); });\n`,
    code: 'GRAPH_NOT_DETERMINISTIC',
    says: /"parallelism":2/,
  },
  {
    what: 'a graph that differs in the worker',
    text: `${PARTS}const chance = process.pid;\nexport default topology('x', (b) => { b.bolt('sink', sink).shuffle(b.spout('s' + chance, source)); });\n`,
    code: 'GRAPH_MISMATCH',
    says: /worker/,
    exitCode: 1,
  },
  {
    what: 'a duplicate id',
    text: `${PARTS}export default topology('x', (b) => { b.bolt('s', sink).shuffle(b.spout('s', source)); });\n`,
    code: 'COMPONENT_ID_DUPLICATE',
    says: /"s"/,
  },
  {
    what: 'an illegal id',
    text: `${PARTS}export default topology('x', (b) => { b.bolt('__sink', sink).shuffle(b.spout('s', source)); });\n`,
    code: 'COMPONENT_ID_ILLEGAL',
    says: /__sink/,
  },
  {
    what: 'an illegal name',
    text: `${PARTS}export default topology('a/b', (b) => { b.spout('s', source); });\n`,
    code: 'TOPOLOGY_NAME_ILLEGAL',
    says: /app\.ts:/,
  },
  {
    what: 'no spout',
    text: `${PARTS}export default topology('x', () => {});\n`,
    code: 'TOPOLOGY_WITHOUT_SPOUT',
    says: /spout/,
  },
  ...['-1', '0', '1.5', '1e12', 'NaN'].map(
    (hint): Case => ({
      what: `a parallelism of ${hint}`,
      text: `${PARTS}export default topology('x', (b) => { b.bolt('sink', sink, { parallelism: ${hint} }).shuffle(b.spout('s', source)); });\n`,
      code: 'PARALLELISM_ILLEGAL',
      says: /1000000|1,000,000/,
    }),
  ),
  {
    what: 'unknown and wrong settings, all at once',
    text: numbersApp(1),
    code: 'SETTINGS_INVALID',
    says: /did you mean "topology\.workers"[\s\S]*topology\.message-timeout/,
    flags: ['--no-check', '--set', 'topology.worker=2', '--set', 'topology.message-timeout=soon'],
    exitCode: 2,
  },
  {
    what: 'settings that contradict each other',
    text: numbersApp(1),
    code: 'SETTINGS_INVALID',
    says: /worker\.restart-backoff/,
    flags: ['--no-check', '--set', 'worker.restart-backoff=9s', '--set', 'worker.restart-backoff-max=1s'],
    exitCode: 2,
  },
  {
    what: 'an unknown setting in the file',
    text: numbersApp(1).replace("'topology.workers'", "'topology.wrokers'"),
    code: 'SETTINGS_INVALID',
    says: /did you mean "topology\.workers"/,
  },
  {
    what: 'more workers than slots',
    text: numbersApp(1),
    code: 'SETTINGS_INVALID',
    says: /supervisor\.slots=3/,
    flags: ['--no-check', '--workers', '3', '--set', 'supervisor.slots=2'],
  },
];

describe('bad input', () => {
  it.each(cases)(
    '$what ends with $code',
    async ({ text, code, says, flags = ['--no-check'], exitCode = 3 }) => {
      workshop.write('app.ts', text);
      const ended = await workshop.run(['run', 'app.ts', ...flags]);
      expect(ended.stderr).toContain(`${code}: `);
      expect(ended.stderr).toMatch(says);
      expect(ended.stderr).toContain(ERROR_TABLE[code].action);
      expect(ended.code).toBe(exitCode);
      expect(workshop.processes()).toEqual([]);
    },
  );

  it('a package that is gone when the worker starts is named, with where it was looked for', async () => {
    const once = join(workshop.directory, 'node_modules/once');
    workshop.write(
      'node_modules/once/package.json',
      '{ "name": "once", "type": "module", "main": "once.js" }',
    );
    workshop.write('node_modules/once/once.js', 'export const once = 1;\n');
    workshop.write(
      'app.ts',
      `import { rmSync } from 'node:fs';
import { once } from 'once';
${numbersApp(1)}
if (once === 1) rmSync(${JSON.stringify(once)}, { recursive: true, force: true });
`,
    );
    const ended = await workshop.run(['run', 'app.ts', '--no-check']);
    expect(ended.stderr).toContain(`MODULE_MISSING_IN_WORKER: Cannot find module '${once}/once.js'`);
    expect(ended.stderr).toContain(ERROR_TABLE.MODULE_MISSING_IN_WORKER.action);
    expect(ended.code).toBe(1);
    expect(workshop.processes()).toEqual([]);
  });

  it('is one line of JSON with --json', async () => {
    workshop.write('app.ts', 'export default 42;\n');
    const command = workshop.start(['run', 'app.ts', '--no-check', '--json']);
    const { code } = await command.ended;
    expect(command.lines()).toMatchObject([{ type: 'error', code: 'NOT_A_TOPOLOGY', exitCode: 3 }]);
    expect(code).toBe(3);
  });

  it.each([
    [['run', 'missing.ts'], 'FILE_NOT_FOUND', 3],
    [['run', '.'], 'FILE_NOT_FOUND', 3],
    [['run', 'app.ts', '--set', 'nonsense'], 'USAGE', 2],
    [['run', 'app.ts', '--workers', 'two'], 'SETTINGS_INVALID', 2],
    [['run', 'app.ts', '--workers', '2', '--set', 'topology.workers=3'], 'USAGE', 2],
    [['run', 'app.ts', '--json', '--quiet'], 'USAGE', 2],
  ])('isobar %j ends with %s', async (words, code, exitCode) => {
    workshop.write('app.ts', numbersApp(1));
    const ended = await workshop.run(words);
    expect(ended.stderr).toContain(`${code}: `);
    expect(ended.code).toBe(exitCode);
  });

  it.each([[['run']], [['run', 'a.ts', 'b.ts']], [['walk']], [[]], [['run', 'a.ts', '--unknown']]])(
    'isobar %j shows how it is used',
    async (words) => {
      const ended = await workshop.run(words);
      expect(ended.stderr).toMatch(/Usage: isobar|See isobar( run)? --help/);
      expect(ended.code).toBe(2);
    },
  );

  it.runIf(existsSync('/dev/full'))('output that cannot be written drains and is told', async () => {
    workshop.write('app.ts', numbersApp(3));
    const home = join(workshop.directory, 'home-full');
    const words = [CLI, 'run', 'app.ts', '--no-check', '--json'];
    const full = openSync('/dev/full', 'w');
    const ended = spawnSync(process.execPath, words, {
      cwd: workshop.directory,
      env: { ...process.env, ISOBAR_HOME: home },
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    });
    closeSync(full);
    expect(ended.stderr).toContain('OUTPUT_UNWRITABLE: ');
    expect(ended.stderr).toContain('ENOSPC');
    expect(ended.status).toBe(1);
  });

  it('a current directory that is gone', () => {
    const gone = join(workshop.directory, 'gone');
    mkdirSync(gone);
    const ended = spawnSync(
      '/bin/sh',
      ['-c', `rmdir "${gone}" && exec "$@"`, 'sh', process.execPath, CLI, 'run', 'app.ts'],
      { cwd: gone, encoding: 'utf8' },
    );
    expect(ended.stderr).toContain('USAGE: the current directory does not exist any more');
    expect(ended.status).toBe(2);
  });

  it('a state directory that another run owns is refused without a word of a restart', async () => {
    workshop.write('ticker.ts', numbersApp(1_000_000));
    workshop.write('app.ts', numbersApp(1));
    const state = join(workshop.directory, 'shared');
    const first = workshop.start(['run', 'ticker.ts', '--no-check', '--json', '--state', state]);
    await until('the first run is submitted', () => first.line('submitted') !== undefined);
    const second = await workshop.run(['run', 'app.ts', '--no-check', '--state', state]);
    expect(second.stderr).toContain('STATE_DIRECTORY_OWNED: ');
    expect(second.stderr).not.toContain('started again');
    expect(second.code).toBe(3);
    first.child.kill('SIGINT');
    first.child.kill('SIGTERM');
    await first.ended;
  });

  it('a state directory that is no directory', async () => {
    workshop.write('app.ts', numbersApp(1));
    const file = join(workshop.directory, 'occupied');
    writeFileSync(file, '');
    const ended = await workshop.run(['run', 'app.ts', '--no-check', '--state', file]);
    expect(ended.stderr).toContain('STATE_DIRECTORY_UNUSABLE: ');
    expect(ended.code).toBe(3);
  });
});
