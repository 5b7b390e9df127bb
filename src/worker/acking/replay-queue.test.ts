import { expect, test } from 'vitest';
import { ReplayQueue } from './replay-queue.js';

const yes = (): boolean => true;
const no = (): boolean => false;

test('rows come back oldest first, and a queue that ran empty can be filled again', () => {
  const queue = new ReplayQueue<string>();
  queue.add('a');
  queue.add('b');
  expect([queue.next(false, no), queue.next(false, no), queue.next(false, no)]).toEqual([
    'a',
    'b',
    undefined,
  ]);
  queue.add('c');
  expect(queue.size).toBe(1);
  expect(queue.next(true, no)).toBe('c');
  expect(queue.size).toBe(0);
});

test('a row that must go alone goes before the others, waits until it may, and nothing follows while it is out', () => {
  const queue = new ReplayQueue<string>();
  queue.add('a');
  queue.addAlone('x');
  queue.addAlone('y');
  expect(queue.next(false, no)).toBe('wait');
  expect(queue.next(true, yes)).toBe('x');
  expect(queue.next(false, yes)).toBe('wait');
  expect(queue.size).toBe(2);
  expect(queue.next(true, yes)).toBe('y');
  expect(queue.next(true, yes)).toBe('a');
  expect(queue.next(true, yes)).toBeUndefined();
});
