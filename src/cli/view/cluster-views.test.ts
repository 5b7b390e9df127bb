import { describe, expect, it } from 'vitest';
import type {
  ClusterSummary,
  SettingValue,
  TopologyDetail,
  TopologyStatus,
  TopologySummary,
} from '../../api/index.js';
import { component, topology, worker } from '../testing/statuses.js';
import { configLines, describeLines, listLines } from './cluster-views.js';

const summary = (parts: Partial<TopologySummary>): TopologySummary => ({
  ...{ id: 'words-1', name: 'words', status: 'ACTIVE', submittedMs: 0, uptimeMs: 9000 },
  ...{ lastChange: 'submitted', lastChangeMs: 0, workers: { desired: 1, actual: 1 } },
  ...{
    executors: { desired: 1, actual: 1 },
    tasks: 1,
    isRebalancing: false,
    waitLeftMs: null,
    problem: null,
  },
  ...parts,
});

describe('the settings', () => {
  const value: SettingValue = {
    ...{ name: 'topology.message-timeout', value: 30_000, unit: 'ms', origin: 'default' },
    scope: 'topology',
    what: 'Time in which a tree of rows has to complete, or it fails and is replayed.',
  };

  it('stand beside what they mean, which is cut where a line is short', () => {
    expect(configLines([value], 100)).toEqual([
      'SETTING                   VALUE     FROM     MEANING',
      'topology.message-timeout  30000 ms  default  Time in which a tree of rows has to complete, or it fa…',
    ]);
  });

  it('keep their names and values where there is little room; meanings stand below', () => {
    const lines = [
      'SETTING                   VALUE     FROM',
      'topology.message-timeout  30000 ms  default',
      '    Time in which a tree of rows has to complete, or it fails and is',
      '    replayed.',
    ];
    expect(configLines([value], 70)).toEqual(lines);
    expect(configLines([value], 20).slice(0, 2)).toEqual(lines.slice(0, 2));
  });
});

describe('the list', () => {
  it('says which change of status was the last one', () => {
    const topologies = [
      summary({ status: 'INACTIVE', lastChange: 'status', lastChangeMs: 7000 }),
      summary({ name: 'lines', lastChange: 'rebalanced', lastChangeMs: 6000 }),
    ];
    const slots = { used: 2, total: 4 };
    const all: ClusterSummary = {
      nimbusId: 'n',
      topologies,
      atMs: 9000,
      slots,
      supervisors: 1,
      coordinatorProblem: null,
    };
    const lines = listLines(all, 200);
    expect(lines[1]).toContain('  became INACTIVE 2.0 s ago');
    expect(lines[2]).toContain('  rebalanced 3.0 s ago');
  });

  it('says that the coordinator does not answer, also where nothing runs', () => {
    const coordinatorProblem = { code: 'COORDINATOR_DATA_LOST', message: 'no data' } as const;
    const rest = { nimbusId: 'n', atMs: 9000, slots: { used: 0, total: 4 }, supervisors: 1 };
    for (const topologies of [[], [summary({})]]) {
      expect(listLines({ ...rest, topologies, coordinatorProblem }, 80).slice(-2)).toEqual([
        'problem: COORDINATOR_DATA_LOST: no data',
        'What runs goes on; nothing is started, moved or changed, and what is shown is as it was known last.',
      ]);
    }
  });

  it('names what is wrong on a terminal of 80 columns too, and keeps names apart', () => {
    const problem = { code: 'WORKER_LOST', message: 'was ended by SIGKILL', atMs: 8000 } as const;
    const topologies = [
      summary({ name: 'orders-by-customer-of-the-region-north', problem }),
      summary({ name: 'orders-by-customer-of-the-region-south' }),
      summary({ name: '订单-流水', status: 'INACTIVE', lastChange: 'status' }),
    ];
    const slots = { used: 2, total: 4 };
    const all: ClusterSummary = {
      nimbusId: 'n',
      topologies,
      atMs: 9000,
      slots,
      supervisors: 1,
      coordinatorProblem: null,
    };
    expect(listLines(all, 80)).toEqual([
      'NAME                     STATUS    WORKERS  EXECUTORS  LAST CHANGE',
      'orders-by-custo…n-north  ACTIVE          1          1  submitted 9.0 s ago',
      '    WORKER_LOST, 1.0 s ago',
      'orders-by-custo…n-south  ACTIVE          1          1  submitted 9.0 s ago',
      '订单-流水                INACTIVE        1          1  became INACTIVE 9.0 s ago',
      '1 supervisor, 2 of 4 slots used',
    ]);
    expect(listLines(all, 200)[1]).toMatch(/ago {2,}WORKER_LOST, 1\.0 s ago$/u);
  });
});

describe('the description of one topology', () => {
  const described = (status: Partial<TopologyStatus>): string[] => {
    // What is not shown is left out.
    const detail = {
      summary: summary({}),
      desired: null,
      status: topology(status),
      events: [],
    } as unknown as TopologyDetail;
    return describeLines(detail, 200);
  };
  const thread = {
    index: 0,
    generation: 6,
    state: 'idle',
    component: null,
    task: null,
    inCallMs: 0,
  } as const;

  it('says why rows failed, of spouts alone, the most frequent reason first', () => {
    const components = [
      component('s', 'spout', { failures: { user: 6, timeout: 1480, lost: 0 } }),
      component('other', 'spout', { failures: { user: 1 } }),
      component('call', 'bolt', { failures: { timeout: 1480 } }),
    ];
    const totals = { ...topology().totals, failed: 1487 };
    expect(described({ components, totals }).join('\n')).toContain(
      ' 1,487 failed (timeout 1,480, user 7), 0 replayed',
    );
    expect(described({}).join('\n')).toContain(' 0 failed, 0 replayed');
  });

  it('shows a worker as ready only if it is and something is heard of it', () => {
    const states = (...workers: readonly Parameters<typeof worker>[1][]): string[] =>
      described({ workers: workers.map((parts, place) => worker(6700 + place, parts)) })
        .filter((line) => line.startsWith('local:'))
        .map((line) => line.slice('local:6700  '.length).split('  ')[0]!);
    expect(
      states(
        { heartbeatAgeMs: 3000 },
        { heartbeatAgeMs: 24_000 },
        { isReady: false },
        { isReady: false, state: 'backing-off', heartbeatAgeMs: null },
      ),
    ).toEqual(['ready', 'silent for 24.0 s', 'not ready', 'backing-off']);
  });

  it('counts threads that were started again beside the process', () => {
    const threads = [{ ...thread, restarts: 5, longCalls: [], lagMs: 0, executors: [] }];
    const lines = described({ workers: [worker(6700, { restarts: 1, threads })] });
    expect(lines.find((line) => line.startsWith('local:6700'))).toMatch(/ 1 \+ 5 threads$/);
    expect(described({}).find((line) => line.startsWith('local:6700'))).toMatch(/ 0$/);
  });
});
