/**
 * Serves metrics over HTTP. Nothing is collected while nobody asks: what is told is what Nimbus has heard anyway.
 *
 * M1  It never keeps a daemon from running: a port that is taken is tried again, and said in the log.
 * M2  Only `GET /metrics` is answered with anything; nobody is asked who he is, so it listens on loopback unless told otherwise.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, hasCode, type Logger } from '../../base/index.js';
import type { Nimbus } from '../../nimbus/index.js';
import { collectMetrics, type MetricsLook } from './collect-metrics.js';
import { exposition, EXPOSITION_TYPE, type Sample } from './exposition.js';

export interface MetricsServerOptions {
  readonly nimbus: Pick<Nimbus, 'isLeader' | 'status' | 'counts'>;
  readonly address: string;
  /** 0: any free one. */
  readonly port: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface MetricsServer {
  /** Where it listens now; undefined: the port is taken. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

/** Rates are taken over at least so long, however often somebody asks. */
const SHORTEST_WINDOW_MS = 5000;
/** Looks that are kept are at least so far apart. */
const SHORTEST_STEP_MS = 1000;
const RETRY_MS = 5000;

/** Resolves when it listens, or has found that it cannot yet. */
export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const server = new RunningMetricsServer(options);
  await server.listen();
  return server;
}

class RunningMetricsServer implements MetricsServer {
  readonly #options: MetricsServerOptions;
  readonly #server: Server;
  /** Looks of the last seconds, the oldest first. */
  #looks: MetricsLook[] = [];
  #hasFailed = false;
  #isClosed = false;
  #cancelRetry: () => void = () => undefined;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.unref();
  }

  get url(): string | undefined {
    const address = this.#server.address() as AddressInfo | null;
    if (address === null) return undefined;
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}/metrics`;
  }

  async listen(): Promise<void> {
    const { address, port, logger, clock } = this.#options;
    const error = await new Promise<Error | undefined>((resolve) => {
      this.#server.once('error', resolve);
      this.#server.listen(port, address, () => {
        this.#server.off('error', resolve);
        resolve(undefined);
      });
    });
    if (error === undefined) {
      this.#server.on('error', (fault) => logger.warn('metrics.failed', { message: fault.message }));
      logger.info('metrics.served', { url: this.url });
      return;
    }
    if (!this.#hasFailed) logger.warn('metrics.not-served', { address, port, message: error.message });
    this.#hasFailed = true;
    if (!this.#isClosed) this.#cancelRetry = clock.after(RETRY_MS, () => void this.listen());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer({ method, url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const isAsked = method === 'GET' || method === 'HEAD';
    if (!isAsked || !/^\/metrics(\?|$)/.test(url)) {
      response.writeHead(isAsked ? 404 : 405, { 'content-type': 'text/plain' }).end('GET /metrics\n');
      return;
    }
    try {
      const text = exposition(await this.#collect());
      response.writeHead(200, { 'content-type': EXPOSITION_TYPE }).end(method === 'HEAD' ? '' : text);
    } catch (error) {
      // The next scrape may find it well again.
      this.#options.logger.warn('metrics.not-collected', { message: String(error) });
      response.writeHead(503, { 'content-type': 'text/plain' }).end(`${String(error)}\n`);
    }
  }

  async #collect(): Promise<readonly Sample[]> {
    const now = await this.#look();
    const before = this.#looks.findLast(({ nowMs }) => now.nowMs - nowMs >= SHORTEST_WINDOW_MS);
    const kept = this.#looks.filter(({ nowMs }) => before === undefined || nowMs >= before.nowMs);
    const last = kept.at(-1);
    const isNews = last === undefined || now.nowMs - last.nowMs >= SHORTEST_STEP_MS;
    this.#looks = isNews ? [...kept, now] : kept;
    return collectMetrics(now, before);
  }

  async #look(): Promise<MetricsLook> {
    const { nimbus, clock } = this.#options;
    const cluster = nimbus.isLeader ? await leaderLook(nimbus) : null;
    const { user, system } = process.cpuUsage();
    return {
      nowMs: clock.nowMs(),
      process: {
        cpuMicros: user + system,
        residentBytes: process.memoryUsage.rss(),
        activeMs: performance.eventLoopUtilization().active,
      },
      cluster,
    };
  }
}

/** null: it has just ceased to lead. */
async function leaderLook(nimbus: MetricsServerOptions['nimbus']): Promise<MetricsLook['cluster']> {
  try {
    return { status: await nimbus.status(), counts: nimbus.counts };
  } catch (error) {
    if (hasCode(error, 'NOT_LEADER')) return null;
    throw error;
  }
}
