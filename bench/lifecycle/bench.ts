/**
 * `bench lifecycle`: many small topologies submitted, listed and killed through the control socket, workers off. Whether an
 * operation costs the same however many topologies there are shows in the ratio of the last tenth to the first.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as Api from '../../build/api/index.js';
import type * as Base from '../../build/base/index.js';
import type * as Coordination from '../../build/coordination/index.js';
import type * as Nimbus from '../../build/nimbus/index.js';
import { loadBuilt } from '../load-built.js';
import type { BenchOptions } from '../options.js';
import { type Report, summarize } from '../report.js';

const TOPOLOGIES = 10_000;
const QUICK_TOPOLOGIES = 1000;
/** Requests under way at once. */
const CONCURRENCY = 16;

export async function benchLifecycle(options: BenchOptions, report: Report): Promise<void> {
  const count = options.quick ? QUICK_TOPOLOGIES : TOPOLOGIES;
  await withNimbus(async (control) => {
    const names = Array.from({ length: count }, (_, index) => `topology-${index}`);
    const submits = await timed(names, async (name) => {
      await control.ask('submit', { description: description(name), code: '// empty', settings: {} });
    });
    reportTenths('submit', submits, count, report);
    const lists: number[] = [];
    for (let index = 0; index < 5; index++) {
      const startMs = performance.now();
      const { topologies } = await control.ask('list', null);
      if (topologies.length !== count) throw new Error(`${topologies.length} of ${count} are listed.`);
      lists.push((performance.now() - startMs) / count);
    }
    const bench = { bench: 'lifecycle', case: `${count}-topologies` };
    report(summarize({ ...bench, metric: 'list-per-topology', unit: 'ms' }, lists));
    const kills = await timed(names, async (name) => {
      await control.ask('kill', { name, waitMs: 0 });
    });
    reportTenths('kill', kills, count, report);
    const left = (await control.ask('list', null)).topologies.length;
    if (left > 0) throw new Error(`${left} topologies were not removed.`);
  });
}

/** Time of each operation, ms, in the order of names; some run at once. */
async function timed(names: readonly string[], run: (name: string) => Promise<void>): Promise<number[]> {
  const times = new Array<number>(names.length).fill(0);
  let next = 0;
  const workThrough = async (): Promise<void> => {
    for (let index = next++; index < names.length; index = next++) {
      const startMs = performance.now();
      await run(names[index]!);
      times[index] = performance.now() - startMs;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, workThrough));
  return times;
}

function reportTenths(operation: string, times: readonly number[], count: number, report: Report): void {
  const names = { bench: 'lifecycle', case: `${count}-topologies` };
  const tenth = Math.floor(times.length / 10);
  const mean = (part: readonly number[]): number => part.reduce((sum, ms) => sum + ms, 0) / part.length;
  const [first, last] = [mean(times.slice(0, tenth)), mean(times.slice(-tenth))];
  report(summarize({ ...names, metric: operation, unit: 'ms' }, [mean(times)]));
  report(summarize({ ...names, metric: `${operation}-last-to-first-tenth`, unit: '' }, [last / first]));
}

/** A spout and a bolt, one task each, as a file would describe them. */
function description(name: string): unknown {
  const stream = { name: 'default', fields: [{ name: 'word', kind: 'string', nullable: false }] };
  const shared = {
    parallelism: 1,
    tasks: null,
    streams: [stream],
    stateful: false,
    movable: false,
    tickMs: null,
    manual: false,
    unordered: false,
  };
  const subscription = {
    input: 'default',
    source: 'lines',
    stream: 'default',
    grouping: { kind: 'shuffle' },
  };
  const inputs = [{ name: 'default', fields: stream.fields }];
  return {
    format: 1,
    name,
    settings: {},
    components: [
      { ...shared, id: 'lines', kind: 'spout', inputs: [], subscriptions: [] },
      { ...shared, id: 'count', kind: 'bolt', inputs, subscriptions: [subscription] },
    ],
    warnings: [],
  };
}

async function withNimbus(run: (control: Api.ControlClient) => Promise<void>): Promise<void> {
  const { connectControl, serveControl } = await loadBuilt<typeof Api>('api/index.js');
  const { compileSettings, processIdentity, silentLogger, systemClock } =
    await loadBuilt<typeof Base>('base/index.js');
  const { connectCoordination, openEmbeddedCoordinator } =
    await loadBuilt<typeof Coordination>('coordination/index.js');
  const { createBlobStore, EventJournal, startNimbus } = await loadBuilt<typeof Nimbus>('nimbus/index.js');
  const directory = mkdtempSync(join(tmpdir(), 'isobar-lifecycle-'));
  const socketPath = join(directory, 'c.sock');
  const common = { clock: systemClock, logger: silentLogger };
  const settings = compileSettings({});
  const coordinator = await openEmbeddedCoordinator({
    ...common,
    directory: join(directory, 'coordinator'),
    socketPath,
    sessionTimeoutMs: settings['coordinator.session-timeout'],
  });
  const coordination = await connectCoordination({
    ...common,
    address: socketPath,
    process: processIdentity(process.pid) ?? { pid: process.pid, startTime: '' },
    settings,
  });
  const nimbus = await startNimbus({
    ...common,
    id: 'bench',
    coordination,
    blobStore: createBlobStore(join(directory, 'nimbus')),
    journal: new EventJournal(join(directory, 'nimbus', 'events.jsonl'), silentLogger),
    settings,
    randomBytes,
  });
  const controlPath = join(directory, 'control.sock');
  const server = await serveControl(controlPath, nimbus, silentLogger);
  const control = await connectControl(controlPath);
  try {
    await run(control);
  } finally {
    control.close();
    await server.close();
    await nimbus.close();
    await coordination.close();
    await coordinator.close();
    rmSync(directory, { recursive: true, force: true });
  }
}
