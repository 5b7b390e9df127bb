/** What a run that was killed leaves behind: after ten seconds no process and no socket. */
import { afterAll, describe, expect, it } from 'vitest';
import { numbersApp, type RunningCommand, until, Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());
const GONE_MS = 10_000;

async function startWithTwoWorkers(name: string): Promise<RunningCommand> {
  workshop.write(`${name}.ts`, numbersApp(null, { name, workers: 2 }));
  const command = workshop.start(['run', `${name}.ts`, '--no-check', '--json']);
  await until('two workers run', () => command.stdout.split('is ready').length > 2);
  return command;
}

function pids(kind: 'daemon' | 'worker'): number[] {
  return workshop.processes().flatMap((found) => (found.kind === kind ? [found.pid] : []));
}

async function expectNothing(): Promise<void> {
  await until(
    `no process and no socket: ${JSON.stringify([workshop.processes(), workshop.sockets()])}`,
    () => workshop.processes().length === 0 && workshop.sockets().length === 0,
    GONE_MS,
  );
}

describe('a killed run leaves nothing', () => {
  it('when only the command was killed; its directory goes too', async () => {
    const command = await startWithTwoWorkers('keeper');
    command.child.kill('SIGKILL');
    await expectNothing();
    await until('its directory is gone', () => workshop.remains().length === 0);
  });

  it('when command and daemon were killed', async () => {
    const command = await startWithTwoWorkers('both');
    const [daemon] = pids('daemon');
    command.child.kill('SIGKILL');
    process.kill(daemon!, 'SIGKILL');
    await expectNothing();
  });

  it('when all but one worker were killed; the next run sweeps what is left on disk', async () => {
    const command = await startWithTwoWorkers('all');
    const [daemon] = pids('daemon');
    const [worker] = pids('worker');
    command.child.kill('SIGKILL');
    process.kill(daemon!, 'SIGKILL');
    process.kill(worker!, 'SIGKILL');
    await expectNothing();
    expect(workshop.remains().length).toBeGreaterThan(0);
    workshop.write('next.ts', numbersApp(10));
    expect((await workshop.run(['run', 'next.ts', '--no-check', '--quiet'])).code).toBe(0);
    expect(workshop.remains()).toEqual([]);
  });
});
