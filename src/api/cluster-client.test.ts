import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChannelServer, IsobarError, serveChannels, silentLogger } from '../base/index.js';
import { clusterClient } from './cluster-client.js';
import { controlSocketPath } from './cluster-place.js';
import { serveControl } from './control-socket.js';
import { FakeNimbus } from './testing/fake-nimbus.js';

let root: string;
let servers: ChannelServer[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'isobar-cluster-'));
  servers = [];
});

afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(root, { recursive: true, force: true });
});

async function serve(nimbus: FakeNimbus): Promise<ChannelServer> {
  const server = await serveControl(controlSocketPath(root), nimbus, silentLogger);
  servers.push(server);
  return server;
}

describe('a client of a cluster', () => {
  it('says at once that no daemon is running where there is no socket', async () => {
    const client = clusterClient(root);
    await expect(client.ask('list', null)).rejects.toMatchObject({
      code: 'DAEMON_NOT_RUNNING',
      details: { where: controlSocketPath(root) },
    });
  });

  it('asks a daemon of its contract', async () => {
    const nimbus = new FakeNimbus();
    await serve(nimbus);
    const client = clusterClient(root);
    await client.ask('describe', 'words');
    await client.ask('describe', 'lines');
    expect(nimbus.asked).toEqual([
      ['describe', 'words'],
      ['describe', 'lines'],
    ]);
    client.close();
  });

  it.each([
    [{ nimbusId: 'n', isLeader: true, pid: 1 }, 'version 1'],
    [{ nimbusId: 'n', isLeader: true, pid: 1, contract: 99 }, 'version 99'],
    [null, 'version 1'],
  ])('tells a daemon of another version apart, which answers %j', async (pong, found) => {
    servers.push(
      await serveChannels(controlSocketPath(root), () => ({ onRequest: () => pong }), silentLogger),
    );
    const client = clusterClient(root);
    await expect(client.ask('list', null)).rejects.toMatchObject({
      code: 'DAEMON_VERSION_MISMATCH',
      details: { expected: 'version 4', found },
    });
  });

  it('asks again when the daemon dies over a request, and the next one answers', async () => {
    let asked = 0;
    const dying = await serveChannels(
      controlSocketPath(root),
      () => ({
        onRequest: (method, _body, channel) => {
          if (method === 'ping') return { nimbusId: 'n', isLeader: true, pid: 1, contract: 4 };
          asked++;
          channel.close();
          return new Promise(() => undefined);
        },
      }),
      silentLogger,
    );
    const client = clusterClient(root);
    const answer = client.ask('config', null);
    while (asked < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await dying.close();
    const nimbus = new FakeNimbus();
    nimbus.answers.config = [];
    await serve(nimbus);
    expect(await answer).toEqual([]);
    client.close();
  });

  it('says once that nobody answers, if that lasts', async () => {
    const nimbus = new FakeNimbus();
    await serve(nimbus);
    const told: boolean[] = [];
    const client = clusterClient(root, {
      ...{ patienceMs: 600, slowMs: 250 },
      onSlow: (isAway) => told.push(isAway),
    });
    nimbus.failure = new IsobarError('NOT_LEADER', 'not yet');
    await expect(client.ask('config', null)).rejects.toMatchObject({ code: 'NOT_LEADER' });
    await expect(client.ask('config', null)).rejects.toMatchObject({ code: 'NOT_LEADER' });
    expect(told).toEqual([true]);
    client.close();
  });

  it('waits for a Nimbus to lead, but not for ever', async () => {
    const nimbus = new FakeNimbus();
    nimbus.failure = new IsobarError('NOT_LEADER', 'not yet');
    await serve(nimbus);
    const client = clusterClient(root, { patienceMs: 5000 });
    const answer = client.ask('config', null);
    while (nimbus.asked.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    nimbus.failure = undefined;
    nimbus.answers.config = [];
    expect(await answer).toEqual([]);
    nimbus.failure = new IsobarError('NOT_LEADER', 'no more');
    const impatient = clusterClient(root, { patienceMs: 250 });
    await expect(impatient.ask('config', null)).rejects.toMatchObject({ code: 'NOT_LEADER' });
    client.close();
    impatient.close();
  });
});
