import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../base/index.js';
import type { StoredPosition } from '../coordination/index.js';
import { PositionFold } from './position-fold.js';

const at = (task: number, position: number, generation = 1): StoredPosition => ({
  task,
  position,
  generation,
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('positions', () => {
  it('of many requests go in one write, the newest of each task, and are answered when it is done', async () => {
    const clock = new VirtualClock();
    const writes: (readonly StoredPosition[])[] = [];
    let finish: () => void = () => undefined;
    const fold = new PositionFold(
      (_, entries) => {
        writes.push(entries);
        return new Promise((resolve) => (finish = resolve));
      },
      clock,
      100,
    );
    const answered: string[] = [];
    void fold.store('t', [at(1, 10)]).then(() => answered.push('first'));
    void fold.store('t', [at(1, 20), at(2, 5)]).then(() => answered.push('second'));
    void fold.store('t', [at(2, 4, 0)]).then(() => answered.push('third'));
    expect(writes).toEqual([[at(1, 10)]]);
    await turn();
    expect(answered).toEqual([]);
    finish();
    await turn();
    expect(answered).toEqual(['first']);
    expect(writes).toHaveLength(1);
    clock.advance(100);
    await turn();
    expect(writes[1]).toEqual([at(1, 20), at(2, 5)]);
    finish();
    await turn();
    expect(answered).toEqual(['first', 'second', 'third']);
  });

  it('are written at most once in the interval, however many ask', async () => {
    const clock = new VirtualClock();
    let writes = 0;
    const fold = new PositionFold(
      () => {
        writes++;
        return Promise.resolve();
      },
      clock,
      100,
    );
    for (let ms = 0; ms < 1000; ms += 10) {
      void fold.store('t', [at(1, ms)]);
      await turn();
      clock.advance(10);
      await turn();
    }
    expect(writes).toBeLessThanOrEqual(11);
  });

  it('that could not be stored fail every request of that write, and no later one', async () => {
    let isBroken = true;
    const fold = new PositionFold(
      () => (isBroken ? Promise.reject(new Error('away')) : Promise.resolve()),
      new VirtualClock(),
      0,
    );
    await expect(fold.store('t', [at(1, 1)])).rejects.toThrow('away');
    isBroken = false;
    await fold.store('t', [at(1, 1)]);
    await fold.settled('t');
  });
});
