import { describe, expect, it } from 'vitest';
import type { PeerMessage } from './endpoints.js';
import { RouteKeeper } from './route-keeper.js';
import type { ThreadHost } from './thread-host.js';
import type { ToThread } from './thread-messages.js';

type Routes = Extract<ToThread, { kind: 'routes' }>;
type Threads = Extract<PeerMessage, { kind: 'threads' }>;

/** A thread of this worker, as far as routes look at it. */
class Host {
  readonly index: number;
  readonly generation: number;
  readonly started: Set<number>;
  readonly doorbell = new SharedArrayBuffer(4);
  isLeaving = false;
  readonly posted: ToThread[] = [];

  constructor(index: number, started: readonly number[], generation = 1) {
    this.index = index;
    this.generation = generation;
    this.started = new Set(started);
  }

  get key(): string {
    return `${this.index}/${this.generation}`;
  }

  post(message: ToThread): void {
    this.posted.push(message);
  }

  ringTo(): SharedArrayBuffer {
    return new SharedArrayBuffer(8);
  }

  get routes(): Routes {
    return this.posted.findLast((one) => one.kind === 'routes')!;
  }

  get marks(): number {
    return this.posted.filter(({ kind }) => kind === 'mark').length;
  }
}

/** Tasks 1 and 2 of `a` in two threads of this worker; 3 and 4 of `b` wherever peers say. */
class Setting {
  hosts = [new Host(0, [1]), new Host(1, [2])];
  readonly told: (readonly [peer: string, PeerMessage])[] = [];
  readonly routes: RouteKeeper;
  isAssigned = true;

  constructor() {
    this.routes = new RouteKeeper({
      ringBytes: 64,
      hosts: () => this.hosts as unknown as readonly ThreadHost[], // All that is used of them.
      tasks: () =>
        this.isAssigned
          ? [
              { component: 'a', first: 1, last: 2 },
              { component: 'b', first: 3, last: 4 },
            ]
          : undefined,
      tell: (peer, message) => this.told.push([peer, message]),
      onRoutes: () => undefined,
    });
  }

  async announce(peer: string, number: number, parts: Partial<Threads> = {}): Promise<void> {
    const threads = parts.threads ?? [{ index: 0, generation: 1, started: [[3, 4]] }];
    this.routes.onAnnouncement(peer, { kind: 'threads', number, cuts: [], ...parts, threads });
    await settle();
  }

  async send(): Promise<void> {
    this.routes.schedule();
    await settle();
  }

  /** All threads have applied the newest routes. */
  applied(): void {
    for (const host of this.hosts) this.routes.onApplied(host.key, host.routes.version);
  }

  idOf(peer: number, thread: number): number {
    return this.hosts[0]!.routes.endpoints.find((one) => one.peer === peer && one.thread === thread)!.id;
  }

  lastTold(peer: string): Threads {
    return this.told.findLast(([to, { kind }]) => to === peer && kind === 'threads')![1] as Threads;
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await Promise.resolve();
}

/** This worker with one peer that hosts `b`, all of it announced. */
async function withPeer(): Promise<Setting> {
  const setting = new Setting();
  setting.routes.onPeerUp('p:1');
  await setting.announce('p:1', 1);
  setting.applied();
  setting.told.length = 0;
  for (const host of setting.hosts) host.posted.length = 0;
  await setting.send();
  return setting;
}

describe('routes', () => {
  it('name every task once all peers have said what they host, and are announced when they change', async () => {
    const setting = new Setting();
    setting.routes.onPeerUp('p:1');
    await setting.send();
    const [first] = setting.hosts;
    expect([...first!.routes.endpointOfTask].slice(1)).toEqual([
      setting.idOf(-1, 0),
      setting.idOf(-1, 1),
      -1,
      -1,
    ]);
    await setting.announce('p:1', 1);
    expect([...first!.routes.endpointOfTask].slice(3)).toEqual([setting.idOf(0, 0), setting.idOf(0, 0)]);
    expect(setting.told).toHaveLength(1);
    setting.routes.onPeerUp('q:1');
    expect(setting.lastTold('q:1')).toEqual(setting.lastTold('p:1'));
    first!.started.add(9);
    await setting.send();
    expect(setting.lastTold('p:1')).toMatchObject({
      number: 2,
      threads: [
        {
          started: [
            [1, 1],
            [9, 9],
          ],
        },
        {},
      ],
    });
  });

  it('are sent once for all that happens in a turn', async () => {
    const setting = await withPeer();
    for (const host of setting.hosts) host.posted.length = 0;
    setting.routes.schedule();
    setting.routes.schedule();
    await settle();
    expect(setting.hosts[0]!.posted).toHaveLength(1);
  });
});

describe('a loss', () => {
  it('marks trees again, here and at peers, once every thread has stopped sending to what is lost', async () => {
    const setting = await withPeer();
    setting.routes.onPeerLost('p:1', true);
    setting.routes.onPeerUp('q:1');
    await settle();
    expect(setting.hosts.map(({ routes }) => routes.lost)).toEqual([true, true]);
    expect([...setting.hosts[0]!.routes.endpointOfTask].slice(3)).toEqual([-1, -1]);
    const [first, second] = setting.hosts;
    setting.routes.onApplied(first!.key, first!.routes.version);
    setting.routes.onApplied(second!.key, second!.routes.version - 1);
    expect([first!.marks, setting.told.filter(([, { kind }]) => kind === 'loss')]).toEqual([0, []]);
    setting.routes.onApplied(second!.key, second!.routes.version);
    expect([first!.marks, second!.marks]).toEqual([1, 1]);
    expect(setting.told.filter(([, { kind }]) => kind === 'loss').map(([peer]) => peer)).toEqual(['q:1']);
  });

  it('is a thread that comes back with another generation, and is none when it said that it leaves', async () => {
    const setting = await withPeer();
    await setting.announce('p:1', 2, { threads: [{ index: 0, generation: 2, started: [] }] });
    expect(setting.hosts[0]!.routes.lost).toBe(true);
    await setting.announce('p:1', 3, {
      threads: [{ index: 0, generation: 2, started: [], isLeaving: true }],
    });
    await setting.announce('p:1', 4, { threads: [] });
    expect(setting.hosts[0]!.routes.lost).toBe(false);
  });

  it('is passed on by a peer as a mark', async () => {
    const setting = await withPeer();
    setting.routes.onLoss(true);
    expect(setting.hosts.map(({ marks }) => marks)).toEqual([1, 1]);
  });

  it.each([
    ['a session only: no row can be behind it', [false], ['cut', 'cut']],
    ['a session, and a process before the threads knew of it', [false, true], ['ended', 'ended']],
    ['a process', [true], ['ended', 'ended']],
  ])('says what was lost: %s', async (_, losses, expected) => {
    const setting = await withPeer();
    setting.routes.onPeerUp('q:1');
    for (const hasEnded of losses) {
      setting.routes.onPeerLost('p:1', hasEnded);
      await settle();
    }
    const [first, second] = setting.hosts;
    expect(first!.routes.hasEnded).toBe(losses.at(-1));
    for (const host of [first, second]) setting.routes.onApplied(host!.key, host!.routes.version);
    const mark = first!.posted.findLast(({ kind }) => kind === 'mark');
    const told = setting.told.findLast(([, { kind }]) => kind === 'loss')![1];
    expect([
      mark?.kind === 'mark' && mark.hasEnded ? 'ended' : 'cut',
      told.kind === 'loss' && told.isCut === true ? 'cut' : 'ended',
    ]).toEqual(expected);
  });
});

describe('a task that is cut off', () => {
  it('is so when every peer has told its threads and every thread has sent its last row', async () => {
    const setting = await withPeer();
    const { routes } = setting;
    const id = routes.cut(1);
    await settle();
    expect(setting.lastTold('p:1').cuts).toEqual([{ task: 1, id }]);
    expect(setting.hosts[1]!.routes.held).toEqual([{ task: 1, id }]);
    for (const thread of [setting.idOf(-1, 0), setting.idOf(-1, 1)]) routes.onCut(1, id, thread);
    routes.onSeen('p:1', setting.lastTold('p:1').number);
    expect(routes.isCutOff(1)).toBe(false);
    routes.onCut(1, id + 1, setting.idOf(0, 0));
    expect(routes.isCutOff(1)).toBe(false);
    routes.onCut(1, id, setting.idOf(0, 0));
    expect(routes.isCutOff(1)).toBe(true);
  });

  it('waits for a peer that has not seen the announcement, for threads that came later, and not for those that are lost', async () => {
    const setting = await withPeer();
    const { routes } = setting;
    const id = routes.cut(1);
    await settle();
    for (const host of setting.hosts) routes.onCut(1, id, setting.idOf(-1, host.index));
    routes.onCut(1, id, setting.idOf(0, 0));
    expect(routes.isCutOff(1)).toBe(false);
    routes.onSeen('p:1', setting.lastTold('p:1').number);
    expect(routes.isCutOff(1)).toBe(true);
    await setting.announce('p:1', 2, {
      threads: [
        { index: 0, generation: 1, started: [[3, 4]] },
        { index: 1, generation: 1, started: [] },
      ],
    });
    expect(routes.isCutOff(1)).toBe(false);
    routes.onPeerLost('p:1', true);
    await settle();
    expect(routes.isCutOff(1)).toBe(true);
  });

  it('is seen elsewhere when a peer says that it has it, and is sent to again then', async () => {
    const setting = await withPeer();
    const { routes } = setting;
    routes.cut(1);
    setting.hosts[0]!.started.delete(1);
    await setting.send();
    expect([routes.isElsewhere(1), setting.hosts[1]!.routes.held.length]).toEqual([false, 1]);
    await setting.announce('p:1', 2, {
      threads: [
        {
          index: 0,
          generation: 1,
          started: [
            [1, 1],
            [3, 4],
          ],
        },
      ],
    });
    expect([routes.isElsewhere(1), setting.hosts[1]!.routes.held]).toEqual([true, []]);
    routes.uncut(1);
    await settle();
    expect(setting.lastTold('p:1').cuts).toEqual([]);
  });

  it('of a peer is confirmed when our threads have been told, also while there are none', async () => {
    const setting = await withPeer();
    await setting.announce('p:1', 5, { cuts: [{ task: 3, id: 1 }] });
    expect(setting.told.at(-1)).toEqual(['p:1', { kind: 'seen', number: 5 }]);
    expect(setting.hosts[0]!.routes.held).toEqual([{ task: 3, id: 1 }]);
    const early = new Setting();
    early.isAssigned = false;
    early.routes.onPeerUp('p:1');
    await early.announce('p:1', 5, { cuts: [{ task: 3, id: 1 }] });
    expect(early.told).toEqual([['p:1', { kind: 'seen', number: 5 }]]);
  });
});
