/** The files that README and tutorial show, run by the real command: each does what the text says of it. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ROOT, type RunningCommand, until, Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

const start = (file: string, ...flags: string[]): RunningCommand =>
  workshop.start(['run', `examples/${file}`, '--no-check', '--json', ...flags], { directory: ROOT });

/** What the topology has printed. */
const printed = (command: RunningCommand): string[] =>
  command
    .lines()
    .filter(({ type }) => type === 'output')
    .map(({ text }) => String(text));

const summaryOf = async (command: RunningCommand): Promise<Record<string, unknown>> => {
  await command.ended;
  return command.line('summary') ?? {};
};

const done = (rows: number) => ({
  outcome: 'finished',
  exitCode: 0,
  everyRowAcked: true,
  accounts: { rows, acked: rows, deadLetters: 0 },
});

const words = [
  'away',
  'cow',
  'dish',
  'dog',
  'jumped',
  'laughed',
  'little',
  'moon',
  'over',
  'ran',
  'spoon',
  'with',
];

/** Bounded topologies without failures: rows of their spouts, and the lines that they print, sorted. */
const FINISHING: Record<string, { rows: number; lines: readonly string[] }> = {
  'tutorial/first.ts': {
    rows: 100,
    lines: ['100 went by', '25 went by', '50 went by', '75 went by'],
  },
  'tutorial/words.ts': { rows: 3, lines: [...words.map((word) => `1 ${word}`), '5 the'] },
  'tutorial/join.ts': {
    rows: 16,
    lines: Array.from({ length: 10 }, (_, i) => `order-${i} ${i % 3 === 0 ? 'unpaid' : `paid ${i * 1.5}`}`),
  },
  'tutorial/lookup.ts': { rows: 200, lines: ['200 names'] },
  'tutorial/cycle.ts': {
    rows: 30,
    lines: Array.from({ length: 30 }, (_, i) => {
      let steps = 0;
      for (let value = i + 1; value !== 1; steps++) value = value % 2 === 0 ? value / 2 : 3 * value + 1;
      return `${i + 1} takes ${steps} steps`;
    }).sort(),
  },
};

describe('examples', () => {
  it.each(Object.entries(FINISHING))('%s runs to its end', async (file, { rows, lines }) => {
    const command = start(file);
    expect(await summaryOf(command)).toMatchObject(done(rows));
    expect(printed(command).sort()).toEqual(lines);
  });

  it('of the README count words', async () => {
    const command = start('readme/app.ts');
    expect(await summaryOf(command)).toMatchObject(done(2));
    expect(printed(command).join(' ').split(' ')).toContain('the,4');
  });

  it('of groupings send every row where the text says', async () => {
    const command = start('tutorial/groupings.ts');
    expect(await summaryOf(command)).toMatchObject(done(60));
    const counts = new Map<string, number[]>();
    for (const line of printed(command)) {
      const [id, index, rows] = line.split(' ');
      const ofId = counts.get(id!) ?? [];
      ofId[Number(index)] = Number(rows);
      counts.set(id!, ofId);
    }
    const { all, custom, direct, global, shuffle, ...others } = Object.fromEntries(counts);
    expect({ all, custom, direct, global, shuffle }).toEqual({
      all: [60, 60, 60],
      custom: [30, 15, 15],
      direct: [20, 20, 20],
      global: [60, 0, 0],
      shuffle: [20, 20, 20],
    });
    expect(Object.keys(others).sort()).toEqual(['fields', 'local-or-shuffle', 'none', 'partial-key']);
    for (const rows of Object.values(others)) expect(rows.reduce((sum, one) => sum + one, 0)).toBe(60);
  });

  it('of batches ack held rows, the last ones by a tick', async () => {
    const command = start('tutorial/batches.ts');
    expect(await summaryOf(command)).toMatchObject(done(95));
    const batches = printed(command).map((line) => line.match(/\d+/g)!.map(Number));
    expect(batches.reduce((sum, [rows]) => sum + rows!, 0)).toBe(95);
    expect(batches.reduce((sum, [, part]) => sum + part!, 0)).toBe((95 * 96) / 2);
    expect(Math.max(...batches.map(([rows]) => rows!))).toBe(10);
  });

  it('of failures replay a row, and put another into the dead-letter file', async () => {
    const directory = join(workshop.directory, 'letters');
    mkdirSync(directory);
    const command = start('tutorial/failing.ts', '--set', `dead-letters.directory=${directory}`);
    expect(await summaryOf(command)).toMatchObject({
      outcome: 'finished',
      exitCode: 1,
      everyRowAcked: false,
      accounts: { rows: 10, acked: 9, deadLetters: 1 },
      totals: { failed: 3, replayed: 2 },
    });
    const [file] = readdirSync(directory);
    const letters = readFileSync(join(directory, file!), 'utf8').trim().split('\n');
    expect(letters.map((letter) => JSON.parse(letter) as unknown)).toMatchObject([
      { component: 'numbers', row: { value: 7 }, position: 8, failures: 2, reason: 'user' },
    ]);
    expect(printed(command)).toContain('done 3');
  });

  it('of low-level spouts hear of every ack and failure', async () => {
    const command = start('tutorial/queue.ts');
    expect(await summaryOf(command)).toMatchObject({
      outcome: 'finished',
      totals: { emitted: 21, acked: 20, failed: 1, replayed: 0 },
    });
    const lines = printed(command);
    expect(lines.filter((line) => line.startsWith('done: '))).toHaveLength(20);
    expect(lines.filter((line) => line.startsWith('again because of user: '))).toHaveLength(1);
  });

  it('of ticks run until a signal, and are drained', async () => {
    const command = start('tutorial/clock.ts');
    await until('two ticks have come', () => printed(command).length >= 2);
    command.child.kill('SIGINT');
    expect(await summaryOf(command)).toMatchObject({ outcome: 'drained', exitCode: 0, everyRowAcked: true });
    for (const line of printed(command)) expect(line).toMatch(/^\d+ rows in half a second$/);
  });

  it('are all in this file', () => {
    const tested = readFileSync(join(ROOT, 'test/cluster/tutorial.test.ts'), 'utf8');
    for (const name of readdirSync(join(ROOT, 'examples/tutorial')))
      expect(tested).toContain(`'tutorial/${name}'`);
  });
});
