/** Test support: a stretch of wire between a client and a server that can be cut and held apart. */
import { once } from 'node:events';
import net from 'node:net';

export interface CuttableLink {
  /** Breaks the connections; new ones are let through. */
  cut(): void;
  /** Breaks the connections and refuses new ones until {@link restore}. */
  isolate(): void;
  restore(): void;
  close(): Promise<void>;
}

/** Listens at `path` and passes everything on to `target`. */
export async function openCuttableLink(path: string, target: string): Promise<CuttableLink> {
  const sockets = new Set<net.Socket>();
  let isIsolated = false;
  const server = net.createServer((near) => {
    if (isIsolated) {
      near.destroy();
      return;
    }
    const far = net.connect(target);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('data', (chunk) => other.write(chunk));
      // What follows an error is 'close', which is all that matters here.
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  server.listen(path);
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    cut,
    isolate() {
      isIsolated = true;
      cut();
    },
    restore() {
      isIsolated = false;
    },
    async close() {
      cut();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
