/** The commands that look into a running topology, as processes of their own. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Ended, Workshop } from './command.js';

const APP = `
import { bolt, spout, t, topology } from 'isobar';
const numbers = spout({
  emits: { n: t.int32, word: t.string },
  async *read(context, from: number = 0) {
    console.log('numbers begins');
    for (let n = from; ; n++) {
      yield { row: { n, word: 'word ' + (n % 3) }, position: n + 1, lag: 7 };
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
});
const sink = bolt({
  takes: { n: t.int32, word: t.string },
  prepare() {
    console.warn('sink is\\nprepared');
    return {
      process({ n }) {
        if (n % 50 === 7) throw new Error('no sevens');
      },
    };
  },
});
const slow = bolt({
  takes: { n: t.int32 },
  process: ({ n }) => (n === 3 ? new Promise((resolve) => setTimeout(resolve, 600_000)) : undefined),
});
export default topology('numbers', { 'topology.message-timeout': '10m' }, (b) => {
  const source = b.spout('numbers', numbers);
  b.bolt('sink', sink, { parallelism: 2 }).shuffle(source);
  b.bolt('slow', slow, { parallelism: 2 }).fields(source, ['n']);
});
`;

let workshop: Workshop;

beforeEach(() => {
  workshop = new Workshop();
  workshop.write('app.ts', APP);
});
afterEach(() => workshop.close());

async function ask(...words: string[]): Promise<Ended & { answers: Record<string, unknown>[] }> {
  const run = readdirSync(workshop.home).find((name) => name.startsWith('isobar-run-')) ?? 'nowhere';
  const ended = await workshop.run([...words, '--json', '--directory', join(workshop.home, run)]);
  const lines = ended.stdout.split('\n').filter((line) => line !== '');
  return { ...ended, answers: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endMs = performance.now() + 60_000;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe('a running topology', () => {
  it('is not looked into where no daemon runs, with an exit code that says so', async () => {
    for (const words of [
      ['why', 'numbers'],
      ['tap', 'numbers', 'sink'],
      ['logs', 'numbers'],
    ])
      expect(await ask(...words)).toMatchObject({
        code: 4,
        answers: [{ type: 'error', code: 'DAEMON_NOT_RUNNING' }],
      });
  });

  it('is looked into with commands', async () => {
    const run = workshop.start(['run', 'app.ts', '--json', '--no-check', '-s', 'metrics.port=0']);
    await eventually('rows', async () => {
      if (run.child.exitCode !== null)
        throw new Error(
          run
            .lines()
            .map((line) => JSON.stringify(line))
            .join('\n'),
        );
      return run.lines().some(({ type, phase }) => type === 'status' && phase === 'running') || undefined;
    });

    // Logs: what is printed and what fails, with component and task.
    const failed = await eventually('a failure', async () => {
      const { answers } = await ask('logs', 'numbers', 'sink', '--level', 'warn');
      return answers.some(({ message }) => message === 'user-code.failed') ? answers : undefined;
    });
    expect(failed[0]).toMatchObject({
      type: 'log',
      component: 'sink',
      output: 'warn',
      message: 'sink is\nprepared',
    });
    const all = await ask('logs', 'numbers');
    expect(all.code).toBe(0);
    expect(all.answers).toContainEqual(
      expect.objectContaining({ component: 'numbers', output: 'log', message: 'numbers begins' }),
    );
    expect(all.answers.map(({ time }) => time)).toEqual(all.answers.map(({ time }) => time).sort());
    expect((await ask('logs', '--daemon', 'daemon', '-n', '1')).answers).toHaveLength(1);
    expect(await ask('logs', 'numbers', 'snik')).toMatchObject({
      code: 1,
      answers: [{ type: 'error', code: 'COMPONENT_NOT_FOUND', exitCode: 1 }],
    });
    expect(await ask('logs', 'numbres')).toMatchObject({
      code: 1,
      answers: [{ code: 'TOPOLOGY_NOT_ALIVE' }],
    });
    expect(await ask('logs', 'numbers', '--since', 'soon')).toMatchObject({ code: 2 });

    // Why it is not faster: its source gives no more.
    const why = await ask('why', 'numbers', '--window', '2s');
    expect(why).toMatchObject({
      code: 0,
      answers: [{ type: 'why', name: 'numbers', verdict: { kind: 'sources' }, lostStates: [] }],
    });
    const [{ components, errors }] = why.answers as [
      Record<'components' | 'errors', Record<string, unknown>[]>,
    ];
    expect(components.find(({ component }) => component === 'sink')).toMatchObject({
      kind: 'bolt',
      executors: 2,
    });
    expect(components.every(({ rowsPerSecond }) => Number(rowsPerSecond) > 0)).toBe(true);
    const [{ oldestPending }] = why.answers as [Record<'oldestPending', Record<string, unknown>>];
    expect(oldestPending).toMatchObject({ component: 'numbers', row: 'position 4' });
    expect(oldestPending['heldBy']).toMatch(/^slow\[\d\] \(in process for \d+\.\d s\)/);
    expect(errors[0]).toMatchObject({ component: 'sink', code: 'USER_CODE_FAILED', message: 'no sevens' });
    expect(await ask('why', 'numbres')).toMatchObject({ code: 1, answers: [{ code: 'TOPOLOGY_NOT_ALIVE' }] });
    expect(await ask('why', 'numbers', '--window', '1ms')).toMatchObject({
      code: 2,
      answers: [{ code: 'USAGE' }],
    });

    // Live rows: what is emitted, what is taken, and with a condition.
    const emitted = await ask('tap', 'numbers', 'numbers', '-n', '3');
    expect(emitted).toMatchObject({
      code: 0,
      answers: [{ type: 'row', component: 'numbers', stream: 'default' }, {}, {}],
    });
    const taken = await ask('tap', 'numbers', 'sink', '-n', '2', '--where', 'word=word 1');
    expect(taken.answers).toMatchObject([{ row: { word: 'word 1' } }, { row: { word: 'word 1' } }]);
    expect(await ask('tap', 'numbers', 'sink', '--where', 'n=-1', '--for', '300ms')).toMatchObject({
      code: 0,
      answers: [],
    });
    expect(await ask('tap', 'numbers', 'sink', '--where', 'wrd=1')).toMatchObject({
      code: 2,
      answers: [{ code: 'USAGE' }],
    });
    expect(await ask('tap', 'numbers', 'snik')).toMatchObject({
      code: 1,
      answers: [{ code: 'COMPONENT_NOT_FOUND' }],
    });

    // Metrics: the place that was chosen is in the daemon's log.
    const served = (await ask('logs', '--daemon', 'daemon')).answers.find(
      ({ message }) => message === 'metrics.served',
    );
    const { url } = served?.['fields'] as { url: string };
    const metrics = await eventually('metrics of a second report', async () => {
      const text = await (await fetch(url)).text();
      return /isobar_component_failed_rows_total\{[^}]*"sink"[^}]*\} [1-9]/.test(text) ? text : undefined;
    });
    for (const pattern of [
      /^isobar_nimbus_leader 1$/m,
      /^isobar_topology_ready\{topology="numbers"\} 1$/m,
      /^isobar_component_complete_seconds_count\{.*"numbers"\} [1-9]/m,
      /^isobar_component_busy_seconds_total\{.*"sink"\} (?!0$)/m,
      /^isobar_thread_active_seconds_total\{.*thread="0"\} (?!0$)/m,
      /^isobar_thread_collections_total\{.*thread="0"\} [1-9]/m,
      /^isobar_component_source_lag_rows\{topology="numbers",component="numbers"\} 7$/m,
      /^isobar_worker_resident_bytes\{.*\} [1-9]/m,
    ])
      expect(metrics).toMatch(pattern);

    // Its daemon is killed: what needs it waits for its successor, logs need none.
    const killDaemon = (): void => {
      for (const { pid, kind } of workshop.processes()) if (kind === 'daemon') process.kill(pid, 'SIGKILL');
    };
    killDaemon();
    expect(await ask('logs', 'numbers', '-n', '1')).toMatchObject({ code: 0, answers: [{ type: 'log' }] });
    expect(await ask('tap', 'numbers', 'numbers', '-n', '1')).toMatchObject({
      code: 0,
      answers: [{ type: 'row' }],
    });
    killDaemon();
    expect(await ask('why', 'numbers')).toMatchObject({
      code: 0,
      answers: [{ type: 'why', name: 'numbers' }],
    });
  }, 180_000);
});
