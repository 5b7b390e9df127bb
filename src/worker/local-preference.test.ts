import { describe, expect, it } from 'vitest';
import { preferredTargets } from './local-preference.js';
import type { Edge } from './outputs.js';

const edge = (kind: 'shuffle' | 'local-or-shuffle' | 'all', taskCount: number): Edge =>
  ({ grouping: { kind }, source: 's', firstTask: 10, taskCount }) as unknown as Edge;

/** endpoints[i] is the endpoint of task i; tasks 1… are senders, 10… receivers. */
const routes = (
  senders: number[],
  receivers: number[],
  peers: number[] = [],
  held: number[] = [],
): Parameters<typeof preferredTargets>[2] => {
  const endpointOfTask = new Int32Array(10 + receivers.length).fill(-1);
  senders.forEach((endpoint, i) => (endpointOfTask[1 + i] = endpoint));
  receivers.forEach((endpoint, i) => (endpointOfTask[10 + i] = endpoint));
  const endpoints = [...new Set([...senders, ...receivers])].map((id) => ({
    id,
    peer: peers.includes(id) ? 0 : -1,
  }));
  return { endpointOfTask, endpoints, held: held.map((task) => ({ task })) };
};
const tasksOf = (count: number) => () => ({ component: 's', first: 1, last: count });

describe('preferredTargets', () => {
  it('keeps a shuffle in its thread where every thread has the same number of receivers per sender', () => {
    const found = preferredTargets(edge('shuffle', 4), 2, routes([0, 1], [0, 1, 0, 1]), tasksOf(2));
    expect([...found!]).toEqual([1, 3]);
  });

  it('spreads a shuffle evenly where it is not so', () => {
    expect(preferredTargets(edge('shuffle', 3), 1, routes([0, 1], [0, 1, 0]), tasksOf(2))).toBeNull();
    expect(preferredTargets(edge('shuffle', 2), 1, routes([0, 1], [0, 0]), tasksOf(2))).toBeNull();
  });

  it('does not count receivers in threads without senders as a reason to stay', () => {
    expect(preferredTargets(edge('shuffle', 2), 1, routes([0], [0, 1]), tasksOf(1))).toBeNull();
  });

  it('keeps local-or-shuffle in its worker, in whichever thread, as soon as there is one receiver', () => {
    const inWorker = routes([0, 1], [0, 1, 2], [2]);
    expect([...preferredTargets(edge('local-or-shuffle', 3), 1, inWorker, tasksOf(2))!]).toEqual([0, 1]);
    const elsewhere = routes([0, 1], [2, 2], [2]);
    expect(preferredTargets(edge('local-or-shuffle', 2), 1, elsewhere, tasksOf(2))).toBeNull();
  });

  it('leaves out tasks that are on their way, as long as there are others', () => {
    const places: [number[], number[]] = [
      [0, 1],
      [0, 1, 0, 1],
    ];
    const chosen = (held: number[]): number[] | null => {
      const found = preferredTargets(edge('shuffle', 4), 1, routes(...places, [], held), tasksOf(2));
      return found === null ? null : [...found];
    };
    expect(chosen([])).toEqual([0, 2]);
    expect(chosen([11])).toEqual([0, 2]);
    expect(chosen([10])).toEqual([2]);
    expect(chosen([10, 12])).toEqual([1, 3]);
    expect(chosen([10, 11, 12, 13])).toEqual([0, 2]);
    expect(chosen([99])).toEqual([0, 2]);
  });

  it('leaves other groupings alone', () => {
    expect(preferredTargets(edge('all', 2), 1, routes([0], [0, 0]), tasksOf(1))).toBeNull();
  });
});
