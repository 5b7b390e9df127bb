/** A machine that stood still for a while (a paused container or virtual machine): everybody was silent, and nobody is lost. */
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
