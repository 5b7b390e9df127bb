import { describe, expect, it } from 'vitest';
import { OrderLines } from './order-lines.js';

const row = (start: () => void) => ({ rootTask: 1, rootSequence: 0, several: null, start });

describe('OrderLines', () => {
  it('lets one row of a key go at a time, in order, and other keys beside it', () => {
    const lines = new OrderLines();
    const started: string[] = [];
    for (const name of ['a1', 'b1', 'a2', 'a3', 'b2'])
      lines.enter(
        name.charCodeAt(0),
        row(() => void started.push(name)),
      );
    expect(started).toEqual(['a1', 'b1']);
    lines.leave(97);
    expect(started).toEqual(['a1', 'b1', 'a2']);
    lines.leave(98);
    lines.leave(97);
    expect(started).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
    lines.leave(97);
    lines.leave(97);
    lines.enter(
      97,
      row(() => void started.push('a4')),
    );
    expect(started.at(-1)).toBe('a4');
  });

  it('starts any number of rows that are done at once, without nesting them, in linear time', () => {
    const lines = new OrderLines();
    const rows = 300_000;
    let started = 0;
    lines.hold(1);
    for (let n = 0; n < rows; n++) {
      lines.enter(
        1,
        row(() => {
          if (started === n) started++;
          lines.leave(1);
        }),
      );
    }
    expect(started).toBe(0);
    lines.leave(1);
    expect(started).toBe(rows);
  });

  it('shows the rows that wait', () => {
    const lines = new OrderLines();
    const waiting = (): number => {
      let count = 0;
      lines.some(() => {
        count++;
        return false;
      });
      return count;
    };
    lines.hold(1);
    for (let i = 0; i < 3000; i++)
      lines.enter(
        1,
        row(() => undefined),
      );
    expect(waiting()).toBe(3000);
    for (let i = 0; i < 1500; i++) lines.leave(1);
    expect(waiting()).toBe(1500);
    expect(lines.some(({ rootTask }) => rootTask === 1)).toBe(true);
  });
});
