import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../base/index.js';
import { Departures, type Destination } from './departures.js';
import { TaskBook, type HostedTask } from './task-book.js';
import type { SavedTask } from './thread-messages.js';

const DRAIN_MS = 1000;
const SAVE_MS = 100;
const CLOSE_MS = 50;
const MOVE = 7;
const TO_SLOT: Destination = { kind: 'slot', move: MOVE };
const BYTES = new Uint8Array([1, 2, 3]);

/** One task in thread 0, whatever is done with it in order, and answers that tests give when they want. */
class Setting {
  readonly clock = new VirtualClock();
  readonly tasks = new TaskBook();
  readonly log: string[] = [];
  readonly hosted: HostedTask;
  isCutOff = false;
  isElsewhere = false;
  store: () => Promise<string> = () => Promise.resolve('hash');
  handOver: () => Promise<void> = () => Promise.resolve();
  readonly departures: Departures;

  constructor(state: HostedTask['state'] = 'running') {
    this.hosted = this.tasks.add(4, 'count', false, 0);
    this.hosted.state = state;
    this.departures = new Departures({
      clock: this.clock,
      drainMs: DRAIN_MS,
      saveMs: SAVE_MS,
      closeMs: CLOSE_MS,
      tasks: this.tasks,
      post: (thread, message) => {
        const limit = message.kind === 'finish-task' ? ` within ${message.limitMs}` : '';
        this.log.push(`thread ${thread}: ${message.kind}${limit}`);
      },
      cut: () => {
        this.log.push('cut');
        return 11;
      },
      uncut: () => this.log.push('uncut'),
      isCutOff: () => this.isCutOff,
      isElsewhere: () => this.isElsewhere,
      store: (_task, _move, bytes) => {
        this.log.push(`store ${bytes.length}`);
        return this.store();
      },
      handOver: (_task, move, step) => {
        const what = step.kind === 'released' ? step.state.kind : step.kind === 'kept' ? step.error.code : '';
        this.log.push(`${step.kind} ${what} in move ${move}`);
        return this.handOver();
      },
      storePosition: (_hosted, position) => {
        this.log.push(`position ${String(position)}`);
        return Promise.resolve();
      },
      onClosed: () => this.log.push('closed'),
      onRelocated: () => this.log.push('relocated'),
      arriveAt: (_hosted, thread, saved) =>
        this.log.push(`arrives in ${thread} with ${saved?.length ?? 'nothing'}`),
      onLostState: () => this.log.push('state lost'),
      onKept: (_hosted, { code }) => this.log.push(`stays: ${code}`),
    });
  }

  /** Up to the call of `save`. */
  finishing(to: Destination = TO_SLOT): this {
    this.departures.begin(this.hosted, to);
    this.isCutOff = true;
    this.departures.advance();
    return this;
  }

  saved(state: SavedTask['state'] = { kind: 'saved', bytes: BYTES }, id = 11, position?: unknown): void {
    this.departures.onSaved({ task: 4, id, state, position });
  }

  threadEnds(): void {
    this.hosted.state = 'placed';
    this.departures.onThreadGone(0);
  }

  /** What has been done since this was last asked. */
  done(): string[] {
    return this.log.splice(0);
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

describe('a departure to another slot', () => {
  it('is cut off, finished, stored, closed and released in this order, and stays known until it is seen elsewhere', async () => {
    const setting = new Setting();
    const { departures } = setting;
    departures.begin(setting.hosted, TO_SLOT);
    departures.advance();
    expect(setting.done()).toEqual(['cut']);
    setting.isCutOff = true;
    setting.clock.advance(300);
    departures.advance();
    expect(setting.done()).toEqual(['thread 0: finish-task within 700']);
    setting.saved();
    await settle();
    expect(setting.done()).toEqual(['store 3', 'thread 0: stop-tasks']);
    expect(departures.isHere(4)).toBe(true);
    departures.onStopped(4);
    await settle();
    expect(setting.done()).toEqual(['closed', 'released saved in move 7']);
    expect([departures.isHere(4), departures.away]).toEqual([false, [4]]);
    departures.advance();
    expect(setting.done()).toEqual([]);
    setting.isElsewhere = true;
    departures.advance();
    expect(setting.done()).toEqual(['uncut']);
    expect(departures.count).toBe(0);
  });

  it('stores the position of a spout before it is released', async () => {
    const setting = new Setting().finishing();
    setting.saved({ kind: 'none' }, 11, 42);
    setting.departures.onStopped(4);
    await settle();
    expect(setting.done().slice(-3)).toEqual(['closed', 'position 42', 'released none in move 7']);
  });

  it('is not away before its release is stored', async () => {
    const setting = new Setting().finishing();
    let answer: () => void = () => undefined;
    setting.handOver = () => new Promise((resolve) => (answer = resolve));
    setting.saved({ kind: 'none' });
    setting.departures.onStopped(4);
    setting.isElsewhere = true;
    await settle();
    expect([setting.departures.away, setting.departures.count]).toEqual([[], 1]);
    answer();
    await settle();
    expect(setting.departures.count).toBe(0);
  });

  it('goes on without those who do not say in time that they send nothing more', () => {
    const setting = new Setting();
    setting.departures.begin(setting.hosted, TO_SLOT);
    setting.clock.advance(DRAIN_MS);
    expect(setting.done()).toEqual(['cut', 'thread 0: finish-task within 0']);
  });

  it('is released without waiting longer for close than it may take', async () => {
    const setting = new Setting().finishing();
    setting.saved({ kind: 'none' });
    setting.done();
    setting.clock.advance(CLOSE_MS);
    await settle();
    expect(setting.done()).toEqual(['closed', 'released none in move 7']);
    setting.departures.onStopped(4);
    await settle();
    expect(setting.done()).toEqual([]);
  });

  it('waits for a task that is being started, and gives up on one that never is', async () => {
    const setting = new Setting('starting');
    setting.departures.begin(setting.hosted, TO_SLOT);
    expect(setting.done()).toEqual([]);
    setting.hosted.state = 'running';
    setting.departures.advance();
    expect(setting.done()).toEqual(['cut']);
    const never = new Setting('starting');
    never.departures.begin(never.hosted, TO_SLOT);
    never.clock.advance(DRAIN_MS + SAVE_MS);
    await settle();
    expect(never.done()).toEqual(['uncut', 'kept TASK_NOT_SAVED in move 7', 'stays: TASK_NOT_SAVED']);
  });

  it('has nothing to wait for where no thread has been told of the task', async () => {
    const setting = new Setting('placed');
    setting.departures.begin(setting.hosted, TO_SLOT);
    await settle();
    expect(setting.done()).toEqual(['closed', 'released none in move 7']);
  });
});

describe('a departure that fails', () => {
  const kept = (code: string): string[] => [
    'thread 0: keep-task',
    'uncut',
    `kept ${code} in move 7`,
    `stays: ${code}`,
  ];

  it('keeps a task whose save throws', () => {
    const setting = new Setting().finishing();
    setting.done();
    setting.saved({ kind: 'failed', error: { code: 'USER_CODE_FAILED', message: 'no', details: {} } });
    expect(setting.done()).toEqual(kept('USER_CODE_FAILED'));
    expect(setting.departures.count).toBe(0);
  });

  it('keeps a task whose save does not return, and takes no answer that comes later', async () => {
    const setting = new Setting().finishing();
    setting.done();
    setting.clock.advance(2 * DRAIN_MS + SAVE_MS - 1);
    expect(setting.done()).toEqual([]);
    setting.clock.advance(1);
    expect(setting.done()).toEqual(kept('TASK_NOT_SAVED'));
    setting.saved();
    await settle();
    expect(setting.done()).toEqual([]);
  });

  it('keeps a task whose state cannot be stored', async () => {
    const setting = new Setting().finishing();
    setting.store = () => Promise.reject(new Error('disk full'));
    setting.done();
    setting.saved();
    await settle();
    expect(setting.done()).toEqual(['store 3', ...kept('TASK_NOT_SAVED')]);
  });

  it('takes no answer of an earlier departure', () => {
    const setting = new Setting().finishing();
    setting.done();
    setting.saved({ kind: 'none' }, 10);
    expect(setting.done()).toEqual([]);
  });

  it('is called off until the task is being closed, and not from then on', async () => {
    const early = new Setting().finishing();
    early.done();
    early.departures.cancel(4);
    expect(early.done()).toEqual(kept('MOVE_CANCELLED'));
    const late = new Setting().finishing();
    late.saved({ kind: 'none' });
    late.done();
    late.departures.cancel(4);
    expect(late.done()).toEqual([]);
    late.departures.onStopped(4);
    await settle();
    late.departures.cancel(4);
    expect(late.done()).toEqual(['closed', 'released none in move 7']);
  });

  it('is over when the move is over for everybody', async () => {
    const setting = new Setting().finishing();
    setting.departures.onMoveOver(4);
    expect(setting.departures.count).toBe(1);
    setting.saved({ kind: 'none' });
    setting.departures.onStopped(4);
    await settle();
    setting.done();
    setting.departures.onMoveOver(4);
    expect([setting.done(), setting.departures.count]).toEqual([['uncut'], 0]);
  });
});

describe('a departure whose thread ends', () => {
  it('is released as lost before its state is there', async () => {
    const setting = new Setting().finishing();
    setting.done();
    setting.threadEnds();
    await settle();
    expect(setting.done()).toEqual(['closed', 'released lost in move 7']);
  });

  it('is released with its state while that is being stored, and as lost when it cannot be', async () => {
    for (const [outcome, state] of [
      [() => Promise.resolve('hash'), 'saved'],
      [() => Promise.reject(new Error('disk full')), 'lost'],
    ] as const) {
      const setting = new Setting().finishing();
      setting.store = outcome;
      setting.saved();
      setting.done();
      setting.threadEnds();
      await settle();
      expect(setting.done()).toEqual(['closed', `released ${state} in move 7`]);
    }
  });

  it('is released with its state while it is being closed', async () => {
    const setting = new Setting().finishing();
    setting.saved();
    await settle();
    setting.done();
    setting.threadEnds();
    await settle();
    expect(setting.done()).toEqual(['closed', 'released saved in move 7']);
  });

  it('has lost nothing if the task had not started', async () => {
    const setting = new Setting('starting');
    setting.departures.begin(setting.hosted, TO_SLOT);
    setting.threadEnds();
    await settle();
    expect(setting.done()).toEqual(['closed', 'released none in move 7']);
  });
});

describe('a departure to another thread', () => {
  const TO_THREAD: Destination = { kind: 'thread', thread: 1 };

  it('hands the state over in memory, writes nothing, and is over when the task runs', () => {
    const setting = new Setting().finishing(TO_THREAD);
    setting.done();
    setting.saved();
    setting.departures.onStopped(4);
    expect(setting.done()).toEqual(['thread 0: stop-tasks', 'closed', 'arrives in 1 with 3']);
    expect(setting.departures.destinationThread(4)).toBe(1);
    setting.hosted.state = 'placed';
    setting.departures.advance();
    expect(setting.done()).toEqual([]);
    setting.hosted.state = 'running';
    setting.departures.advance();
    expect(setting.done()).toEqual(['uncut', 'relocated']);
  });

  it('keeps a task whose save fails, and tells no other machine', () => {
    const setting = new Setting().finishing(TO_THREAD);
    setting.done();
    setting.saved({ kind: 'failed', error: { code: 'USER_CODE_FAILED', message: 'no', details: {} } });
    expect(setting.done()).toEqual(['thread 0: keep-task', 'uncut', 'stays: USER_CODE_FAILED']);
  });

  it('names the state that goes with the thread, for nobody else will', () => {
    const setting = new Setting().finishing(TO_THREAD);
    setting.done();
    setting.threadEnds();
    expect(setting.done()).toEqual(['state lost', 'closed', 'arrives in 1 with nothing']);
  });
});
