/** A machine that stood still for a while (a paused container or virtual machine): everybody was silent, and nobody is lost. */
import { readFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { numbersApp, until, Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

const PAUSE_MS = 9000;

it('a pause of all processes that is longer than every heartbeat may take costs no worker', async () => {
  workshop.write('paused.ts', numbersApp(null, { name: 'paused', workers: 2 }));
  const command = workshop.start([
    'run',
    'paused.ts',
    '--no-check',
    '--json',
    '--set',
    'topology.worker-timeout=4s',
  ]);
  await until('two workers run', () => command.stdout.split('is ready').length > 2);
  const acked = (): number =>
    (command.line('status') as { totals?: { acked: number } } | undefined)?.totals?.acked ?? 0;
  const workers = (): readonly { pid: number; restarts: number }[] =>
    (command.line('status') as { workers: { pid: number; restarts: number }[] }).workers;
  await until('rows flow', () => acked() > 0);
  const pids = [command.child.pid!, ...workshop.processes().map(({ pid }) => pid)];
  const before = workers().map(({ pid }) => pid);
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  const pausedAt = acked();
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  for (const pid of pids) process.kill(pid, 'SIGCONT');
  await until('rows flow again', () => acked() > pausedAt + 100);
  // Longer than it takes to judge a worker that has stayed silent.
  await new Promise((resolve) => setTimeout(resolve, 5000));
  expect(workers().map(({ pid, restarts }) => [pid, restarts])).toEqual(before.map((pid) => [pid, 0]));
  command.child.kill('SIGINT');
  const { code } = await command.ended;
  expect(command.line('summary')).toMatchObject({ everyRowAcked: true, lostStates: [] });
  expect(code).toBe(0);
});

const FAST_APP = `
import { bolt, spout, t, topology } from 'isobar';
const ROW = { n: t.int32, text: t.string };
const numbers = spout({
  emits: ROW,
  *read(context, from: number = 0) {
    for (let n = from; ; n++) yield { row: { n, text: 'a text of some bytes for row ' + n }, position: n + 1 };
  },
});
const sink = bolt({ takes: ROW, process() {} });
export default topology('fast', { 'topology.workers': 2 }, (b) => {
  b.bolt('sink', sink).shuffle(b.spout('numbers', numbers));
});
`;

it('a worker that reads nothing stops its senders, whose memory does not grow, and all goes on when it reads again', async () => {
  workshop.write('fast.ts', FAST_APP);
  const command = workshop.start(['run', 'fast.ts', '--no-check', '--json']);
  const status = () =>
    command.line('status') as { totals: { acked: number }; workers: { pid: number }[] } | undefined;
  const acked = (): number => status()?.totals.acked ?? 0;
  await until('rows flow', () => acked() > 100_000);
  const pids = status()!.workers.map(({ pid }) => pid);
  expect(pids).toHaveLength(2);
  for (const [place, pid] of pids.entries()) {
    process.kill(pid, 'SIGSTOP');
    // Counted until the last row that could be acked.
    let [last, stillAt] = [-1, -1];
    await until('everything stands still', () => {
      const { length } = command.lines().filter(({ type }) => type === 'status');
      if (length < last + 3) return false;
      const isStill = acked() === stillAt;
      [last, stillAt] = [length, acked()];
      return isStill;
    });
    const other = pids[1 - place]!;
    const before = residentBytes(other);
    await new Promise((resolve) => setTimeout(resolve, 4000));
    expect(residentBytes(other) - before).toBeLessThan(30_000_000);
    expect(acked()).toBe(stillAt);
    process.kill(pid, 'SIGCONT');
    await until('rows flow again', () => acked() > stillAt + 100_000);
  }
  command.child.kill('SIGINT');
  const { code } = await command.ended;
  expect(command.line('summary')).toMatchObject({ everyRowAcked: true, lostStates: [] });
  expect(status()!.totals).toMatchObject({ failed: 0, replayed: 0 });
  expect(code).toBe(0);
});

function residentBytes(pid: number): number {
  return 1024 * Number(/^VmRSS:\s*(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
}
