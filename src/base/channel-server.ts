/**
 * Serves control connections (see channel.ts): the listening socket in its private directory, and what all clients of one
 * server share.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import { dirname } from 'node:path';
import {
  Channel,
  channelFault,
  type ChannelHandlers,
  checkSocketPath,
  MAX_MESSAGE_BYTES,
  type ServerMemory,
} from './channel.js';
import type { Logger } from './logger.js';

/** Bytes of unfinished messages of all clients together: above it, the one that holds most is cut off. */
const MAX_HELD_BYTES = MAX_MESSAGE_BYTES + 64 * 1024 * 1024;

export interface ChannelServer {
  readonly path: string;
  readonly channels: ReadonlySet<Channel>;
  /** Stops listening, closes every connection and removes the socket file. */
  close(): Promise<void>;
}

/** Creates the private directory that sockets live in (mode 0700). */
export function makePrivateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
}

/** Serves control connections at `path`; a stale socket file there is replaced. Clients that are cut off are logged. */
export async function serveChannels(
  path: string,
  handlers: () => ChannelHandlers,
  logger: Logger,
): Promise<ChannelServer> {
  checkSocketPath(path);
  makePrivateDirectory(dirname(path));
  rmSync(path, { force: true });
  const channels = new Set<Channel>();
  const memory = serverMemory(channels);
  const server = net.createServer((socket) => {
    const own = handlers();
    const channel = new Channel(
      socket,
      {
        ...own,
        onFault: (fault, failed) => {
          logger.warn('channel.cut-off', { socket: path, code: fault.code, reason: fault.message });
          own.onFault?.(fault, failed);
        },
        onClose: (closed) => {
          channels.delete(closed);
          own.onClose?.(closed);
        },
      },
      memory,
    );
    channels.add(channel);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  server.removeAllListeners('error');
  // No file descriptor is left for another client, say: those that are there go on.
  server.on('error', (error) => logger.warn('channel.accept-failed', { socket: path, error: error.message }));
  return {
    path,
    channels,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const channel of channels) channel.close();
      await closed;
      rmSync(path, { force: true });
    },
  };
}

function serverMemory(channels: ReadonlySet<Channel>): ServerMemory {
  return {
    bound() {
      let total = 0;
      let largest: Channel | undefined;
      for (const channel of channels) {
        total += channel.heldBytes;
        if (channel.heldBytes > (largest?.heldBytes ?? 0)) largest = channel;
      }
      if (total <= MAX_HELD_BYTES) return;
      largest?.fail(channelFault(`at most ${MAX_HELD_BYTES} bytes of unfinished messages`, total));
    },
  };
}
