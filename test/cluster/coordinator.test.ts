/** The embedded coordinator as a real process that is killed, stopped and started; runs against the build. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { processIdentity, silentLogger, systemClock } from '../../src/base/index.js';
import { type Coordination, connectCoordination } from '../../src/coordination/index.js';
import { assignment, topology } from '../../src/coordination/coordination.conformance.js';

const BUILD = process.env['ISOBAR_BUILD'] ?? fileURLToPath(new URL('../../build', import.meta.url));
const SCRIPT = fileURLToPath(new URL('coordinator-process.mjs', import.meta.url));
const SEED = 4711;
const ROUNDS = 8;
const WRITERS = 4;

describe('the coordinator process', () => {
  let root: string;
  const children: ChildProcess[] = [];
  const clients: Coordination[] = [];

  beforeEach(async () => {
    if (!existsSync(join(BUILD, 'coordination/index.js'))) {
      throw new Error(`there is no build in ${BUILD}: run "npm run build" first`);
    }
    root = await mkdtemp(join(tmpdir(), 'isobar-cluster-'));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child);
    for (const client of clients.splice(0)) await client.close();
    await rm(root, { recursive: true, force: true });
  });

  const socketPath = (): string => join(root, 'sockets', 'c');

  async function start(
    ...args: readonly string[]
  ): Promise<{ child: ChildProcess; said: Record<string, unknown> }> {
    const child = spawn(process.execPath, [SCRIPT, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ISOBAR_BUILD: BUILD },
    });
    children.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return { child, said: JSON.parse(line) as Record<string, unknown> };
  }

  async function serve(timeoutMs = 60_000): Promise<ChildProcess> {
    const { child, said } = await start('serve', join(root, 'state'), socketPath(), String(timeoutMs));
    expect(said).toEqual({ ready: true });
    return child;
  }

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async function connect(timeoutMs = 60_000): Promise<Coordination> {
    const client = await connectCoordination({
      address: socketPath(),
      process: processIdentity(process.pid)!,
      clock: systemClock,
      logger: silentLogger,
      settings: { 'coordinator.session-timeout': timeoutMs },
    });
    clients.push(client);
    return client;
  }

  it(`has everything that it acknowledged after each of ${ROUNDS} kills in the middle of writing`, async () => {
    const random = randomFrom(SEED);
    /** Version that was acknowledged last, and whether a later write may have taken effect. */
    const known = new Map<string, { acknowledged: number; attempted: number }>();
    let server = await serve();
    for (let round = 0; round < ROUNDS; round++) {
      const killAfter = 10 + Math.floor(random() * 150);
      let acknowledged = 0;
      let isKilled = false;
      const killed = new Promise<void>((resolve, reject) => {
        const write = async (writer: number): Promise<void> => {
          const coordination = await connect();
          for (let step = 0; !isKilled; step++) {
            const id = `r${round}-w${writer}-${Math.floor(step / 5)}`;
            const entry = known.get(id) ?? { acknowledged: 0, attempted: 0 };
            known.set(id, entry);
            entry.attempted++;
            try {
              // Large ones too, so that some are killed between their chunks.
              await coordination.writeAssignment(
                assignment(id, entry.attempted, step % 5 === 4 ? 30_000 + step : 20),
              );
              entry.acknowledged = entry.attempted;
            } catch (error) {
              expect(error).toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
              break;
            }
            acknowledged++;
            if (acknowledged === killAfter) {
              isKilled = true;
              void kill(server).then(resolve);
            }
          }
        };
        Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer))).catch(reject);
      });
      await killed;
      for (const client of clients.splice(0)) await client.close();
      server = await serve();
      const reader = await connect();
      for (const [id, { acknowledged: atLeast, attempted: atMost }] of known) {
        const found = await reader.readAssignment(id);
        const version = found?.version ?? 0;
        expect(version, id).toBeGreaterThanOrEqual(atLeast);
        expect(version, id).toBeLessThanOrEqual(atMost);
        if (found === undefined) continue;
        // As text: comparing tens of thousands of pairs one by one takes seconds.
        const expected = JSON.stringify(assignment(id, version, found.slots[0]!.executors.length));
        expect(JSON.stringify(found) === expected, id).toBe(true);
      }
    }
    expect(known.size).toBeGreaterThan(ROUNDS * WRITERS);
  });

  it('never hands out a generation again after it was killed', async () => {
    const given = new Set<number>();
    let server = await serve();
    const coordination = await connect();
    await coordination.createTopology(topology('t'));
    for (let round = 0; round < 4; round++) {
      for (let count = 0; count < 25; count++) {
        const generation = await coordination.nextGeneration('t');
        expect(given.has(generation)).toBe(false);
        given.add(generation);
      }
      const reconnected = new Promise<void>((resolve) => coordination.onReconnect(resolve));
      await kill(server);
      server = await serve();
      await reconnected;
    }
  });

  it('owns its directory alone until it is killed', async () => {
    const server = await serve();
    const second = await start('serve', join(root, 'state'), join(root, 'sockets', 'd'), '60000');
    expect(second.said).toMatchObject({ ready: false, code: 'STATE_DIRECTORY_OWNED' });
    await kill(server);
    await serve();
  });

  it('frees the leadership of a killed process long before its time-out', async () => {
    await serve();
    const coordination = await connect();
    const leader = await start('lead', socketPath(), '60000');
    expect(leader.said).toEqual({ ready: true, leads: true });
    expect(await coordination.tryLead('test')).toBe(false);
    const killedMs = performance.now();
    await kill(leader.child);
    await vi.waitFor(async () => expect(await coordination.tryLead('test')).toBe(true), 10_000);
    expect(performance.now() - killedMs).toBeLessThan(5000);
  });

  it('frees the leadership of a stopped process after its time-out', async () => {
    await serve(1000);
    const coordination = await connect();
    const leader = await start('lead', socketPath(), '1000');
    leader.child.kill('SIGSTOP');
    expect(await coordination.tryLead('test')).toBe(false);
    await vi.waitFor(async () => expect(await coordination.tryLead('test')).toBe(true), 10_000);
  });

  it('ends no session because it was itself stopped for longer than the time-out', async () => {
    const server = await serve(1000);
    const [leader, other] = [await connect(1000), await connect(1000)];
    expect(await leader.tryLead('test')).toBe(true);
    const expired = vi.fn();
    leader.onReconnect(expired);
    server.kill('SIGSTOP');
    // Its clients notice, since it answers no ping.
    await vi.waitFor(
      async () =>
        await expect(leader.listTopologies()).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' }),
      10_000,
    );
    // Time is what this is about: longer than the time-out must pass while it stands still.
    await new Promise((resolve) => setTimeout(resolve, 2500));
    server.kill('SIGCONT');
    await vi.waitFor(() => expect(expired).toHaveBeenCalled(), 10_000);
    expect(await leader.tryLead('test')).toBe(true);
    expect(await other.tryLead('other')).toBe(false);
  });
});

/** Mulberry32: a small generator whose seed gives the same numbers everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
