/**
 * Nimbus's control interface over a Unix socket in a private directory. Errors pass as the same codes; requests that are
 * not in the table below are refused.
 */
import {
  type Channel,
  type ChannelServer,
  connectChannel,
  IsobarError,
  type Logger,
  serveChannels,
} from '../base/index.js';
import type { Nimbus } from '../nimbus/index.js';
import type { ClusterStatus, PingAnswer, SubmitRequest, SubmitResult } from './contract.js';

/** Requests and their answers, by name. */
interface ControlRequests {
  readonly submit: { readonly body: SubmitRequest; readonly answer: SubmitResult };
  readonly drain: { readonly body: string; readonly answer: null };
  readonly kill: { readonly body: string; readonly answer: null };
  readonly status: { readonly body: null; readonly answer: ClusterStatus };
  readonly ping: { readonly body: null; readonly answer: PingAnswer };
}

export interface ControlClient {
  /** @throws what `Nimbus.submit` throws, CONNECTION_LOST, REQUEST_TIMEOUT */
  submit(request: SubmitRequest): Promise<SubmitResult>;
  /** @throws TOPOLOGY_NOT_ALIVE */
  drain(name: string): Promise<void>;
  /** @throws TOPOLOGY_NOT_ALIVE */
  kill(name: string): Promise<void>;
  status(): Promise<ClusterStatus>;
  ping(): Promise<PingAnswer>;
  readonly isClosed: boolean;
  close(): void;
}

const REQUEST_TIMEOUT_MS = 30_000;

/** Serves a Nimbus at `socketPath`. @throws SOCKET_PATH_TOO_LONG */
export function serveControl(socketPath: string, nimbus: Nimbus, logger: Logger): Promise<ChannelServer> {
  return serveChannels(
    socketPath,
    () => ({ onRequest: (method, body) => answer(nimbus, method, body) }),
    logger,
  );
}

async function answer(nimbus: Nimbus, method: string, body: unknown): Promise<unknown> {
  switch (method) {
    case 'submit':
      return nimbus.submit(parseSubmit(body));
    case 'drain':
      await nimbus.drain(parseName(body));
      return null;
    case 'kill':
      await nimbus.kill(parseName(body));
      return null;
    case 'status':
      return nimbus.status();
    case 'ping': {
      const pong: PingAnswer = { nimbusId: nimbus.id, isLeader: nimbus.isLeader, pid: process.pid };
      return pong;
    }
    default:
      throw new IsobarError('USAGE', `a daemon does not answer "${method.slice(0, 100)}"`, {
        found: method.slice(0, 100),
      });
  }
}

/**
 * Connects to a daemon's control socket.
 *
 * @param options.onClose called once, when the connection is gone
 * @throws CONNECTION_LOST when nobody listens there
 */
export async function connectControl(
  socketPath: string,
  options: { onClose?: () => void } = {},
): Promise<ControlClient> {
  const channel = await connectChannel(socketPath, { onClose: () => options.onClose?.() });
  return {
    submit: (request) => ask(channel, 'submit', request),
    drain: async (name) => {
      await ask(channel, 'drain', name);
    },
    kill: async (name) => {
      await ask(channel, 'kill', name);
    },
    status: () => ask(channel, 'status', null),
    ping: () => ask(channel, 'ping', null),
    get isClosed() {
      return channel.isClosed;
    },
    close: () => channel.end(),
  };
}

async function ask<M extends keyof ControlRequests>(
  channel: Channel,
  method: M,
  body: ControlRequests[M]['body'],
): Promise<ControlRequests[M]['answer']> {
  // The daemon is of this version: `ping` is asked first by whoever cannot be sure.
  return (await channel.request(method, body, {
    timeoutMs: REQUEST_TIMEOUT_MS,
  })) as ControlRequests[M]['answer'];
}

function parseName(body: unknown): string {
  if (typeof body === 'string') return body;
  throw new IsobarError('USAGE', 'the name of a topology is missing', {
    expected: 'a text',
    found: typeof body,
  });
}

function parseSubmit(body: unknown): SubmitRequest {
  const request = (typeof body === 'object' && body !== null ? body : {}) as Partial<Record<string, unknown>>;
  const { description, code, sourceMap, settings } = request;
  const isContent = (value: unknown): value is Uint8Array | string =>
    typeof value === 'string' || value instanceof Uint8Array;
  if (!isContent(code) || (sourceMap !== undefined && !isContent(sourceMap))) {
    throw new IsobarError('USAGE', 'a submission needs the bundle', { expected: 'code as text or bytes' });
  }
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) {
    throw new IsobarError('USAGE', 'a submission needs settings', { expected: 'an object of settings' });
  }
  return {
    description,
    code,
    settings: { ...settings },
    ...(sourceMap === undefined ? {} : { sourceMap }),
  };
}
