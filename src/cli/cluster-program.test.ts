import { spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addClusterCommands } from './cluster-program.js';
import { notedCluster } from './testing/noted-cluster.js';

async function parse(...words: string[]) {
  const { asked, actions } = notedCluster(7);
  let [out, err, code] = ['', '', -1];
  const program = new Command('isobar')
    .exitOverride()
    .configureOutput({ writeOut: (text) => (out += text), writeErr: (text) => (err += text) });
  addClusterCommands(program, actions, { write: (text) => (out += text) }, (exitCode) => (code = exitCode));
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    err += String(error);
  }
  return { asked, out, err, code };
}

describe('the commands that talk to Nimbus', () => {
  it('are handed their name and flags, and give their exit code', async () => {
    const { asked, code } = await parse(
      ...[
        'rebalance',
        'words',
        '-w',
        '10',
        '-n',
        '4',
        '-e',
        'a=2',
        '-e',
        'b=5',
        '-r',
        '{}',
        '--from-scratch',
      ],
      ...['--preview', '--json', '--directory', '/d'],
    );
    expect(asked).toEqual([
      [
        'rebalance',
        'words',
        {
          wait: '10',
          workers: '4',
          executors: ['a=2', 'b=5'],
          resources: '{}',
          fromScratch: true,
          preview: true,
          json: true,
          directory: '/d',
        },
      ],
    ]);
    expect(code).toBe(7);
  });

  it.each([
    [['submit', 'app.ts', '--workers', '2', '-s', 'a=1', '--no-check', '--inactive']],
    [['list']],
    [['describe', 'words']],
    [['activate', 'words']],
    [['deactivate', 'words']],
    [['kill', 'words', '-w', '3']],
    [['config']],
    [['config', 'words']],
  ])('know %j', async (words) => {
    const { asked, code } = await parse(...words);
    expect([asked[0]?.[0], code]).toEqual([words[0], 7]);
  });

  it.each([
    'submit',
    'list',
    'describe',
    'activate',
    'deactivate',
    'kill',
    'rebalance',
    'config',
    'completion',
  ])('show an example in the help of %s', async (command) => {
    const { out } = await parse(command, '--help');
    expect(out).toContain('Example:\n');
    expect(out).toContain(`isobar ${command}`);
  });

  it('refuse a command without its name, and an unknown option', async () => {
    expect((await parse('kill')).err).toContain("missing required argument 'name'");
    expect((await parse('kill', 'words', '--hard')).err).toContain('unknown option');
  });

  it('print completions that the shell accepts, with every command and option', async () => {
    const { out } = await parse('completion', 'bash');
    for (const word of ['rebalance', '--from-scratch', '--inactive', 'describe']) expect(out).toContain(word);
    const ask = `${out}\nCOMP_WORDS=(isobar rebalance words --fr); COMP_CWORD=3; _isobar; echo "\${COMPREPLY[@]}"`;
    expect(spawnSync('bash', ['-c', ask], { encoding: 'utf8' }).stdout.trim()).toBe('--from-scratch');
    const first = `${out}\nCOMP_WORDS=(isobar reb); COMP_CWORD=1; _isobar; echo "\${COMPREPLY[@]}"`;
    expect(spawnSync('bash', ['-c', first], { encoding: 'utf8' }).stdout).toContain('rebalance');
    expect((await parse('completion', 'fish')).out).toContain('__fish_seen_subcommand_from rebalance');
    expect((await parse('completion', 'zsh')).out).toContain('bashcompinit');
    expect((await parse('completion', 'tcsh')).err).toContain('unknown shell tcsh');
  });
});
