import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  EMPTY_SLOT,
  planSlot,
  SLOT_MOVES,
  topologyOf,
  wakeAtMs,
  workerOf,
  type Desired,
  type SlotAction,
  type SlotEvent,
  type SlotLimits,
  type SlotState,
  type SlotWorker,
  type WorkerTuning,
} from './slot-plan.js';

const TUNING: WorkerTuning = { launchTimeoutMs: 1000, timeoutMs: 300, backoffMs: 10, backoffMaxMs: 80 };
const LIMITS: SlotLimits = { stopTimeoutMs: 50, killRepeatMs: 20, healthyMs: 500, tuning: TUNING };
const WORDS: Desired = { kind: 'worker', topologyId: 'words', hasTasks: true };
const WORDS_IDLE: Desired = { ...WORDS, hasTasks: false };
const NONE: Desired = { kind: 'none' };
const UNKNOWN: Desired = { kind: 'unknown' };

function workerNamed(workerId: string, topologyId = 'words', generation = 1): SlotWorker {
  return { workerId, topologyId, generation, process: { pid: 100, startTime: '1' }, tuning: TUNING };
}

/** A slot that is driven by hand. */
class Driver {
  state: SlotState = EMPTY_SLOT;
  desired: Desired = WORDS;
  nowMs = 0;
  actions: readonly SlotAction[] = [];

  send(event: SlotEvent): this {
    const plan = planSlot(this.state, this.desired, event, this.nowMs, LIMITS);
    this.state = plan.state;
    this.actions = plan.actions;
    return this;
  }
  tick(): this {
    return this.send({ kind: 'tick' });
  }
  wish(desired: Desired): this {
    this.desired = desired;
    return this.tick();
  }
  later(ms: number): this {
    this.nowMs += ms;
    return this.tick();
  }
  launch(worker: SlotWorker): this {
    this.tick();
    this.send({ kind: 'localised', attempt: this.state.attempts });
    return this.send({ kind: 'launched', attempt: this.state.attempts, worker });
  }
  run(worker: SlotWorker): this {
    return this.launch(worker).send({ kind: 'alive', workerId: worker.workerId });
  }
  get kinds(): string[] {
    return this.actions.map(({ kind }) => kind);
  }
}

describe('planSlot', () => {
  it('goes from empty to running, one step at a time', () => {
    const driver = new Driver().tick();
    expect(driver.state.kind).toBe('localising');
    expect(driver.actions).toEqual([{ kind: 'localise', topologyId: 'words', attempt: 1 }]);
    driver.send({ kind: 'localised', attempt: 1 });
    expect(driver.actions).toEqual([{ kind: 'launch', topologyId: 'words', attempt: 1 }]);
    driver.send({ kind: 'launched', attempt: 1, worker: workerNamed('w1') });
    expect(driver.state).toMatchObject({ kind: 'starting', deadlineMs: 1000 });
    driver.send({ kind: 'alive', workerId: 'w1' });
    expect(driver.state.kind).toBe('running');
  });

  it('gives up localising as soon as the assignment changes, and localises the other topology', () => {
    const driver = new Driver().tick().wish({ kind: 'worker', topologyId: 'other', hasTasks: true });
    expect(driver.kinds).toEqual(['cancel-localise', 'localise']);
    expect(topologyOf(driver.state)).toBe('other');
    expect(driver.send({ kind: 'localised', attempt: 1 }).actions).toEqual([]);
  });

  it('keeps a launch of another topology apart from the present one: it is stopped once it has started', () => {
    const driver = new Driver().tick().send({ kind: 'localised', attempt: 1 }).wish(NONE);
    expect(driver.state.kind).toBe('launching');
    driver.send({ kind: 'launched', attempt: 1, worker: workerNamed('w1') });
    expect(driver.state).toMatchObject({ kind: 'stopping', reason: 'assignment' });
    expect(driver.kinds).toEqual(['stop']);
  });

  it('stops a worker whose topology left, and reuses the slot only once it is gone', () => {
    const driver = new Driver()
      .run(workerNamed('w1'))
      .wish({ kind: 'worker', topologyId: 'other', hasTasks: true });
    expect(driver.kinds).toEqual(['stop']);
    driver.later(49);
    expect(driver.actions).toEqual([]);
    driver.later(1);
    expect(driver.kinds).toEqual(['kill']);
    driver.later(20);
    expect(driver.kinds).toEqual(['kill']);
    driver.send({ kind: 'gone', workerId: 'w1' });
    expect(driver.kinds).toEqual(['forget', 'localise']);
    expect(topologyOf(driver.state)).toBe('other');
  });

  it('finishes a stop that it has begun even if the topology comes back meanwhile', () => {
    const driver = new Driver().run(workerNamed('w1')).wish(NONE).wish(WORDS);
    expect(driver.state.kind).toBe('stopping');
    driver.send({ kind: 'gone', workerId: 'w1' });
    expect(driver.state).toMatchObject({ kind: 'localising', failures: 0 });
  });

  it('separates the time to start from the time to answer', () => {
    const starting = new Driver().launch(workerNamed('w1'));
    expect(starting.later(999).state.kind).toBe('starting');
    expect(starting.later(1).state).toMatchObject({ kind: 'stopping', reason: 'start-timeout' });
    const running = new Driver().run(workerNamed('w1'));
    running.later(299).send({ kind: 'alive', workerId: 'w1' });
    expect(running.later(299).state.kind).toBe('running');
    expect(running.later(1).state).toMatchObject({ kind: 'stopping', reason: 'run-timeout' });
  });

  it('backs off twice as long with each crash, up to the limit', () => {
    const driver = new Driver();
    const pauses: number[] = [];
    for (let crash = 1; crash <= 6; crash++) {
      driver.run(workerNamed(`w${crash}`)).send({ kind: 'gone', workerId: `w${crash}` });
      if (driver.state.kind !== 'backing-off') throw new Error(driver.state.kind);
      const pauseMs = driver.state.untilMs - driver.nowMs;
      pauses.push(pauseMs);
      expect(driver.later(pauseMs - 1).state.kind).toBe('backing-off');
      expect(driver.later(1).state.kind).toBe('localising');
    }
    expect(pauses).toEqual([10, 20, 40, 80, 80, 80]);
  });

  it('begins to count anew after a healthy time', () => {
    const driver = new Driver();
    for (const id of ['w1', 'w2']) {
      driver.run(workerNamed(id)).send({ kind: 'gone', workerId: id });
      driver.later(100);
    }
    driver.run(workerNamed('w3'));
    for (let i = 0; i < 5; i++) driver.later(100).send({ kind: 'alive', workerId: 'w3' });
    driver.send({ kind: 'gone', workerId: 'w3' });
    expect(driver.state).toMatchObject({ kind: 'backing-off', failures: 1, untilMs: driver.nowMs + 10 });
  });

  it('backs off from code that cannot be localised, and ends the wait when the topology leaves', () => {
    const driver = new Driver().tick().send({ kind: 'localise-failed', attempt: 1 });
    expect(driver.state.kind).toBe('backing-off');
    expect(driver.wish(NONE).state.kind).toBe('empty');
  });

  it('starts and stops nothing while the assignment is unknown, but goes on watching', () => {
    const driver = new Driver();
    driver.desired = UNKNOWN;
    expect(driver.tick().state.kind).toBe('empty');
    driver.send({ kind: 'adopted', worker: workerNamed('w1') });
    driver.send({ kind: 'alive', workerId: 'w1' });
    expect(driver.tick().state.kind).toBe('running');
    driver.send({ kind: 'gone', workerId: 'w1' });
    expect(driver.later(1000).state.kind).toBe('backing-off');
    expect(driver.wish(WORDS).state.kind).toBe('localising');
  });

  it('adopts a running worker instead of localising, and gives it the time-out of running ones', () => {
    const driver = new Driver().tick().send({ kind: 'adopted', worker: workerNamed('w9') });
    expect(driver.kinds).toEqual(['cancel-localise']);
    expect(driver.state).toMatchObject({ kind: 'starting', deadlineMs: 300 });
  });

  it('never takes in a second worker', () => {
    const second: SlotEvent = { kind: 'adopted', worker: workerNamed('w2') };
    for (const driver of [
      new Driver().tick().send({ kind: 'localised', attempt: 1 }),
      new Driver().launch(workerNamed('w1')),
      new Driver().run(workerNamed('w1')),
      new Driver().run(workerNamed('w1')).wish(NONE),
    ]) {
      const before = driver.state;
      expect(driver.send(second).state).toBe(before);
    }
  });

  it('stops a worker that no worker can replace, and tries again only after the longest pause', () => {
    const driver = new Driver().launch(workerNamed('w1')).send({ kind: 'unusable', workerId: 'w1' });
    expect(driver.state).toMatchObject({ kind: 'stopping', reason: 'unusable' });
    driver.send({ kind: 'gone', workerId: 'w1' });
    expect(driver.state).toMatchObject({ kind: 'unusable', untilMs: driver.nowMs + 80 });
    expect(driver.wish(NONE).state.kind).toBe('empty');
  });

  it('stops a worker that takes too much memory, and starts another with growing pauses', () => {
    const driver = new Driver();
    for (const pauseMs of [10, 20, 40, 80, 80]) {
      const worker = workerNamed(`w${driver.state.attempts}`);
      if (driver.state.kind === 'empty') driver.run(worker);
      else {
        driver.send({ kind: 'localised', attempt: driver.state.attempts });
        driver.send({ kind: 'launched', attempt: driver.state.attempts, worker });
        driver.send({ kind: 'alive', workerId: worker.workerId });
      }
      driver.send({ kind: 'too-large', workerId: worker.workerId });
      expect(driver.actions).toEqual([{ kind: 'stop', worker, reason: 'memory' }]);
      expect(driver.send({ kind: 'too-large', workerId: worker.workerId }).actions).toEqual([]);
      driver.send({ kind: 'gone', workerId: worker.workerId });
      expect(driver.state).toMatchObject({ kind: 'backing-off', untilMs: driver.nowMs + pauseMs });
      driver.later(pauseMs);
      expect(driver.state.kind).toBe('localising');
    }
  });

  it('ignores what belongs to other workers and earlier attempts', () => {
    const driver = new Driver().run(workerNamed('w1'));
    const before = driver.state;
    for (const event of [
      { kind: 'gone', workerId: 'w0' },
      { kind: 'alive', workerId: 'w0' },
      { kind: 'unusable', workerId: 'w0' },
      { kind: 'too-large', workerId: 'w0' },
      { kind: 'localised', attempt: 1 },
      { kind: 'localise-failed', attempt: 1 },
      { kind: 'launched', attempt: 1, worker: workerNamed('w0') },
      { kind: 'launch-failed', attempt: 1 },
    ] as const) {
      expect(driver.send(event).state).toBe(before);
    }
  });
});

/**
 * The world around a slot: processes live and die as a schedule of numbers says, actions are carried out late, and the
 * assignment changes at will.
 */
class World {
  state: SlotState = EMPTY_SLOT;
  desired: Desired = NONE;
  nowMs = 0;
  readonly alive = new Set<string>();
  #workers = 0;
  #late: SlotEvent[] = [];
  readonly violations: string[] = [];

  send(event: SlotEvent): void {
    const before = this.state;
    const { state, actions } = planSlot(before, this.desired, event, this.nowMs, LIMITS);
    this.state = state;
    const held = workerOf(before)?.workerId;
    if (held !== undefined && workerOf(state)?.workerId !== held && this.alive.has(held)) {
      this.violations.push(`left ${before.kind} although ${held} lives`);
    }
    for (const action of actions) this.#carryOut(action);
  }

  #carryOut(action: SlotAction): void {
    switch (action.kind) {
      case 'localise':
        this.#late.push({ kind: 'localised', attempt: action.attempt });
        break;
      case 'launch': {
        if (this.alive.size > 0) this.violations.push('launched beside a living worker');
        const worker = workerNamed(`w${++this.#workers}`, action.topologyId, this.#workers);
        this.alive.add(worker.workerId);
        this.#late.push({ kind: 'launched', attempt: action.attempt, worker });
        break;
      }
      case 'kill':
        this.alive.delete(action.worker.workerId);
        break;
      case 'cancel-localise':
      case 'stop':
      case 'forget':
        break;
    }
  }

  /** One chaotic step, chosen by a number. */
  step(choice: number): void {
    const worker = workerOf(this.state);
    this.nowMs += choice % 37;
    switch (choice % 12) {
      case 0:
        this.desired = NONE;
        return this.send({ kind: 'tick' });
      case 1:
        this.desired = choice % 5 === 0 ? WORDS_IDLE : WORDS;
        return this.send({ kind: 'tick' });
      case 2:
        this.desired = { kind: 'worker', topologyId: 'other', hasTasks: true };
        return this.send({ kind: 'tick' });
      case 3:
      case 4:
        return this.deliver();
      case 5:
        if (worker !== undefined && this.alive.has(worker.workerId)) {
          this.send({ kind: 'welcomed', workerId: worker.workerId });
          this.send({ kind: 'alive', workerId: worker.workerId });
        }
        return;
      case 6:
        if (worker !== undefined) this.alive.delete(worker.workerId);
        return;
      case 7:
        if (worker !== undefined && !this.alive.has(worker.workerId))
          this.send({ kind: 'gone', workerId: worker.workerId });
        return;
      case 8:
        if (this.state.kind === 'localising')
          this.send({ kind: 'localise-failed', attempt: this.state.attempts });
        return;
      case 9:
        if (worker !== undefined) this.send({ kind: 'unusable', workerId: worker.workerId });
        return;
      case 10:
        if (worker !== undefined) this.send({ kind: 'too-large', workerId: worker.workerId });
        return;
      default:
        this.nowMs += 100;
        return this.send({ kind: 'tick' });
    }
  }

  deliver(): void {
    const event = this.#late.shift();
    if (event !== undefined) this.send(event);
  }

  /** Nothing goes wrong any more; time passes. */
  calm(): void {
    for (let turn = 0; turn < 400; turn++) {
      this.deliver();
      const worker = workerOf(this.state);
      if (worker !== undefined && !this.alive.has(worker.workerId)) {
        this.send({ kind: 'gone', workerId: worker.workerId });
      } else if (worker !== undefined) {
        this.send({ kind: 'alive', workerId: worker.workerId });
      }
      this.nowMs += 10;
      const wakeMs = wakeAtMs(this.state);
      if (wakeMs !== null && wakeMs <= this.nowMs) this.send({ kind: 'tick' });
    }
  }
}

describe('a slot that is to have no tasks', () => {
  it('stops a worker that has said nothing yet, and starts none until tasks come', () => {
    const driver = new Driver().launch(workerNamed('w1')).wish(WORDS_IDLE);
    expect(driver.state).toMatchObject({ kind: 'stopping', reason: 'assignment' });
    driver.send({ kind: 'gone', workerId: 'w1' });
    expect(driver.state.kind).toBe('empty');
    expect(driver.later(10_000).kinds).toEqual([]);
    expect(driver.wish(WORDS).kinds).toEqual(['localise']);
    expect(driver.wish(WORDS_IDLE).kinds).toEqual(['cancel-localise']);
  });

  it('keeps a worker that has been told of tasks, for what it still has to say', () => {
    const driver = new Driver().launch(workerNamed('w1')).send({ kind: 'welcomed', workerId: 'w1' });
    expect(driver.wish(WORDS_IDLE).state.kind).toBe('starting');
    expect(new Driver().run(workerNamed('w1')).wish(WORDS_IDLE).state.kind).toBe('running');
    const adopted = new Driver().wish(NONE).send({ kind: 'adopted', worker: workerNamed('w1') });
    expect(adopted.kinds).toContain('stop');
    const kept = new Driver().wish(WORDS_IDLE).send({ kind: 'adopted', worker: workerNamed('w1') });
    expect(kept.state).toMatchObject({ kind: 'starting', isWelcomed: true });
  });

  it('does not start a worker again that has ended', () => {
    const driver = new Driver().run(workerNamed('w1')).wish(WORDS_IDLE);
    driver.send({ kind: 'gone', workerId: 'w1' });
    expect(driver.state.kind).toBe('empty');
    expect(driver.later(10_000).kinds).toEqual([]);
  });
});

describe('any sequence of events', () => {
  const choices = fc.array(fc.nat({ max: 100_000 }), { maxLength: 120 });

  it('never gives a slot two workers, and never frees it before its worker is gone', () => {
    fc.assert(
      fc.property(choices, (steps) => {
        const world = new World();
        for (const step of steps) world.step(step);
        world.calm();
        expect(world.violations).toEqual([]);
      }),
      { seed: 3, numRuns: 1000 },
    );
  });

  it('ends, once events stop, in what is desired', () => {
    fc.assert(
      fc.property(choices, fc.constantFrom(NONE, WORDS), (steps, desired) => {
        const world = new World();
        for (const step of steps) world.step(step);
        world.desired = desired;
        world.send({ kind: 'tick' });
        world.calm();
        if (desired.kind === 'none') {
          expect(world.state.kind).toBe('empty');
          expect(world.alive.size).toBe(0);
        } else {
          expect(world.state.kind).toBe('running');
          expect(topologyOf(world.state)).toBe('words');
          expect([...world.alive]).toEqual([workerOf(world.state)?.workerId]);
        }
      }),
      { seed: 5, numRuns: 1000 },
    );
  });

  it('never stops, for want of tasks, a worker that may have had some, and never starts one', () => {
    fc.assert(
      fc.property(choices, (steps) => {
        const world = new World();
        for (const step of steps) world.step(step);
        const before = world.state;
        world.desired = WORDS_IDLE;
        world.send({ kind: 'tick' });
        const mayHave = before.kind === 'running' || (before.kind === 'starting' && before.isWelcomed);
        if (mayHave && topologyOf(before) === 'words') expect(world.state.kind).toBe(before.kind);
        else expect(['empty', 'launching', 'stopping']).toContain(world.state.kind);
        world.calm();
        expect(['empty', 'running']).toContain(world.state.kind);
      }),
      { seed: 9, numRuns: 1000 },
    );
  });

  it('moves only as the table allows', () => {
    const reachable = (from: string): Set<string> => {
      const found = new Set<string>([from]);
      for (const kind of found)
        for (const next of SLOT_MOVES[kind as keyof typeof SLOT_MOVES]) found.add(next);
      return found;
    };
    fc.assert(
      fc.property(choices, (steps) => {
        const world = new World();
        for (const step of steps) {
          const before = world.state.kind;
          world.step(step);
          expect(reachable(before)).toContain(world.state.kind);
        }
      }),
      { seed: 7, numRuns: 200 },
    );
  });
});
