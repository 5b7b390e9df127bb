import { describe, expect, it } from 'vitest';
import { lostTasks } from './lost-states.js';

describe('state that was lost', () => {
  it('has a line for each task, the one that was lost last at the end', () => {
    const lost = [
      { component: 'count', task: 7, atMs: 1000 },
      { component: 'count', task: 4, atMs: 2000 },
      { component: 'count', task: 7, atMs: 3000 },
    ];
    expect(lostTasks(lost)).toEqual([
      { component: 'count', task: 4, count: 1, lastMs: 2000 },
      { component: 'count', task: 7, count: 2, lastMs: 3000 },
    ]);
  });
});
