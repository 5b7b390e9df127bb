/** A cluster of `isobar dev` in a workshop: its commands, and what Nimbus and the machine know of it. */
import { clusterClient, type TopologyStatus } from '../../src/api/index.js';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type DevStatus, devDirectory, inspectCluster } from '../../src/engines/index.js';
import { type Ended, until, type Workshop } from './command.js';

/** Longest wait for a condition: machines that test may be slow. */
const WAIT_MS = 120_000;
const POLL_MS = 25;

export class DevCluster {
  readonly workshop: Workshop;
  readonly directory: string;

  constructor(workshop: Workshop, name = 'dev') {
    this.workshop = workshop;
    this.directory = join(workshop.home, name);
  }

  dev(...words: string[]): Promise<Ended> {
    return this.workshop.run(['dev', ...words, '--directory', this.directory]);
  }

  /** Runs a command that must succeed, with --json, and returns its answer. */
  async ask(...words: string[]): Promise<Record<string, unknown>> {
    const ended = await this.dev(...words, '--json');
    if (ended.code !== 0)
      throw new Error(`dev ${words.join(' ')} ended with ${ended.code}: ${ended.stdout}${ended.stderr}`);
    return JSON.parse(ended.stdout) as Record<string, unknown>;
  }

  /** As `dev status` has it, without a process for each look. */
  async status(): Promise<DevStatus> {
    const status = await inspectCluster(devDirectory(this.directory));
    if (status === undefined) throw new Error(`there is no cluster in ${this.directory}`);
    return status;
  }

  async untilStatus(what: string, condition: (status: DevStatus) => boolean): Promise<DevStatus> {
    const deadlineMs = performance.now() + WAIT_MS;
    for (;;) {
      const status = await this.status();
      if (condition(status)) return status;
      if (performance.now() > deadlineMs)
        throw new Error(`waited in vain: ${what}: ${JSON.stringify(status)}`);
      await pause(POLL_MS);
    }
  }

  async submit(file: string, ...options: string[]): Promise<void> {
    const words = ['submit', file, '--no-check', '--directory', this.directory, ...options];
    const { code, stderr } = await this.workshop.run(words);
    if (code !== 0) throw new Error(`submit ended with ${code}: ${stderr}`);
  }

  /** undefined while Nimbus is away. */
  async topology(name: string): Promise<TopologyStatus | undefined> {
    const client = clusterClient(this.directory, { patienceMs: 0 });
    try {
      const { topologies } = await client.ask('status', null);
      return topologies.find((one) => one.name === name);
    } catch {
      return undefined;
    } finally {
      client.close();
    }
  }

  async untilTopology<T>(
    what: string,
    name: string,
    condition: (status: TopologyStatus) => T | undefined | false,
  ): Promise<T> {
    const deadlineMs = performance.now() + WAIT_MS;
    for (;;) {
      const status = await this.topology(name);
      const value = status === undefined ? undefined : condition(status);
      if (value !== undefined && value !== false) return value;
      if (performance.now() > deadlineMs)
        throw new Error(`waited in vain: ${what}: ${JSON.stringify(status?.workers)}`);
      await pause(POLL_MS);
    }
  }

  /** Pids of the topology's workers by slot, once all executors run. */
  untilRunning(name: string): Promise<ReadonlyMap<string, number>> {
    return this.untilTopology(`${name} runs`, name, ({ isReady, workers }) =>
      isReady
        ? new Map(workers.map(({ supervisorId, port, pid }) => [`${supervisorId}:${port}`, pid ?? 0]))
        : undefined,
    );
  }

  /** Rows are acked that were not yet when this was called. */
  async untilRowsFlow(name: string): Promise<void> {
    const before = await this.untilTopology('a count', name, ({ totals }) => totals);
    await this.untilTopology('rows flow', name, ({ totals }) => totals.acked > before.acked + 10);
  }

  async pidOf(daemon: string): Promise<number> {
    const status = await this.status();
    const pid =
      daemon === 'keeper' ? status.keeper?.pid : status.daemons.find(({ id }) => id === daemon)?.pid;
    if (pid === undefined || pid === null) throw new Error(`${daemon} does not run`);
    return pid;
  }

  async untilNothingRuns(): Promise<void> {
    await until(
      'no process and no socket is left',
      () => this.workshop.processes().length === 0 && this.workshop.sockets().length === 0,
      WAIT_MS,
    );
  }
}
