import { describe, expect, it } from 'vitest';
import { runProgram } from './program.js';
import type { RunFlags } from './run-options.js';
import { notedCluster } from './testing/noted-cluster.js';

async function parse(
  ...words: string[]
): Promise<{ code: number; out: string; err: string; runs: [string, RunFlags][] }> {
  const runs: [string, RunFlags][] = [];
  let [out, err] = ['', ''];
  const code = await runProgram(
    words,
    {
      run: async (file, flags) => {
        runs.push([file, flags]);
        return 7;
      },
      cluster: notedCluster().actions,
    },
    { version: '1.2.3', write: (text) => (out += text), writeError: (text) => (err += text) },
  );
  return { code, out, err, runs };
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
      expect(err).toMatch(/Usage: isobar|See isobar --help/);
      expect(runs).toEqual([]);
      expect(code).toBe(2);
    },
  );
});
