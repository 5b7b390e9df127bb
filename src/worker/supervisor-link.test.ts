import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type ChannelServer,
  IsobarError,
  processIdentity,
  serveChannels,
  silentLogger,
  VirtualClock,
} from '../base/index.js';
import { SupervisorLink } from './supervisor-link.js';

const position = { task: 1, generation: 1, position: 7 };

let root: string;
let server: ChannelServer | undefined;
let link: SupervisorLink;

class NotedClock extends VirtualClock {
  readonly pausesMs: number[] = [];

  override after(delayMs: number, run: () => void): () => void {
    this.pausesMs.push(delayMs);
    return super.after(delayMs, run);
  }
}

let clock: NotedClock;
/** What the supervisor was asked to store, and whether it can. */
const asked: unknown[] = [];
let canStore = true;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'isobar-link-'));
  asked.length = 0;
  clock = new NotedClock();
  canStore = true;
  link = new SupervisorLink({
    socketPath: join(root, 's.sock'),
    hello: { workerId: 'w', topologyId: 't', port: 1, generation: 1, process: processIdentity(process.pid)! },
    handlers: {
      onAssignment: () => undefined,
      onHandovers: () => undefined,
      onPhase: () => undefined,
      onTap: () => Promise.reject(new Error('no tap')),
      onFindRow: () => Promise.resolve(null),
      onStop: () => undefined,
      onRefused: () => undefined,
      onPresence: () => undefined,
    },
    clock,
    logger: silentLogger,
  });
});
afterEach(async () => {
  link.close();
  await server?.close();
  rmSync(root, { recursive: true, force: true });
});

async function serve(): Promise<void> {
  server = await serveChannels(
    join(root, 's.sock'),
    () => ({
      onRequest(method, body) {
        if (method === 'hello') return { assignment: {}, phase: { kind: 'active' }, handovers: [] };
        asked.push(body);
        if (!canStore) throw new IsobarError('COORDINATOR_UNAVAILABLE', 'away');
        return null;
      },
    }),
    silentLogger,
  );
}

async function connected(): Promise<void> {
  link.start();
  await vi.waitFor(() => expect(link.isConnected).toBe(true));
}

describe('positions on their way to the supervisor', () => {
  it('are waited for until they are stored, also by a supervisor that comes later', async () => {
    const stored = vi.fn();
    link.storePositions([position]);
    void link.positionsStored().then(stored);
    await serve();
    expect(stored).not.toHaveBeenCalled();
    await connected();
    await vi.waitFor(() => expect(stored).toHaveBeenCalled());
    expect(asked).toEqual([[position]]);
    await link.positionsStored();
    expect(asked).toHaveLength(1);
  });

  it('are offered again after pauses that grow while they cannot be stored', async () => {
    await serve();
    await connected();
    canStore = false;
    const stored = vi.fn();
    link.storePositions([position]);
    void link.positionsStored().then(stored);
    for (let attempts = 1; attempts <= 6; attempts++) {
      await vi.waitFor(() => expect(clock.pausesMs).toHaveLength(attempts));
      expect(asked).toHaveLength(attempts);
      // Newer ones go with the next attempt.
      link.storePositions([{ ...position, position: attempts }]);
      clock.advance(clock.pausesMs.at(-1)!);
    }
    await vi.waitFor(() => expect(clock.pausesMs).toEqual([100, 200, 400, 800, 1000, 1000, 1000]));
    expect(asked.at(-1)).toEqual([{ ...position, position: 6 }]);
    expect(stored).not.toHaveBeenCalled();
    canStore = true;
    clock.advance(1000);
    await vi.waitFor(() => expect(stored).toHaveBeenCalled());
  });

  it('hold up the end of a worker for a moment at most, and not at all without supervisor', async () => {
    link.storePositions([position]);
    await link.flushPositions(200);
    await serve();
    await connected();
    await link.flushPositions(200);
    expect(asked).toEqual([[position]]);
    canStore = false;
    link.storePositions([position]);
    const flushed = link.flushPositions(200);
    clock.advance(200);
    await flushed;
  });
});
