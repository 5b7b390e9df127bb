import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { IsobarError, silentLogger, VirtualClock } from '../../base/index.js';
import { cluster, component, topology } from '../../cli/testing/statuses.js';
import { FakeNimbus } from '../testing/fake-nimbus.js';
import { type MetricsServer, serveMetrics } from './metrics-server.js';

const nimbus = new FakeNimbus();
const clock = new VirtualClock();
let server: MetricsServer | undefined;

afterEach(async () => {
  await server?.close();
  server = undefined;
  nimbus.failure = undefined;
  nimbus.isLeader = true;
});

async function start(port = 0): Promise<MetricsServer> {
  server = await serveMetrics({ nimbus, address: '127.0.0.1', port, clock, logger: silentLogger });
  return server;
}

function answer(busyMs: number): void {
  nimbus.answers.status = cluster(
    0,
    topology({ components: [component('split', 'bolt', { busyMs, executors: 1 })] }),
  );
}

async function scrape(): Promise<string> {
  return (await fetch(server!.url!)).text();
}

describe('the metrics server', () => {
  it('answers GET /metrics on loopback and nothing else', async () => {
    answer(0);
    const { url } = await start();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    const response = await fetch(url!);
    expect(response.headers.get('content-type')).toContain('version=0.0.4');
    expect(await response.text()).toContain(
      'isobar_component_busy_seconds_total{topology="words",component="split"} 0',
    );
    expect((await fetch(url!.replace('/metrics', '/'))).status).toBe(404);
    expect((await fetch(url!, { method: 'POST' })).status).toBe(405);
  });

  it('takes rates over five seconds or more, however often somebody asks', async () => {
    await start();
    const capacity = async (busyMs: number): Promise<string | undefined> => {
      answer(busyMs);
      return /isobar_component_capacity\{[^}]*\} (\S+)/.exec(await scrape())?.[1];
    };
    expect(await capacity(0)).toBeUndefined();
    clock.advance(2000);
    expect(await capacity(1000)).toBeUndefined();
    clock.advance(3000);
    expect(await capacity(2500)).toBe('0.5');
    clock.advance(2000);
    expect(await capacity(2500)).toBe('0.3');
  });

  it('says that it does not lead, and answers 503 while the cluster cannot be asked', async () => {
    answer(0);
    await start();
    nimbus.failure = new IsobarError('COORDINATOR_UNAVAILABLE', 'away');
    expect((await fetch(server!.url!)).status).toBe(503);
    nimbus.failure = new IsobarError('NOT_LEADER', 'another one leads');
    expect(await scrape()).toContain('isobar_nimbus_leader 0');
    nimbus.isLeader = false;
    expect(await scrape()).toContain('isobar_nimbus_leader 0');
  });

  it('does without a port that is taken until it is free', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    expect((await start(port)).url).toBeUndefined();
    await new Promise((resolve) => other.close(resolve));
    clock.advance(5000);
    await expect.poll(() => server?.url).toContain(String(port));
  });
});
