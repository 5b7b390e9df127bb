/**
 * Nimbus killed at each step of a topology's life (submission, scheduling, rebalance, kill): a life is played again and again, and
 * each time Nimbus dies at another of the things that it stores, before it is stored or just after, without a word of it to anybody. Its
 * successor, and a command that asks again as the command line does, must come to the same end.
 */
import { readdirSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import type { Coordination } from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { BlobStore } from './blob-store.js';
import type { Nimbus } from './nimbus.js';
import type { RebalanceRequest } from './rebalance.js';
import { described, NimbusHarness, until } from './testing/nimbus-harness.js';

vi.setConfig({ testTimeout: 300_000 });

const STORES: ReadonlySet<string> = new Set([
  ...['createTopology', 'updateTopology', 'removeTopology', 'writeAssignment', 'storeHandovers'],
  ...['put', 'putSourceMap', 'writeDocument', 'remove', 'removeDocument', 'removeStates'],
]);
const REBALANCE: RebalanceRequest = {
  workers: 3,
  executors: { count: 1 },
  resources: {},
  waitMs: null,
  fromScratch: false,
  preview: false,
  requestId: 'rebalance',
};
/** The step before or after which nobody dies. */
const NEVER = Number.POSITIVE_INFINITY;

/** Stops everything that a Nimbus stores from one moment on. */
class Death {
  readonly #at: number;
  readonly #isBefore: boolean;
  readonly stored: string[] = [];
  readonly #onDeath: () => void;
  readonly hasCome: Promise<'dead'>;
  isDead = false;

  constructor(at: number, isBefore: boolean) {
    this.#at = at;
    this.#isBefore = isBefore;
    let onDeath: () => void = () => undefined;
    this.hasCome = new Promise((resolve) => (onDeath = () => resolve('dead')));
    this.#onDeath = onDeath;
  }

  /** The same port, until Nimbus is dead: from then on no call does anything, or comes back. */
  wrap<T extends Coordination | BlobStore>(port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function' || typeof name !== 'string') return member;
        const call = member.bind(target) as (...args: unknown[]) => unknown;
        if (!STORES.has(name)) return call;
        return async (...args: unknown[]) => {
          if (this.isDead) return forever();
          this.stored.push(name);
          const isLast = this.stored.length === this.#at;
          if (isLast && this.#isBefore) return this.#die();
          const result = await call(...args);
          return isLast ? this.#die() : result;
        };
      },
    });
  }

  #die(): Promise<never> {
    this.isDead = true;
    this.#onDeath();
    return forever();
  }
}

function forever(): Promise<never> {
  return new Promise(() => undefined);
}

class Life {
  readonly cluster: NimbusHarness;
  readonly #death: Death;
  #nimbus: Nimbus;
  /** Those that are not closed by the harness. */
  readonly #sessions: Coordination[] = [];
  #isSucceeded = false;

  private constructor(cluster: NimbusHarness, death: Death, nimbus: Nimbus) {
    this.cluster = cluster;
    this.#death = death;
    this.#nimbus = nimbus;
  }

  static async begin(death: Death): Promise<Life> {
    const cluster = await NimbusHarness.create();
    await cluster.nimbus.close();
    const nimbus = await cluster.startNimbus(
      death.wrap(cluster.own),
      cluster.clock,
      death.wrap(cluster.blobStore),
    );
    cluster.nimbus = nimbus;
    return new Life(cluster, death, nimbus);
  }

  /** As a command does: where Nimbus goes while it is asked, its successor is asked again. */
  async ask<T>(question: (nimbus: Nimbus) => Promise<T>): Promise<T> {
    await this.#succeed();
    if (this.#isSucceeded) return question(this.#nimbus);
    const answer = question(this.#nimbus);
    answer.catch(() => undefined);
    const first = await Promise.race([answer, this.#death.hasCome]);
    if (first !== 'dead') return first;
    await this.#succeed();
    return question(this.#nimbus);
  }

  async until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    return until(what, async () => {
      await this.#succeed();
      return look();
    });
  }

  async end(): Promise<void> {
    await this.cluster.close();
    for (const session of this.#sessions) await session.close();
  }

  /** Starts a successor where Nimbus is dead. */
  async #succeed(): Promise<void> {
    if (!this.#death.isDead || this.#isSucceeded) return;
    this.#isSucceeded = true;
    // What it waits for never comes, so nobody waits for its end: its session goes, and with that the leadership.
    void this.#nimbus.close();
    await this.cluster.own.close();
    const own = await this.cluster.connect();
    this.#sessions.push(own);
    this.#nimbus = await this.cluster.startNimbus(own);
    this.cluster.nimbus = this.#nimbus;
  }
}

function placesOf({ slots }: Assignment): readonly unknown[] {
  return slots.map(({ supervisor, port, executors }) => [supervisor, port, executors]);
}

/** One whole life. Returns what was stored on the way, in order, by the Nimbus that it began with. */
async function play(at: number, isBefore: boolean): Promise<Death> {
  const death = new Death(at, isBefore);
  const life = await Life.begin(death);
  const { cluster } = life;
  try {
    await cluster.announce('s1', [1, 2, 3, 4]);
    const { topologyId: id } = await life.ask((nimbus) =>
      nimbus.submit({
        description: described('words'),
        code: '// words',
        sourceMap: '{}',
        settings: { 'topology.workers': 2 },
        requestId: 'submit',
      }),
    );
    const placed = await life.until('a placement', async () => {
      const assignment = await cluster.outside.readAssignment(id);
      return assignment?.slots.length === 2 && assignment;
    });
    expect(await cluster.outside.listTopologyIds()).toEqual([id]);
    await cluster.report('s1', [placed]);
    await life.until('its workers', async () => {
      const { topologies } = await life.ask((nimbus) => nimbus.list());
      return topologies[0]?.workers.actual === 2;
    });
    // Whoever leads now moves nothing by itself.
    const running = await cluster.outside.readAssignment(id);
    expect(placesOf(running!)).toEqual(placesOf(placed));

    const { revision } = await life.ask((nimbus) => nimbus.rebalance('words', REBALANCE));
    expect(revision).toBe(1);
    const moved = await life.until('the rebalanced placement', async () => {
      const assignment = await cluster.outside.readAssignment(id);
      if (assignment === undefined) return undefined;
      await cluster.report('s1', [assignment]);
      await cluster.settle();
      const after = await cluster.outside.readAssignment(id);
      const isOver = after?.target === undefined && after?.moves === undefined;
      return isOver && after?.revision === 1 && after.version === assignment.version && after;
    });
    expect(moved.slots).toHaveLength(3);
    expect(moved.slots.map(({ port }) => port)).toEqual(
      expect.arrayContaining(placed.slots.map(({ port }) => port)),
    );

    const killed = await life.ask((nimbus) => nimbus.kill('words', 5000));
    expect(killed).toMatchObject({ topologyId: id, status: 'KILLED' });
    await life.until('the removal', async () => {
      cluster.clock.advance(1000);
      const assignment = await cluster.outside.readAssignment(id);
      await cluster.report('s1', assignment === undefined ? [] : [assignment]);
      await cluster.settle();
      return (await cluster.record(id)) === undefined;
    });
    expect(await cluster.outside.listAssignments()).toEqual([]);
    expect(await cluster.outside.listHandovers()).toEqual([]);
    await life.until('an empty store', () =>
      Promise.resolve([...readdirSync(cluster.blobs), ...readdirSync(cluster.documents)].length === 0),
    );
    expect((await life.ask((nimbus) => nimbus.list())).topologies).toEqual([]);
    return death;
  } finally {
    await life.end();
  }
}

describe('a Nimbus that is killed', () => {
  it.each([
    ['before', true],
    ['just after', false],
  ] as const)(
    '%s any of the things that it stores loses nothing and repeats nothing',
    async (_, isBefore) => {
      const { stored } = await play(NEVER, isBefore);
      // Handovers are the supervisors' here.
      expect(new Set([...stored, 'storeHandovers'])).toEqual(STORES);
      const failures: string[] = [];
      for (let at = 1; at <= stored.length; at++) {
        await play(at, isBefore).catch((error: unknown) => {
          failures.push(`${at} (${stored[at - 1]}): ${String(error)}`);
        });
      }
      expect(failures).toEqual([]);
    },
  );
});
