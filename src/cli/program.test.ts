import { describe, expect, it } from 'vitest';
import { runProgram } from './program.js';
import type { RunFlags } from './run-options.js';
import { notedCluster } from './testing/noted-cluster.js';

async function parse(...words: string[]): Promise<{
  code: number;
  out: string;
  err: string;
  runs: [string, RunFlags][];
  devs: unknown[][];
}> {
  const runs: [string, RunFlags][] = [];
  const devs: unknown[][] = [];
  const note =
    (action: string) =>
    async (...given: unknown[]): Promise<number> => {
      devs.push([action, ...given]);
      return 8;
    };
  let [out, err] = ['', ''];
  const code = await runProgram(
    words,
    {
      run: async (file, flags) => {
        runs.push([file, flags]);
        return 7;
      },
      cluster: notedCluster().actions,
      observe: { logs: note('logs'), why: note('why'), events: note('events'), tap: note('tap') },
      plan: { plan: note('plan') },
      dev: {
        start: note('start'),
        status: note('status'),
        stop: note('stop'),
        startSupervisor: note('start supervisor'),
        stopSupervisor: note('stop supervisor'),
      },
    },
    { version: '1.2.3', write: (text) => (out += text), writeError: (text) => (err += text) },
  );
  return { code, out, err, runs, devs };
}

describe('runProgram', () => {
  it('hands the file and all flags to run and returns its exit code', async () => {
    const words = [
      'run',
      'app.ts',
      '-w',
      '2',
      '--set',
      'a=1',
      '-s',
      'b=2',
      '--watch',
      '--json',
      '--no-check',
      '--state',
      'd',
    ];
    const { code, runs } = await parse(...words);
    expect(runs).toEqual([
      [
        'app.ts',
        {
          workers: '2',
          set: ['a=1', 'b=2'],
          watch: true,
          json: true,
          quiet: false,
          check: false,
          keep: false,
          state: 'd',
        },
      ],
    ]);
    expect(code).toBe(7);
  });

  it('leaves off what was not asked for', async () => {
    const { runs } = await parse('run', 'app.ts');
    expect(runs[0]?.[1]).toEqual({
      set: [],
      watch: false,
      json: false,
      quiet: false,
      check: true,
      keep: false,
    });
  });

  it('prints version and help with exit code 0', async () => {
    expect(await parse('--version')).toMatchObject({ code: 0, out: '1.2.3\n' });
    const { code, out } = await parse('run', '--help');
    expect(out).toContain('isobar run app.ts');
    expect(out).not.toMatch(/default: (?:\[\]|false)/);
    expect(code).toBe(0);
  });

  it.each([[['run']], [['walk']], [[]], [['run', 'a', 'b']], [['run', 'a', '--unknown']]])(
    'refuses %j with exit code 2 and says how it is used',
    async (words) => {
      const { code, err, runs } = await parse(...words);
      expect(err).toMatch(/Usage: isobar|See isobar( run)? --help/);
      expect(runs).toEqual([]);
      expect(code).toBe(2);
    },
  );

  it.each([
    [['why'], 'See isobar why --help.'],
    [['rebalance', 'words', '-x'], 'See isobar rebalance --help.'],
    [['dev', 'supervisor', 'stop'], 'See isobar dev supervisor stop --help.'],
    [['walk'], 'See isobar --help.'],
  ])('refers after the mistake in %j to the help of that command', async (words, expected) => {
    expect((await parse(...words)).err).toContain(expected);
  });

  it.each([
    [['dev', 'status']],
    [['dev', 'stop']],
    [['dev', 'supervisor', 'start']],
    [['dev', 'supervisor', 'stop']],
  ])('has an example and the exit codes in the help of %j', async (words) => {
    const { out } = await parse(...words, '--help');
    expect(out).toMatch(new RegExp(`Examples?:\\n(?:.*\\n)*? +isobar ${words.join(' ')}\\b`));
    expect(out).toContain('Exit codes: 0 ok, 1 failed');
  });

  it.each([
    ['dev', ['start', {}]],
    [
      'dev --supervisor name=a --supervisor name=b -s nimbus.round-interval=1s --json',
      ['start', { supervisor: ['name=a', 'name=b'], set: ['nimbus.round-interval=1s'], json: true }],
    ],
    ['dev --supervisors 3 --coordinator embedded', ['start', { supervisors: '3', coordinator: 'embedded' }]],
    [
      'logs words split -f --since 10m -n 5 --level warn --json',
      ['logs', 'words', 'split', { follow: true, since: '10m', lines: '5', level: 'warn', json: true }],
    ],
    ['why words --window 5s --json', ['why', 'words', { window: '5s', json: true }]],
    [
      'tap words split -n 3 --where word=a=b --taken --for 5s',
      ['tap', 'words', 'split', { rows: '3', where: 'word=a=b', taken: true, for: '5s' }],
    ],
    ['logs --daemon local', ['logs', undefined, undefined, { daemon: 'local' }]],
    ['dev status --directory d', ['status', { directory: 'd' }]],
    ['dev --directory d status', ['status', { directory: 'd' }]],
    ['dev stop --keep-workers --json', ['stop', { keepWorkers: true, json: true }]],
    ['dev supervisor start a', ['start supervisor', 'a', {}]],
    ['dev supervisor start a --supervisor slots=3', ['start supervisor', 'a', { supervisor: ['slots=3'] }]],
    [
      'dev supervisor stop a --crash --only --directory d',
      ['stop supervisor', 'a', { crash: true, only: true, directory: 'd' }],
    ],
  ] as const)('hands "%s" to its action, flags on either side', async (line, expected) => {
    const { devs, code } = await parse(...line.split(' '));
    expect(devs).toEqual([expected]);
    expect(code).toBe(8);
  });

  it.each(['dev stopp', 'dev supervisor', 'dev supervisor stop', 'dev --supervisor', 'dev status --crash'])(
    'refuses "%s"',
    async (line) => {
      const { devs, code } = await parse(...line.split(' '));
      expect(devs).toEqual([]);
      expect(code).toBe(2);
    },
  );

  it.each([
    ['rnu app.ts', "unknown command 'rnu'\n(Did you mean run?)"],
    ['dev statsu', "unknown command 'statsu' of isobar dev"],
  ])('names the word of "%s" that it does not know', async (line, text) => {
    const { err, code } = await parse(...line.split(' '));
    expect(err).toContain(text);
    expect(code).toBe(2);
  });

  it.each(['logs', 'why', 'tap'])(
    'shows an example and the exit codes in the help of %s',
    async (command) => {
      const { out, code } = await parse(command, '--help');
      expect(out).toContain(`Example:\n  isobar ${command} `);
      expect(out).toContain('Exit codes: 0 ok, 1 refused by the cluster, 2 usage');
      expect(code).toBe(0);
    },
  );

  it('completes the commands that look into a topology, with their options', async () => {
    const { out } = await parse('completion', 'bash');
    for (const word of ['logs', '--since', 'why', '--window', 'tap', '--where']) expect(out).toContain(word);
  });
});
