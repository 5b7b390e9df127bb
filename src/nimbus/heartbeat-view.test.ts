import { describe, expect, it } from 'vitest';
import type { FoldedHeartbeat } from '../coordination/index.js';
import { HeartbeatView } from './heartbeat-view.js';

const MACHINES = 2000;

function heartbeat(supervisorId: string, sequence: number): FoldedHeartbeat {
  return { supervisorId, pid: 1, sequence, slots: [], lastReports: [] };
}

/** Heartbeats of many machines, and how often each was read. */
function cluster() {
  const nodes = new Map<string, FoldedHeartbeat>();
  for (let machine = 0; machine < MACHINES; machine++) nodes.set(`s${machine}`, heartbeat(`s${machine}`, 1));
  const reads: string[] = [];
  const failing = { count: 0 };
  const view = new HeartbeatView({
    async listHeartbeats() {
      if (failing.count-- > 0) throw new Error('away');
      reads.push(...nodes.keys());
      return [...nodes.values()];
    },
    async readHeartbeat(id) {
      if (failing.count-- > 0) throw new Error('away');
      reads.push(id);
      return nodes.get(id);
    },
  });
  return { nodes, reads, failing, view };
}

const ids = (heartbeats: readonly FoldedHeartbeat[]): string[] =>
  heartbeats.map(({ supervisorId }) => supervisorId);

describe('the view of heartbeats', () => {
  it('reads all of them once, and then only those that a watch has named', async () => {
    const { nodes, reads, view } = cluster();
    expect((await view.refresh()).heartbeats).toHaveLength(MACHINES);
    reads.length = 0;
    expect((await view.refresh()).heartbeats).toEqual([]);
    nodes.set('s7', heartbeat('s7', 2));
    nodes.set('s1999', heartbeat('s1999', 5));
    view.markStale(['s7', 's1999', 's7']);
    expect(ids((await view.refresh()).heartbeats)).toEqual(['s7', 's1999']);
    expect(reads).toEqual(['s7', 's1999']);
    expect(view.all).toHaveLength(MACHINES);
    expect(view.all.find(({ supervisorId }) => supervisorId === 's7')?.sequence).toBe(2);
  });

  it('reads all of them when a watch names none, and tells of those that are new', async () => {
    const { nodes, view } = cluster();
    await view.refresh();
    nodes.set('s3', heartbeat('s3', 2));
    nodes.delete('s4');
    view.markStale();
    expect(ids((await view.refresh()).heartbeats)).toEqual(['s3']);
    expect(view.all).toHaveLength(MACHINES - 1);
  });

  it('forgets a supervisor that has withdrawn', async () => {
    const { nodes, view } = cluster();
    await view.refresh();
    nodes.delete('s4');
    view.markStale(['s4']);
    expect((await view.refresh()).heartbeats).toEqual([]);
    expect(ids(view.all)).not.toContain('s4');
  });

  it('knows what is said of a topology, and whom a change concerns', async () => {
    const { nodes, view } = cluster();
    const slot = { port: 1, state: 'running', workerId: 'w', pid: 1, restarts: 0, lastProblem: null };
    const of = (topologyId: string) => ({ ...slot, topologyId, heartbeat: null, heartbeatMs: null });
    nodes.set('s1', { ...heartbeat('s1', 2), slots: [of('a'), of('a'), of('b')] });
    nodes.set('s2', { ...heartbeat('s2', 2), slots: [of('a')] });
    expect([...(await view.refresh()).topologies].sort()).toEqual(['a', 'b']);
    const said = (topologyId: string): string[] =>
      view.reportsOf(topologyId).map(({ supervisorId, slots }) => `${supervisorId} ${slots.length}`);
    expect(said('a')).toEqual(['s1 2', 's2 1']);
    nodes.set('s1', { ...heartbeat('s1', 3), slots: [of('c')] });
    view.markStale(['s1']);
    expect([...(await view.refresh()).topologies].sort()).toEqual(['a', 'b', 'c']);
    expect([said('a'), said('b'), said('c')]).toEqual([['s2 1'], [], ['s1 1']]);
    view.clear();
    expect([said('a'), view.all]).toEqual([[], []]);
    expect((await view.refresh()).heartbeats).toHaveLength(MACHINES);
  });

  it('reads again what could not be read', async () => {
    const { nodes, failing, view } = cluster();
    failing.count = 1;
    await expect(view.refresh()).rejects.toThrow('away');
    expect((await view.refresh()).heartbeats).toHaveLength(MACHINES);
    nodes.set('s9', heartbeat('s9', 2));
    view.markStale(['s9']);
    failing.count = 1;
    await expect(view.refresh()).rejects.toThrow('away');
    expect(ids((await view.refresh()).heartbeats)).toEqual(['s9']);
  });
});
