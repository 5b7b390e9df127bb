import { once } from 'node:events';
import http from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger, systemClock } from '../base/index.js';
import { connectCoordination } from './connect.js';
import type { Coordination } from './coordination.js';

describe('the address of a coordinator', () => {
  let directory: string;
  const servers: net.Server[] = [];
  const sockets = new Set<net.Socket>();

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'isobar-connect-'));
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    for (const server of servers.splice(0)) {
      const closed = once(server, 'close');
      server.close();
      await closed;
    }
    rmSync(directory, { recursive: true, force: true });
  });

  function connect(address: string, credentialsFile: string | null = null): Promise<Coordination> {
    return connectCoordination({
      address,
      process: { pid: process.pid, startTime: '' },
      directory,
      settings: { 'coordinator.session-timeout': 600, 'coordinator.credentials-file': credentialsFile },
      clock: systemClock,
      logger: silentLogger,
    });
  }

  async function listen<S extends net.Server>(server: S): Promise<number> {
    servers.push(server);
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  it.each(['http://zk1:2181/isobar', 'zk1:2181', 'zookeeper:/zk1', 'etcd://user:secret@zk1', ''])(
    'that is none is refused: %j',
    async (address) => {
      const refused = connect(address);
      await expect(refused).rejects.toMatchObject({ code: 'COORDINATOR_ADDRESS_INVALID' });
      await expect(refused).rejects.not.toThrow('secret');
    },
  );

  it('at which no socket is served is unavailable', async () => {
    await expect(connect(join(directory, 'c.sock'))).rejects.toMatchObject({
      code: 'COORDINATOR_UNAVAILABLE',
    });
  });

  it('with unreadable credentials is refused before anything is asked', async () => {
    for (const file of [join(directory, 'none'), 'relative']) {
      await expect(connect('zookeeper://127.0.0.1:1', file)).rejects.toMatchObject({
        code: 'COORDINATOR_CREDENTIALS_INVALID',
      });
    }
  });

  it('of servers that are not there is unavailable, each with its reason', async () => {
    const port = await listen(net.createServer());
    const server = servers.pop()!;
    server.close();
    await once(server, 'close');
    const refused = connect(`zookeeper://127.0.0.1:${port},no-such-host.invalid:2181/isobar`);
    await expect(refused).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
    await expect(refused).rejects.toThrow(`127.0.0.1:${port}: connect ECONNREFUSED`);
    await expect(refused).rejects.toThrow('no-such-host.invalid:2181: getaddrinfo');
  });

  it('of something else than ZooKeeper is unavailable', async () => {
    const web = await listen(http.createServer((_, response) => response.end('hello')));
    const talker = await listen(net.createServer((socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n')));
    const liar = await listen(
      net.createServer((socket) => {
        // A frame of the right length that is no answer.
        socket.end(Buffer.concat([Buffer.from([0, 0, 0, 37]), Buffer.alloc(37, 0xff)]));
      }),
    );
    for (const port of [web, talker, liar]) {
      await expect(connect(`zookeeper://127.0.0.1:${port}`)).rejects.toThrow('no ZooKeeper server');
    }
  });

  it('of a server that takes connections and says nothing is unavailable after a while', async () => {
    const port = await listen(net.createServer());
    await expect(connect(`zookeeper://127.0.0.1:${port}`)).rejects.toMatchObject({
      code: 'COORDINATOR_UNAVAILABLE',
      message: expect.stringContaining('does not serve') as string,
    });
  });
});
