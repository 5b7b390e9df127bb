/** `isobar run`, from outside: the real command, real processes. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { numbersApp, ROOT, until, Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

describe('a bounded run', () => {
  it('type-checks, runs to its end, prints what the topology prints and says that every row was acked', async () => {
    workshop.write('bounded.ts', numbersApp(5000));
    const { code, stdout, stderr } = await workshop.run(['run', 'bounded.ts']);
    expect(stderr).toContain('checking, bundling and starting bounded.ts');
    expect(stdout).toContain('the sum is 12497500');
    expect(stdout).toContain('Every one of 5,000 rows was acked.');
    expect(stdout).toContain('numbers ran to the end of its input');
    expect(code).toBe(0);
    expect(workshop.remains()).toEqual([]);
  });

  it('prints with --quiet only what the topology prints', async () => {
    workshop.write('quiet.ts', numbersApp(100));
    const { code, stdout, stderr } = await workshop.run(['run', 'quiet.ts', '--no-check', '--quiet']);
    expect(stdout).toBe('task 0 is ready\nthe sum is 4950\n');
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  it('prints with --json one object a line, the summary last', async () => {
    workshop.write('json.ts', numbersApp(2000));
    const command = workshop.start([
      'run',
      'json.ts',
      '--no-check',
      '--json',
      '--set',
      'topology.executor-threads=2',
    ]);
    const { code } = await command.ended;
    const lines = command.lines();
    expect(lines[0]).toMatchObject({ type: 'submitted', topology: 'numbers' });
    expect(lines).toContainEqual({ type: 'output', worker: '6700', text: 'the sum is 1999000' });
    expect(lines.some(({ type }) => type === 'status')).toBe(true);
    expect(lines.at(-1)).toMatchObject({
      type: 'summary',
      outcome: 'finished',
      exitCode: 0,
      everyRowAcked: true,
      deadLetters: 0,
      totals: { emitted: 2000, acked: 2000, failed: 0 },
      accounts: { rows: 2000, left: 0 },
    });
    expect(code).toBe(0);
  });

  it('counts the words of the Brown corpus, every line acked', async () => {
    const { code, stdout } = await workshop.run(
      ['run', 'examples/word-count/app.ts', '--no-check', '--workers', '2'],
      {
        directory: ROOT,
      },
    );
    expect(stdout).toMatch(/69971 {2}the\n/);
    expect(stdout).toMatch(/1013319 {2}words in all/);
    expect(stdout).toContain('Every one of 57,340 rows was acked.');
    expect(code).toBe(0);
  });

  it('puts poisonous rows into a dead-letter file that it names, keeps, and fails for', async () => {
    workshop.write(
      'poison.ts',
      numbersApp(10).replace('total += value;', "if (value === 3) throw new Error('three'); total += value;"),
    );
    const command = workshop.start(['run', 'poison.ts', '--no-check', '--json']);
    const { code } = await command.ended;
    const summary = command.line('summary');
    expect(summary).toMatchObject({ everyRowAcked: false, deadLetters: 1, exitCode: 1 });
    const [file] = summary?.['deadLetterFiles'] as string[];
    expect(file?.startsWith(workshop.home)).toBe(true);
    const problem = command.line('problem');
    expect(problem).toMatchObject({ code: 'USER_CODE_FAILED', component: 'sum' });
    expect((problem?.['frames'] as string[])[0]).toMatch(/poison\.ts:20:/);
    expect(code).toBe(1);
  });
});

describe('an unbounded run', () => {
  it('drains at the first signal and says what it drained', async () => {
    workshop.write('endless.ts', numbersApp(null, { name: 'endless' }));
    const command = workshop.start(['run', 'endless.ts', '--no-check']);
    await until(
      'rows flow',
      () => /running .* [1-9]\d* rows acked/.test(command.stderr) || command.stdout.includes('ready'),
    );
    command.child.kill('SIGINT');
    const { code, stdout } = await command.ended;
    expect(stdout).toMatch(
      /Drained: \d+ rows? completed since the last report before the signal, 0 failed, 0 left/,
    );
    expect(stdout).toMatch(/endless was drained/);
    expect(code).toBe(0);
    expect(workshop.processes()).toEqual([]);
  });

  it('ends at the first signal where it fails as it starts, since there is nothing to drain', async () => {
    const app = numbersApp(null, { name: 'broken' }).replace(
      'let total',
      "throw new Error('no way'); let total",
    );
    expect(app).toContain('no way');
    workshop.write('broken.ts', app);
    const command = workshop.start(['run', 'broken.ts', '--no-check', '--set', 'drain.timeout=10m']);
    await until('the error is told', () => command.stderr.includes('no way'));
    command.child.kill('SIGINT');
    expect((await command.ended).code).toBe(130);
    expect(workshop.processes()).toEqual([]);
  });

  it('ends at once at the second signal, whatever user code does', async () => {
    workshop.write(
      'stuck.ts',
      numbersApp(null, { name: 'stuck' }).replace('total += value;', 'for (;;) total += value;'),
    );
    const command = workshop.start(['run', 'stuck.ts', '--no-check', '--json']);
    await until(
      'a worker runs',
      () => command.stdout.includes('"ready"') || command.stdout.includes('is ready'),
    );
    command.child.kill('SIGTERM');
    await until('it drains', () => command.line('note'));
    command.child.kill('SIGTERM');
    const { code } = await command.ended;
    expect(command.line('summary')).toMatchObject({ outcome: 'forced', exitCode: 130 });
    expect(code).toBe(130);
    expect(workshop.processes()).toEqual([]);
  });

  it('survives the death of its daemon without a restart of a worker', async () => {
    workshop.write('daemon.ts', numbersApp(null, { name: 'daemon' }));
    const command = workshop.start(['run', 'daemon.ts', '--no-check', '--json']);
    const acked = (): number =>
      (command.line('status')?.['totals'] as { acked?: number } | undefined)?.acked ?? 0;
    await until('rows flow', () => acked() > 0);
    const before = workshop.processes();
    process.kill(before.find(({ kind }) => kind === 'daemon')!.pid, 'SIGKILL');
    await until('it is told', () => command.lines().some(({ text }) => /started again/.test(String(text))));
    const told = command.lines().length;
    await until(
      'rows are reported again',
      () =>
        command
          .lines()
          .slice(told)
          .some(({ type }) => type === 'status') && acked() > 0,
    );
    const workers = (of: typeof before): number[] =>
      of.filter(({ kind }) => kind === 'worker').map(({ pid }) => pid);
    expect(workers(workshop.processes())).toEqual(workers(before));
    command.child.kill('SIGINT');
    expect((await command.ended).code).toBe(0);
  });
});

/** A process that was listed may have ended since. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

describe('a daemon that cannot be kept alive', () => {
  it('ends the run with DAEMON_LOST and the place of its log, and leaves no process', async () => {
    workshop.write('lost.ts', numbersApp(null, { name: 'lost' }));
    const command = workshop.start(['run', 'lost.ts', '--no-check', '--json']);
    await until('a worker runs', () => command.stdout.includes('is ready'));
    const murder = setInterval(() => {
      for (const { pid, kind } of workshop.processes()) if (kind === 'daemon') killIfThere(pid);
    }, 20);
    const { code } = await command.ended;
    clearInterval(murder);
    const error = command.line('error');
    expect(error).toMatchObject({ code: 'DAEMON_LOST', exitCode: 4 });
    expect(existsSync(error?.['where'] as string)).toBe(true);
    expect(code).toBe(4);
    await until('workers have ended themselves', () => workshop.processes().length === 0, 10_000);
  });
});

describe('two runs', () => {
  it('do not collide', async () => {
    workshop.write('twice.ts', numbersApp(3000, { name: 'twice' }));
    const both = await Promise.all(
      [1, 2].map(() => workshop.run(['run', 'twice.ts', '--no-check', '--quiet'])),
    );
    for (const { code, stdout } of both) {
      expect(stdout).toContain('the sum is 4498500');
      expect(code).toBe(0);
    }
  });

  it('are told apart when they want the same state directory', async () => {
    workshop.write('owner.ts', numbersApp(null, { name: 'owner' }));
    const state = join(workshop.directory, 'state');
    const first = workshop.start(['run', 'owner.ts', '--no-check', '--json', '--state', state]);
    await until('the first one runs', () => first.line('submitted'));
    const second = await workshop.run(['run', 'owner.ts', '--no-check', '--state', state]);
    expect(second.stderr).toContain('STATE_DIRECTORY_OWNED');
    expect(second.code).toBe(3);
    first.child.kill('SIGINT');
    expect((await first.ended).code).toBe(0);
    const third = workshop.start(['run', 'owner.ts', '--no-check', '--json', '--state', state]);
    await until('the directory can be used again', () => third.line('submitted'));
    third.child.kill('SIGINT');
    expect((await third.ended).code).toBe(0);
  });
});

describe('--watch', () => {
  it('runs again when a file that it imports changes', async () => {
    workshop.write('watched/word.ts', "export const word: string = 'first';\n");
    workshop.write(
      'watched/app.ts',
      `import { word } from './word.js';\n${numbersApp(10).replace("'the sum is '", "word + ' sum '")}`,
    );
    const command = workshop.start(['run', 'watched/app.ts', '--no-check', '--watch', '--quiet']);
    await until('it has run', () => command.stdout.includes('first sum 45'));
    workshop.write('watched/word.ts', "export const word: string = 'second';\n");
    await until('it has run again', () => command.stdout.includes('second sum 45'));
    command.child.kill('SIGINT');
    await command.ended;
    expect(workshop.processes()).toEqual([]);
  });
});
