import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot } from '../../scheduling/index.js';
import { ReceivedLists, SentLists } from './sent-lists.js';

const topology = (id: string, executors: number): ClusterSnapshot['topologies'][number] => ({
  id,
  workers: 1,
  executors: Array.from({ length: executors }, (_, index) => ({
    range: [index + 1, index + 1],
    component: 'a',
  })),
  components: [{ id: 'a', kind: 'spout', resources: { cpuPercent: 1, onHeapMb: 1, offHeapMb: 0 } }],
});
const first: ClusterSnapshot = {
  supervisors: [{ id: 's', host: 'h', ports: [1, 2] }],
  topologies: [topology('t', 3), { id: 'bare', workers: 1, executors: [] }],
  placement: new Map([['t', [{ supervisor: 's', port: 1, executors: [[1, 1]] }]]]),
  blacklistedHosts: new Set(['h']),
};

describe('snapshots that are sent one after the other', () => {
  it('arrive as they were, and each list is sent once', () => {
    const [sent, received] = [new SentLists(), new ReceivedLists()];
    const send = (snapshot: ClusterSnapshot): number => {
      const posted = structuredClone(sent.post(snapshot));
      expect(received.read(posted)).toEqual(snapshot);
      return posted.lists.size;
    };
    expect(send(first)).toBe(4);
    expect(send(first)).toBe(0);
    const moved = { ...first, placement: new Map([['t', [{ supervisor: 's', port: 2, executors: [] }]]]) };
    expect(send(moved)).toBe(1);
    // What the question before did not name has been forgotten on both sides.
    expect(send(first)).toBe(1);
    expect(send({ ...first, topologies: [], placement: new Map() })).toBe(0);
    expect(send(first)).toBe(4);
  });

  it('give the same list where they had the same', () => {
    const [sent, received] = [new SentLists(), new ReceivedLists()];
    const once = received.read(structuredClone(sent.post(first)));
    const again = received.read(structuredClone(sent.post(first)));
    expect(again.topologies[0]!.executors).toBe(once.topologies[0]!.executors);
    expect(again.placement.get('t')).toBe(once.placement.get('t'));
  });
});
