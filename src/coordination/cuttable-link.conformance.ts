/** Test support: a stretch of wire between a client and a server that can be cut and held apart. */
import { once } from 'node:events';
import net from 'node:net';

export interface CuttableLink {
  /** Where it listens. */
  readonly port: number;
  /** Breaks the connections; new ones are let through. */
  cut(): void;
  /** Breaks the connections and refuses new ones until {@link restore}. */
  isolate(): void;
  restore(): void;
  /** Holds back what the server says on the connections of now, which stay open. */
  muteServer(): void;
  close(): Promise<void>;
}

/** Listens at `near` (the path of a socket; a free port of the loopback where it is left out) and passes all on to `far`. */
export async function openCuttableLink(far: string | number, near?: string): Promise<CuttableLink> {
  const sockets = new Set<net.Socket>();
  const farSockets = new Set<net.Socket>();
  let isIsolated = false;
  const server = net.createServer((nearSocket) => {
    if (isIsolated) {
      nearSocket.destroy();
      return;
    }
    const farSocket = typeof far === 'string' ? net.connect(far) : net.connect(far, '127.0.0.1');
    farSockets.add(farSocket);
    for (const [socket, other] of [
      [nearSocket, farSocket],
      [farSocket, nearSocket],
    ] as const) {
      sockets.add(socket);
      socket.on('data', (chunk) => other.write(chunk));
      // What follows an error is 'close', which is all that matters here.
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        farSockets.delete(socket);
        other.destroy();
      });
    }
  });
  if (near === undefined) server.listen(0, '127.0.0.1');
  else server.listen(near);
  await once(server, 'listening');
  const address = server.address();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    cut,
    isolate() {
      isIsolated = true;
      cut();
    },
    restore() {
      isIsolated = false;
    },
    muteServer() {
      for (const socket of farSockets) socket.pause();
    },
    async close() {
      cut();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
