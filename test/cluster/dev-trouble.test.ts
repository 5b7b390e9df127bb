/** What is wrong with a cluster of `isobar dev` is told with a stable code and what to do; nothing is left behind by a failed start. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clusterSocketDirectory } from '../../src/api/index.js';
import { processIdentity, serveChannels, silentLogger } from '../../src/base/index.js';
import { CLI, numbersApp, until, Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

let workshop: Workshop;
let cluster: DevCluster;
beforeEach(() => {
  workshop = new Workshop();
  cluster = new DevCluster(workshop);
});
afterEach(() => workshop.close());

describe('a start that cannot succeed', () => {
  async function expectFailure(code: string, exitCode: number, ...words: string[]): Promise<string> {
    const ended = await cluster.dev(...words);
    expect(ended.stderr).toContain(`${code}:`);
    expect(ended.code).toBe(exitCode);
    await cluster.untilNothingRuns();
    return ended.stderr;
  }

  it('is one in a directory of another version, which is left as it is', async () => {
    mkdirSync(cluster.directory, { recursive: true });
    const marker = join(cluster.directory, 'cluster.json');
    writeFileSync(marker, '{"format":7,"version":"3.0.0"}');
    expect(await expectFailure('STATE_VERSION_UNKNOWN', 1)).toContain('Isobar 3.0.0');
    expect(await expectFailure('STATE_VERSION_UNKNOWN', 1, 'stop')).toContain('Isobar 3.0.0');
    expect(readFileSync(marker, 'utf8')).toBe('{"format":7,"version":"3.0.0"}');
  });

  it('is one in a directory that cannot be made, is no directory, or takes no data', async () => {
    workshop.write('home/file', '');
    for (const directory of ['/proc/isobar', join(workshop.home, 'file')]) {
      const ended = await workshop.run(['dev', '--directory', directory]);
      expect(ended.stderr).toContain('STATE_DIRECTORY_UNUSABLE');
      expect(ended.code).toBe(1);
    }
    const command = `ulimit -f 0; exec "${process.execPath}" "${CLI}" dev --directory "${cluster.directory}"`;
    const full = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    expect(full.stderr).toContain('STATE_DIRECTORY_UNUSABLE');
    expect(full.status).toBe(1);
    await cluster.untilNothingRuns();
  });

  it('is one over state that is damaged', async () => {
    await cluster.ask();
    await cluster.ask('stop');
    const log = join(cluster.directory, 'state', 'coordinator', 'coordinator.log');
    writeFileSync(log, 'this is no log at all '.repeat(20));
    expect(await expectFailure('STATE_DAMAGED', 1)).toContain('daemon local cannot be started');
    expect(readFileSync(log, 'utf8')).toContain('no log at all');
  });

  it('is one whose supervisor has a directory that another cluster uses', async () => {
    const shared = ['--supervisor', `name=a,directory=${join(workshop.home, 'shared')}`];
    await cluster.ask(...shared);
    const other = new DevCluster(workshop, 'other');
    const ended = await other.dev(...shared);
    expect(ended.stderr).toContain('STATE_DIRECTORY_OWNED');
    expect(ended.code).toBe(1);
    expect((await cluster.status()).state).toBe('ready');
    await cluster.ask('stop');
    await cluster.untilNothingRuns();
  });
});

describe('a cluster that runs', () => {
  it('is not another one because other options are given', async () => {
    await cluster.ask('--supervisors', '1');
    const other = await cluster.dev('--supervisors', '2');
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('DEV_ALREADY_RUNNING');
    expect(other.stderr).toContain('supervisor s1');
    expect(await cluster.ask('--supervisors', '1')).toMatchObject({ outcome: 'running' });
    await cluster.ask('stop');
    // Once it is stopped it can become another one; without options it is as before.
    expect(await cluster.ask('--supervisors', '2')).toMatchObject({ outcome: 'started' });
    await cluster.ask('stop');
    const { supervisors } = (await cluster.ask()) as { supervisors: { name: string }[] };
    expect(supervisors.map(({ name }) => name)).toEqual(['s1', 's2']);
  });

  it('is started once by two commands at the same time', async () => {
    const outcomes = await Promise.all([cluster.ask(), cluster.ask(), cluster.ask()]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['running', 'running', 'started']);
    const { keeper } = await cluster.status();
    const keepers = workshop.processes().filter(({ kind }) => kind === 'other');
    expect(keepers).toEqual([{ pid: keeper?.pid, kind: 'other' }]);
  });

  it('has its sockets elsewhere where its own name is too long for them', async () => {
    const long = new DevCluster(workshop, join('d'.repeat(60), 'e'.repeat(60)));
    const sockets = clusterSocketDirectory(long.directory);
    expect(sockets.startsWith('/tmp/')).toBe(true);
    await long.ask();
    expect(readdirSync(sockets)).toContain('control.sock');
    expect((await long.status()).state).toBe('ready');
    await long.ask('stop');
    expect(existsSync(sockets)).toBe(false);
    await long.untilNothingRuns();
  });

  it('is not taken for running after the machine was started anew', async () => {
    await cluster.ask();
    await cluster.ask('stop');
    // As a machine that lost power leaves it: sockets that nobody serves, owners of another boot whose pids are in use again.
    mkdirSync(join(cluster.directory, 's'));
    for (const name of ['keeper', 'control', 'coordinator', 'd-local'])
      writeFileSync(join(cluster.directory, 's', `${name}.sock`), '');
    for (const id of ['keeper', 'local', 'command']) {
      const owner = { ...processIdentity(process.pid), boot: 'an earlier one' };
      const owners = join(cluster.directory, 'daemons', id, 'owners');
      writeFileSync(join(owners, '000000000099'), JSON.stringify(owner));
    }
    expect(await cluster.status()).toMatchObject({ state: 'stopped', keeper: null });
    expect(await cluster.ask()).toMatchObject({ outcome: 'started', state: 'ready' });
  });

  it('says why a daemon does not stay alive, waits longer each time, and goes on once it can', async () => {
    await cluster.ask();
    const state = join(cluster.directory, 'state');
    renameSync(state, `${state}-away`);
    writeFileSync(state, 'not a directory');
    process.kill(await cluster.pidOf('local'), 'SIGKILL');
    const failing = await cluster.untilStatus(
      'several failures',
      ({ daemons: [local] }) => (local?.restarts ?? 0) >= 3,
    );
    expect(failing).toMatchObject({
      state: 'not-ready',
      daemons: [{ problem: { code: 'STATE_DIRECTORY_UNUSABLE' } }],
    });
    const shown = await cluster.dev('status');
    expect(shown.stdout).toMatch(/local.*: STATE_DIRECTORY_UNUSABLE: .*state/);
    expect(shown.code).toBe(1);
    rmSync(state);
    renameSync(`${state}-away`, state);
    await cluster.untilStatus('ready again', (status) => status.state === 'ready');
  });

  it('says why a worker does not stay alive, and when it is tried again', async () => {
    await cluster.ask('--set', 'worker.restart-backoff=2s');
    const app = numbersApp(null).replace(
      /prepare\(.*\{$/m,
      (prepare) => `${prepare} process.kill(process.pid, 'SIGKILL');`,
    );
    expect(app).toContain('SIGKILL');
    await cluster.submit(workshop.write('app.ts', app));
    await cluster.untilStatus(
      'a slot that backs off',
      ({ supervisors: [one] }) =>
        one?.slots.some(({ state, retryInMs }) => state === 'backing-off' && (retryInMs ?? 0) > 0) === true,
    );
    const shown = await cluster.dev('status');
    expect(shown.stdout).toMatch(
      /slot local:6700 is backing-off, tried again in .*WORKER_(LOST|START_FAILED)/,
    );
  });

  it('calls a topology failed whose stored bundle is damaged once no worker of it can be started, and goes on with others', async () => {
    await cluster.ask('--set', 'worker.restart-backoff=200ms', '--set', 'nimbus.round-interval=1s');
    await cluster.submit(workshop.write('app.ts', numbersApp(null)));
    const [{ name } = { name: '' }] = (
      await cluster.untilStatus('a topology', ({ topologies }) => topologies?.[0]?.workers === 1)
    ).topologies!;
    const blobs = join(cluster.directory, 'state', 'nimbus', 'blobs');
    for (const blob of readdirSync(blobs)) writeFileSync(join(blobs, blob), '');
    // The supervisor has a copy of its own; without it it must ask for the bundle.
    rmSync(join(cluster.directory, 'supervisors', 'local', 'code'), { recursive: true });
    for (const { pid, kind } of workshop.processes()) if (kind === 'worker') process.kill(pid, 'SIGKILL');
    await cluster.untilStatus(
      'its failure',
      ({ topologies }) => topologies?.find((one) => one.name === name)?.status === 'FAILED',
    );
    const told = await workshop.run(['events', name, '--json', '--directory', cluster.directory]);
    const events = told.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; code: string | null; message: string });
    expect(events).toContainEqual(
      expect.objectContaining({ kind: 'worker-died', message: expect.stringContaining('SIGKILL') as string }),
    );
    for (const kind of ['worker-not-started', 'failed'])
      expect(events).toContainEqual(expect.objectContaining({ kind, code: 'TOPOLOGY_CODE_LOST' }));
    await cluster.submit(workshop.write('other.ts', numbersApp(null, { name: 'others' })));
    await cluster.untilTopology('the other one', 'others', ({ isReady }) => isReady);
  });

  it('ends all the same when its supervisor does not answer', async () => {
    await cluster.ask('--supervisors', '2', '--set', 'supervisor.worker-stop-timeout=500ms');
    process.kill(await cluster.pidOf('supervisor-s1'), 'SIGSTOP');
    await cluster.ask('stop');
    await cluster.untilNothingRuns();
  });
});

describe('commands for a cluster', () => {
  it('that is not there say so', async () => {
    for (const words of [['status'], ['stop'], ['supervisor', 'stop', 'a'], ['supervisor', 'start', 'a']]) {
      const ended = await cluster.dev(...words);
      expect(ended.stderr).toContain('DAEMON_NOT_RUNNING');
      expect(ended.code).toBe(4);
    }
    expect(existsSync(cluster.directory)).toBe(false);
  });

  it('are each answered although Nimbus is killed while they are asked, and their history is whole', async () => {
    await cluster.ask('--supervisors', '2');
    await cluster.submit(workshop.write('app.ts', numbersApp(null)), '--workers', '2');
    await cluster.untilTopology('its workers', 'numbers', ({ isReady }) => isReady);
    const commands = [
      ...[['list'], ['describe', 'numbers'], ['events', 'numbers'], ['config', 'numbers']],
      ...[
        ['deactivate', 'numbers'],
        ['activate', 'numbers'],
        ['rebalance', 'numbers', '-n', '1'],
      ],
      ...[
        ['tap', 'numbers', 'numbers', '-n', '1'],
        ['kill', 'numbers', '-w', '0'],
      ],
    ];
    for (const words of commands) {
      const nimbus = await cluster.pidOf('nimbus');
      const answer = workshop.run([...words, '--directory', cluster.directory]);
      // Somewhere between the start of the command and its answer.
      await new Promise((resolve) => setTimeout(resolve, 150));
      process.kill(nimbus, 'SIGKILL');
      expect(await answer, words.join(' ')).toMatchObject({ code: 0 });
      await cluster.untilStatus('another Nimbus', ({ state }) => state === 'ready');
    }
    const history = async (): Promise<string[]> => {
      const told = await workshop.run(['events', 'numbers', '--json', '--directory', cluster.directory]);
      const lines = told.stdout.trim().split('\n');
      return lines.map((line) => (JSON.parse(line) as { kind: string }).kind);
    };
    let kinds = await history();
    for (let look = 0; look < 50 && !kinds.includes('removed'); look++) kinds = await history();
    for (const kind of ['submitted', 'deactivated', 'activated', 'rebalanced', 'killed', 'removed'])
      expect(kinds.filter((one) => one === kind)).toEqual([kind]);
  });

  it('say that its daemon is of another version, and change nothing', async () => {
    await cluster.ask('--supervisors', '2');
    process.kill(await cluster.pidOf('nimbus'), 'SIGSTOP');
    const { controlSocket } = await cluster.status();
    rmSync(controlSocket);
    const other = await serveChannels(
      controlSocket,
      () => ({ onRequest: () => ({ nimbusId: 'n', isLeader: true, pid: 1, contract: 99 }) }),
      silentLogger,
    );
    try {
      const commands = [
        ...[
          ['list'],
          ['describe', 'a'],
          ['events'],
          ['config'],
          ['why', 'a'],
          ['tap', 'a', 'b'],
          ['kill', 'a'],
        ],
        ...[
          ['rebalance', 'a', '-n', '2'],
          ['activate', 'a'],
          ['deactivate', 'a'],
          ['logs', 'a'],
        ],
      ];
      for (const words of commands) {
        const ended = await workshop.run([...words, '--directory', cluster.directory]);
        expect([words[0], ended.code, ended.stderr.split(':')[0]]).toEqual([
          words[0],
          4,
          'DAEMON_VERSION_MISMATCH',
        ]);
        expect(ended.stderr).toContain('version 99');
      }
      expect((await cluster.dev('status')).stdout).toContain('DAEMON_VERSION_MISMATCH');
      expect((await cluster.dev()).stderr).toContain('DAEMON_VERSION_MISMATCH');
    } finally {
      await other.close();
    }
  });

  it('end by themselves, and say why, while its daemon stands still', async () => {
    await cluster.ask();
    const local = await cluster.pidOf('local');
    process.kill(local, 'SIGSTOP');
    const app = workshop.write('app.ts', numbersApp(null));
    const commands = [
      ['list'],
      ['describe', 'numbers'],
      ['kill', 'numbers'],
      ['rebalance', 'numbers', '-n', '1'],
      ['why', 'numbers'],
      ['tap', 'numbers', 'sum'],
      ['submit', app, '--no-check'],
    ];
    const all = commands.map((words) => workshop.run([...words, '--directory', cluster.directory]));
    for (const { code, stderr } of await Promise.all(all)) {
      expect(stderr).toContain('REQUEST_TIMEOUT');
      expect(code).toBe(4);
    }
    expect((await cluster.dev('status')).code).toBe(1);
    process.kill(local, 'SIGCONT');
    await cluster.untilStatus('ready again', ({ state }) => state === 'ready');
  });

  it('name the supervisors that there are', async () => {
    await cluster.ask('--supervisors', '2');
    const unknown = await cluster.dev('supervisor', 'stop', 's3');
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('SUPERVISOR_UNKNOWN');
    expect(unknown.stderr).toContain('s1, s2');
    const running = await cluster.dev('supervisor', 'start', 's1', '--supervisor', 'slots=9');
    expect(running.stderr).toContain('DEV_ALREADY_RUNNING');
  });

  it('do not end Nimbus with the supervisor that shares its process', async () => {
    await cluster.ask();
    const ended = await cluster.dev('supervisor', 'stop', 'local', '--crash');
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('shares its process');
    await until('it still runs', () => workshop.processes().length === 2);
  });
});
