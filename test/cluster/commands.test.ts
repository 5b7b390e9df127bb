/** The commands that talk to a daemon, as processes of their own, against the daemon of a running topology. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workshop } from './command.js';

const APP = `
import { bolt, spout, t, topology } from 'isobar';
const numbers = spout({
  emits: { n: t.int32 },
  async *read(context, from: number = 0) {
    for (let n = from; ; n++) {
      yield { row: { n }, position: n + 1 };
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
});
const sink = bolt({ takes: { n: t.int32 }, process: () => undefined });
export default topology('numbers', (b) => {
  b.bolt('sink', sink, { parallelism: 4 }).shuffle(b.spout('numbers', numbers));
});
`;

let workshop: Workshop;

beforeEach(() => {
  workshop = new Workshop();
  workshop.write('app.ts', APP);
});
afterEach(() => workshop.close());

async function ask(...words: string[]): Promise<{ code: number | null; answer: Record<string, unknown> }> {
  const run = readdirSync(workshop.home).find((name) => name.startsWith('isobar-run-')) ?? 'nowhere';
  const { code, stdout } = await workshop.run([...words, '--json', '--directory', join(workshop.home, run)]);
  return { code, answer: JSON.parse(stdout) as Record<string, unknown> };
}

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function workersOf(place: Workshop): number[] {
  return place
    .processes()
    .filter(({ kind }) => kind === 'worker')
    .map(({ pid }) => pid)
    .sort((a, b) => a - b);
}

describe('commands on a cluster', () => {
  it('steer a topology that runs', async () => {
    const run = workshop.start(['run', 'app.ts', '--json', '--no-check']);
    await eventually('rows', async () =>
      run.lines().some(({ type, phase }) => type === 'status' && phase === 'running'),
    );
    const list = await ask('list');
    expect(list).toMatchObject({ code: 0, answer: { type: 'list', topologies: [{ name: 'numbers' }] } });

    expect(await ask('deactivate', 'numbers')).toMatchObject({
      answer: { status: 'INACTIVE', isChanged: true },
    });
    const emitted = async (): Promise<number> => {
      const { answer } = await ask('describe', 'numbers');
      return (answer['totals'] as { emitted: number }).emitted;
    };
    let before = await emitted();
    await eventually('its spout to stop', async () => {
      const now = await emitted();
      const isSame = now === before;
      before = now;
      return isSame;
    });
    expect(await ask('activate', 'numbers')).toMatchObject({ answer: { status: 'ACTIVE', isChanged: true } });
    await eventually('its spout to go on', async () => (await emitted()) > before);

    const rebalanced = await ask('rebalance', 'numbers', '-n', '2', '-e', 'sink=99');
    expect(rebalanced).toMatchObject({ code: 0, answer: { workers: 2, executors: { sink: 4 } } });
    expect(String(rebalanced.answer['notes'])).toContain('instead of 99');
    await eventually('two workers', async () => {
      const { answer } = await ask('describe', 'numbers');
      const { workers, isRebalancing } = answer as { workers: { actual: number }; isRebalancing: boolean };
      return workers.actual === 2 && !isRebalancing;
    });

    // Its daemon is killed: the next command waits for its successor, and the workers are the same ones.
    const workers = workersOf(workshop);
    for (const { pid, kind } of workshop.processes()) if (kind === 'daemon') process.kill(pid, 'SIGKILL');
    expect(await ask('list')).toMatchObject({ code: 0, answer: { topologies: [{ name: 'numbers' }] } });
    expect(workersOf(workshop)).toEqual(workers);

    expect(await ask('rebalance', 'numbers', '-n', '0')).toMatchObject({
      code: 2,
      answer: { type: 'error', code: 'USAGE' },
    });
    expect(await ask('rebalance', 'numbers', '-e', 'snik=2')).toMatchObject({
      code: 1,
      answer: { code: 'COMPONENT_NOT_FOUND', message: 'there is no component "snik"; did you mean "sink"?' },
    });
    expect(await ask('describe', 'numbres')).toMatchObject({
      code: 1,
      answer: { code: 'TOPOLOGY_NOT_ALIVE' },
    });
    expect(await ask('kill', 'numbers', '-w', '3600')).toMatchObject({ answer: { status: 'KILLED' } });
    expect(await ask('rebalance', 'numbers', '-n', '1')).toMatchObject({
      code: 1,
      answer: { code: 'TRANSITION_ILLEGAL' },
    });
  }, 180_000);

  it('say that no daemon runs, with an exit code of its own', async () => {
    expect(await ask('list')).toMatchObject({ code: 4, answer: { code: 'DAEMON_NOT_RUNNING' } });
    expect(await ask('kill', 'numbers', '-w', 'soon')).toMatchObject({ code: 2, answer: { code: 'USAGE' } });
  });
});
