import { describe, expect, it } from 'vitest';
import { WorkingCluster } from '../../cluster.js';
import type { ClusterComponent } from '../../resources.js';
import type { ClusterTopology, PlacedWorker } from '../../cluster-snapshot.js';
import { computeExecutors } from '../../executors.js';
import { numberTasks } from '../../numbering.js';
import { joinWorkers } from './join-workers.js';
import { groupable } from './slot-groups.js';

function topologyOf(
  counts: Readonly<Record<string, number>>,
  parts: Readonly<Record<string, Partial<ClusterComponent>>> = {},
): ClusterTopology {
  const entries = Object.entries(counts);
  return {
    id: 't',
    workers: 9,
    executors: computeExecutors(numberTasks(entries), new Map(entries)),
    components: Object.keys(counts).map((id) => ({
      id,
      kind: id.startsWith('__') ? 'system' : 'bolt',
      resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
      ...parts[id],
    })),
  };
}

/** Executors, as `component` and its number, by worker. */
function joined(
  topology: ClusterTopology,
  running: Readonly<Record<string, readonly string[]>>,
  machineLoads: Readonly<Record<string, number>> = {},
): Record<string, readonly string[]> {
  const names = new Map<string, readonly [number, number]>();
  const seen = new Map<string, number>();
  for (const { component, range } of topology.executors) {
    const number = seen.get(component) ?? 0;
    seen.set(component, number + 1);
    names.set(`${component}${number}`, range);
  }
  const workers = Object.entries(running).map(([place, executors]): PlacedWorker => {
    const [supervisor = '', port] = place.split(':');
    const ranges = executors.map((name) => names.get(name)!).sort(([a], [b]) => a - b);
    return { supervisor, port: Number(port), executors: ranges };
  });
  const ids = [...new Set(workers.map(({ supervisor }) => supervisor))];
  const cluster = new WorkingCluster({
    supervisors: ids.map((id) => ({ id, host: id, ports: [1, 2, 3] })),
    topologies: [topology],
    placement: new Map([['t', workers]]),
  });
  joinWorkers(cluster, 't', groupable(topology), new Map(Object.entries(machineLoads)));
  const nameOf = new Map([...names].map(([name, [first]]) => [first, name]));
  return Object.fromEntries(
    cluster
      .workersOf('t')
      .map(({ supervisor, port, executors }) => [
        `${supervisor}:${port}`,
        executors.map(([first]) => nameOf.get(first)!).sort(),
      ]),
  );
}

describe('executors for which there is no slot', () => {
  it('join workers on the machine that carries least, over all topologies, whatever the number of executors there', () => {
    const found = joined(topologyOf({ x: 5 }), { 'm1:1': ['x0'], 'm2:1': ['x1', 'x2'] }, { m1: 8, m2: 2 });
    expect(found).toEqual({ 'm1:1': ['x0'], 'm2:1': ['x1', 'x2', 'x3', 'x4'] });
  });

  it('join the workers of one machine in turn, the heaviest first', () => {
    const topology = topologyOf({ a: 1, b: 1, c: 2, z: 2 }, { a: { load: 3 }, b: { load: 2 } });
    const found = joined(topology, { 'm1:1': ['z0'], 'm1:2': ['z1'] });
    expect(found).toEqual({ 'm1:1': ['a0', 'c1', 'z0'], 'm1:2': ['b0', 'c0', 'z1'] });
  });

  it('are spread by their number where they weigh nothing, as ackers', () => {
    const topology = topologyOf({ x: 3, __acker: 6 });
    const found = joined(topology, { 'm1:1': ['x0'], 'm2:1': ['x1'], 'm2:2': ['x2'] }, { m1: 5, m2: 0 });
    const ackers = Object.values(found).map((all) => all.filter((name) => name.startsWith('__')).length);
    expect(ackers).toEqual([3, 2, 1]);
  });

  it('keep to workers of their slot sharing group where there are any', () => {
    const own = topologyOf({ x: 2, y: 2 }, { y: { slotSharingGroup: 'own' } });
    expect(joined(own, { 'm1:1': ['x0'], 'm2:1': ['y0'] }, { m1: 0, m2: 9 })).toEqual({
      'm1:1': ['x0', 'x1'],
      'm2:1': ['y0', 'y1'],
    });
    expect(joined(own, { 'm1:1': ['x0', 'x1'] })).toEqual({ 'm1:1': ['x0', 'x1', 'y0', 'y1'] });
  });

  it('stay with what they are co-located with', () => {
    const bond = { coLocationGroup: 'pair' };
    const topology = topologyOf({ x: 3, y: 3 }, { x: bond, y: bond });
    const found = joined(topology, { 'm1:1': ['x0'], 'm2:1': ['x1', 'y1'] }, { m1: 9, m2: 0 });
    expect(found).toEqual({ 'm1:1': ['x0', 'y0'], 'm2:1': ['x1', 'x2', 'y1', 'y2'] });
  });
});
