import { describe, expect, it } from 'vitest';
import { compileSettings, VirtualClock, type RawSettings } from '../base/index.js';
import type { RuntimeOut, RuntimeSpout, SpoutAnswer, TaskContext } from '../topology/index.js';
import { SpoutSource } from './spout-source.js';

/** A low-level source, asked whenever it may be: at which milliseconds was it? */
function asked(
  settings: RawSettings,
  untilMs: number,
  answer: (atMs: number) => SpoutAnswer,
  at: (atMs: number, source: SpoutSource) => void = () => undefined,
): number[] {
  const clock = new VirtualClock();
  const times: number[] = [];
  const source = new SpoutSource({
    spout: {
      kind: 'spout',
      open: () => ({
        next: () => {
          times.push(clock.nowMs());
          return answer(clock.nowMs());
        },
      }),
    },
    // The source above uses neither.
    context: {} as TaskContext,
    out: {} as RuntimeOut,
    from: undefined,
    clock,
    settings: compileSettings(settings),
    onError: (error) => {
      throw error;
    },
    inCall: (_call, run) => run(),
    wake: () => undefined,
  });
  while (clock.nowMs() <= untilMs) {
    at(clock.nowMs(), source);
    source.poll();
    clock.advance(1);
  }
  return times;
}

describe('a source that has nothing', () => {
  it('is asked after 1 ms and then half as often each time, down to the limit that the setting gives', () => {
    expect(asked({ 'spout.idle-backoff-max': 10 }, 50, () => 'idle')).toEqual([0, 1, 3, 7, 15, 25, 35, 45]);
    expect(asked({ 'spout.idle-backoff-max': 1 }, 5, () => 'idle')).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('is asked quickly again after a row', () => {
    const times = asked({}, 60, (atMs) => (atMs === 31 ? undefined : 'idle'));
    expect(times).toEqual([0, 1, 3, 7, 15, 31, 32, 33, 35, 39, 47]);
  });

  it.each(['ack', 'fail'] as const)('is asked soon after an %s, which may be what it waited for', (event) => {
    const times = asked(
      {},
      60,
      () => 'idle',
      (atMs, source) => {
        if (atMs !== 40) return;
        if (event === 'ack') source.ack(1);
        else source.fail(1, 'user');
      },
    );
    expect(times).toEqual([0, 1, 3, 7, 15, 31, 41, 42, 44, 48, 56]);
  });
});

describe('the lag of a source', () => {
  function source(spout: Partial<RuntimeSpout>, errors: unknown[] = []): SpoutSource {
    return new SpoutSource({
      spout: { kind: 'spout', ...spout },
      // The sources below use neither.
      context: {} as TaskContext,
      out: {} as RuntimeOut,
      from: undefined,
      clock: new VirtualClock(),
      settings: compileSettings({}),
      onError: (error) => errors.push(error),
      inCall: (_call, run) => run(),
      wake: () => undefined,
    });
  }

  it('is what the last row that says it says, and nothing once there are no more', () => {
    const row = (lag?: number) => ({ row: {}, ...(lag === undefined ? {} : { lag }) });
    const one = source({ read: () => [[row(9), row(), row(7)], row(Number.NaN)] });
    const seen = [one.lag()];
    for (let read = one.next(); read !== undefined; read = one.next()) seen.push(one.lag());
    expect(seen).toEqual([undefined, 9, 9, 7, 7]);
    expect([one.ended, one.lag()]).toEqual([true, 0]);
    expect(source({ read: () => [row()] }).lag()).toBeUndefined();
  });

  it('is asked of a low-level source, and not again when that throws', () => {
    let lag: unknown = 5;
    const errors: unknown[] = [];
    const answer = (): unknown => {
      if (lag === 'broken') throw new Error('no connection');
      return lag;
    };
    const one = source({ open: () => ({ next: () => 'idle', lag: answer }) }, errors);
    expect(one.lag()).toBeUndefined();
    one.poll();
    expect(one.lag()).toBe(5);
    lag = -1;
    expect(one.lag()).toBeUndefined();
    lag = 'broken';
    expect([one.lag(), one.lag()]).toEqual([undefined, undefined]);
    expect(errors).toHaveLength(1);
  });
});

describe('a source that gives what is no row', () => {
  it.each([null, { row: {}, position: 1n }])(
    'is told so (%#), ended, and read again behind the last row that was one',
    (wrong) => {
      const clock = new VirtualClock();
      const errors: unknown[] = [];
      const begun: unknown[] = [];
      let closed = 0;
      const one = new SpoutSource({
        spout: {
          kind: 'spout',
          *read(_context, from) {
            begun.push(from);
            try {
              yield [{ row: {}, position: 7 }, wrong as never, { row: {}, position: 9 }];
            } finally {
              closed++;
            }
          },
        },
        // The source above uses no more of them.
        context: { component: 's' } as TaskContext,
        out: {} as RuntimeOut,
        from: undefined,
        clock,
        settings: compileSettings({}),
        onError: (error) => errors.push(error),
        inCall: (_call, run) => run(),
        wake: () => undefined,
      });
      expect(one.next()).toMatchObject({ position: 7 });
      expect([one.next(), one.next(), errors.length, closed]).toEqual([undefined, undefined, 1, 1]);
      clock.advance(one.retryAtMs - clock.nowMs());
      expect(one.next()).toMatchObject({ position: 7 });
      expect(begun).toEqual([undefined, 7]);
    },
  );

  it('is told so where its iterator gives no step, and read again', async () => {
    const clock = new VirtualClock();
    const errors: unknown[] = [];
    let begun = 0;
    let woken = 0;
    const one = new SpoutSource({
      spout: {
        kind: 'spout',
        read: () => {
          begun++;
          const next = (): Promise<never> => Promise.resolve(undefined as never);
          return { [Symbol.asyncIterator]: () => ({ next }) };
        },
      },
      // The source above uses no more of them.
      context: { component: 's' } as TaskContext,
      out: {} as RuntimeOut,
      from: undefined,
      clock,
      settings: compileSettings({}),
      onError: (error) => errors.push(error),
      inCall: (_call, run) => run(),
      wake: () => {
        woken++;
      },
    });
    for (let time = 1; time <= 2; time++) {
      expect(one.next()).toBeUndefined();
      await Promise.resolve();
      await Promise.resolve();
      expect([begun, errors.length, woken, one.isWaiting]).toEqual([time, time, time, false]);
      clock.advance(one.retryAtMs - clock.nowMs());
    }
  });
});
