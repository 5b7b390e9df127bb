/**
 * Nimbus's control interface over a Unix socket in a private directory. Errors pass as the same codes; requests that are
 * not in the contract are refused.
 */
import {
  type Channel,
  type ChannelServer,
  connectChannel,
  IsobarError,
  type Logger,
  serveChannels,
} from '../base/index.js';
import { blobHash, type Nimbus } from '../nimbus/index.js';
import { CONTRACT_VERSION, type ControlRequests, type SentSubmission } from './contract.js';
import { findHolder } from './find-holder.js';
import { isControlRequest, parseBody } from './request-shapes.js';
import { tapRows } from './tap-rows.js';

export interface ControlClient {
  /** @throws what the request of Nimbus throws, CONNECTION_LOST, REQUEST_TIMEOUT */
  ask<M extends keyof ControlRequests>(
    method: M,
    body: ControlRequests[M]['body'],
    options?: { readonly timeoutMs?: number },
  ): Promise<ControlRequests[M]['answer']>;
  readonly isClosed: boolean;
  close(): void;
}

const REQUEST_TIMEOUT_MS = 30_000;

type Handlers = {
  readonly [M in keyof ControlRequests]: (
    body: ControlRequests[M]['body'],
  ) => Promise<ControlRequests[M]['answer']>;
};

/**
 * Serves a Nimbus at `socketPath`.
 *
 * @param supervisorSocket where a supervisor of this machine listens; not given: none does
 * @throws SOCKET_PATH_TOO_LONG
 */
export function serveControl(
  socketPath: string,
  nimbus: Nimbus,
  logger: Logger,
  supervisorSocket: (supervisorId: string) => string = noSupervisor,
): Promise<ChannelServer> {
  const handlers = handlersOf(nimbus, supervisorSocket);
  const onRequest = (method: string, body: unknown): unknown => {
    if (isControlRequest(method)) return answer(handlers, method, body);
    const found = method.slice(0, 100);
    throw new IsobarError('USAGE', `a daemon does not answer "${found}"`, { found });
  };
  return serveChannels(socketPath, () => ({ onRequest }), logger);
}

function answer<M extends keyof ControlRequests>(handlers: Handlers, method: M, body: unknown): unknown {
  return handlers[method](parseBody(method, body));
}

function handlersOf(nimbus: Nimbus, supervisorSocket: (supervisorId: string) => string): Handlers {
  return {
    ping: async () => ({
      nimbusId: nimbus.id,
      isLeader: nimbus.isLeader,
      pid: process.pid,
      contract: CONTRACT_VERSION,
    }),
    submit: async (sent) => {
      checkArrival(sent);
      const { codeHash: _arrived, ...request } = sent;
      return nimbus.submit(request);
    },
    activate: (name) => nimbus.activate(name),
    deactivate: (name) => nimbus.deactivate(name),
    rebalance: ({ name, request }) => nimbus.rebalance(name, request),
    kill: ({ name, waitMs }) => nimbus.kill(name, waitMs),
    drain: async (name) => {
      await nimbus.drain(name);
      return null;
    },
    stop: async (name) => {
      await nimbus.stop(name);
      return null;
    },
    status: () => nimbus.status(),
    supervisors: () => nimbus.supervisors(),
    list: () => nimbus.list(),
    picture: () => nimbus.picture(),
    describe: (name) => nimbus.describe(name),
    events: (query) => nimbus.events(query),
    holder: async (name) => findHolder(await nimbus.describe(name), supervisorSocket),
    tap: async (question) => tapRows(await nimbus.describe(question.name), question, supervisorSocket),
    config: (name) => nimbus.config(name),
  };
}

function noSupervisor(supervisorId: string): never {
  throw new IsobarError('CONNECTION_LOST', `supervisor ${supervisorId} is not on this machine`);
}

/** @throws BUNDLE_DAMAGED */
function checkArrival({ code, codeHash }: SentSubmission): void {
  if (codeHash === undefined) return;
  const found = blobHash(typeof code === 'string' ? Buffer.from(code) : code);
  if (found === codeHash) return;
  throw new IsobarError('BUNDLE_DAMAGED', 'the code that arrived is not the code that was sent', {
    expected: `SHA-256 ${codeHash}`,
    found: `SHA-256 ${found}`,
    where: 'code',
  });
}

/**
 * Connects to a daemon's control socket. Nobody has asked yet which version it is.
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
    ask: (method, body, { timeoutMs = REQUEST_TIMEOUT_MS } = {}) => ask(channel, method, body, timeoutMs),
    get isClosed() {
      return channel.isClosed;
    },
    close() {
      channel.end();
      // A daemon that stands still would never close its side, and the command would not end.
      channel.setReferenced(false);
    },
  };
}

async function ask<M extends keyof ControlRequests>(
  channel: Channel,
  method: M,
  body: ControlRequests[M]['body'],
  timeoutMs: number,
): Promise<ControlRequests[M]['answer']> {
  // A daemon of the same contract answers what the contract says.
  return (await channel.request(method, body, { timeoutMs })) as ControlRequests[M]['answer'];
}
