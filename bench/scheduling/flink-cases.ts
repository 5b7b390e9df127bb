/** The cases of Flink's balanced scheduling: tasks to slots, slots to machines, and the balance over all machines. */
import type { Fact, PeerRow, Prepared, SchedulingCase } from './case.js';
import type { ClusterSnapshot, Library, SchedulingResult, Strategy } from './library.js';
import { movedExecutors, numbered } from './storm-cases.js';
import { syntheticCluster } from './synthetic.js';

/** Parallelism of ten components in a chain. */
const UNEQUAL = [100, 200, 400, 800, 1500, 2500, 4000, 6000, 8000, 10_000];
const SHARING_ROW = '10 vertices, 100 to 10,000';
const MATCHING_10K_ROW = '10k requests (balanced slots of the unequal job) on 10k slots, 1k managers';
const MATCHING_60K_ROW = '60k requests (loads 1 to 8) on 60k slots, 2k managers';
const CHOICE_ROW = '30000 slots from 2000 managers x 30';

export const FLINK_CASES: readonly SchedulingCase[] = [
  {
    name: 'sharing-100-to-10000/task-balanced',
    compare: flink('sharing-10-unequal', SHARING_ROW, 'TASK_BALANCED'),
    prepare: (library) => sharing(library, 'taskBalancedSharing'),
  },
  {
    name: 'sharing-100-to-10000/local-input-preferred',
    compare: flink('sharing-10-unequal', SHARING_ROW, 'LOCAL_INPUT_PREFERRED'),
    prepare: (library) => sharing(library, 'localInputPreferredSharing'),
  },
  {
    name: 'matching-10000-on-1000/tasks',
    compare: flink('matching-10k', MATCHING_10K_ROW, 'TASKS'),
    prepare: (library) => matching(library, 'request', 1000, 10, unequalLoads(library)),
  },
  {
    name: 'matching-10000-on-1000/adaptive-tasks',
    compare: flink('matching-10k', MATCHING_10K_ROW, 'adaptive TASKS'),
    prepare: (library) => matching(library, 'adaptive', 1000, 10, unequalLoads(library)),
  },
  {
    name: 'matching-60000-on-2000/tasks',
    compare: flink('matching-60k', MATCHING_60K_ROW, 'TASKS'),
    prepare: (library) => matching(library, 'request', 2000, 30, randomLoads()),
  },
  {
    name: 'matching-60000-on-2000/adaptive-tasks',
    compare: flink('matching-60k', MATCHING_60K_ROW, 'adaptive TASKS'),
    prepare: (library) => matching(library, 'adaptive', 2000, 30, randomLoads()),
  },
  ...(
    [
      ['any', 'ANY'],
      ['least-utilised', 'LEAST'],
      ['most-utilised', 'MOST'],
    ] as const
  ).map(
    ([choice, name]): SchedulingCase => ({
      name: `choice-30000-of-60000/${choice}`,
      compare: flink('rm', CHOICE_ROW, `resource manager ${name}`),
      prepare: (library) => machineChoice(library, choice),
    }),
  ),
  { name: 'million-tasks/task-balanced', prepare: millionTasks },
  { name: 'improvement-60000-on-2000/greedy', prepare: (library) => balance(library, false) },
  { name: 'improvement-60000-on-2000/to-a-bound', prepare: (library) => balance(library, true) },
  { name: 'one-of-2000-returns/60000-workers', prepare: returnedToGroups },
  { name: 'one-of-2000-returns/8000-workers', prepare: returnedToStrategy },
];

function flink(run: string, row: string, strategy: string): PeerRow {
  return { peer: 'flink', run, case: row, strategy };
}

type SharingName = 'taskBalancedSharing' | 'localInputPreferredSharing';

function unequalGraph(): Parameters<Library['scheduling'][SharingName]>[0] {
  return {
    vertices: UNEQUAL.map((parallelism, index) => ({
      id: String.fromCharCode(65 + index),
      parallelism,
      slotSharingGroup: 'default',
      coLocationGroup: null,
    })),
    edges: UNEQUAL.slice(1).map((_, index) => ({ from: index, to: index + 1, pattern: 'all-to-all' })),
  };
}

function sharing({ scheduling }: Library, name: SharingName): Prepared {
  const graph = unequalGraph();
  let last: ReturnType<typeof scheduling.taskBalancedSharing> | undefined;
  return {
    decide: () => (last = scheduling[name](graph)),
    facts: () => {
      const sizes = slotSizes(last!);
      const tasks = UNEQUAL.reduce((sum, one) => sum + one, 0);
      return {
        'most-tasks-in-a-slot': { value: Math.max(...sizes), unit: '', ofPeer: 'maxTasksPerSlot' },
        'lower-bound': { value: Math.ceil(tasks / sizes.length), unit: '' },
      };
    },
  };
}

function slotSizes({ slots, slotOf }: ReturnType<Library['scheduling']['taskBalancedSharing']>): Int32Array {
  const sizes = new Int32Array(slots);
  for (const list of slotOf) for (const slot of list) sizes[slot]!++;
  return sizes;
}

/** What each slot of the unequal chain weighs. */
function unequalLoads({ scheduling }: Library): readonly number[] {
  return [...slotSizes(scheduling.taskBalancedSharing(unequalGraph()))];
}

/** 1 to 8, drawn by the generator of Java's `Random` with seed 7, as Flink's bench draws them. */
function randomLoads(): readonly number[] {
  const multiplier = 0x5_deec_e66dn;
  const mask = (1n << 48n) - 1n;
  let state = (7n ^ multiplier) & mask;
  return Array.from({ length: 60_000 }, () => {
    state = (state * multiplier + 0xbn) & mask;
    return 1 + Number(state >> 45n);
  });
}

function matching(
  { scheduling }: Library,
  kind: 'request' | 'adaptive',
  machines: number,
  slotsEach: number,
  loads: readonly number[],
): Prepared {
  const slots = Array.from({ length: machines * slotsEach }, (_, index) => {
    const machine = `tm${Math.floor(index / slotsEach)}`;
    return { id: `${machine}/${index % slotsEach}`, machine, profile: 'ANY' };
  });
  const requests = loads.map((load, index) => ({ id: `r${index}`, load, profile: 'UNKNOWN' }));
  let matches: ReturnType<typeof scheduling.tasksBalancedMatcher> = [];
  return {
    decide: () => {
      matches =
        kind === 'adaptive'
          ? scheduling.adaptiveMatches('tasks', slots, requests)
          : scheduling.tasksBalancedMatcher(slots, requests, new Map());
    },
    facts: () => ({
      ...(kind === 'request'
        ? { 'picks-not-least-loaded': { value: notLeastLoaded(), unit: '', ofPeer: 'notLeastLoaded' } }
        : {}),
      'largest-load': { value: Math.max(...loadsAfter()), unit: '', ofPeer: 'maxTasksPerManager' },
      'lower-bound': {
        value: Math.ceil(loads.reduce((sum, load) => sum + load, 0) / machines),
        unit: '',
        ofPeer: 'lowerBound',
      },
      matched: { value: matches.length, unit: '', ofPeer: 'matched' },
    }),
  };

  function loadsAfter(): Float64Array {
    const result = new Float64Array(machines);
    for (const { request, slot } of matches) result[Math.floor(slot / slotsEach)]! += loads[request]!;
    return result;
  }

  /** Matches in the order of picking, each held against the machines that had a free slot then. */
  function notLeastLoaded(): number {
    const carried = new Float64Array(machines);
    const free = new Int32Array(machines).fill(slotsEach);
    let wrong = 0;
    for (const { request, slot } of matches) {
      let least = Infinity;
      for (let machine = 0; machine < machines; machine++)
        if (free[machine]! > 0 && carried[machine]! < least) least = carried[machine]!;
      const machine = Math.floor(slot / slotsEach);
      if (carried[machine]! > least) wrong++;
      carried[machine]! += loads[request]!;
      free[machine]!--;
    }
    return wrong;
  }
}

function machineChoice(
  { scheduling }: Library,
  choice: 'any' | 'least-utilised' | 'most-utilised',
): Prepared {
  const machines = Array.from({ length: 2000 }, () => ({ slots: 30, used: 0 }));
  let chosen: ReturnType<typeof scheduling.chooseMachines> | undefined;
  return {
    decide: () => (chosen = scheduling.chooseMachines(choice, machines, 30_000, 0)),
    facts: () => ({
      'most-slots-on-a-machine': {
        value: Math.max(...chosen!.perMachine),
        unit: '',
        ofPeer: 'maxSlotsPerManager',
      },
    }),
  };
}

/** The default strategy with as many moves as balance asks for. */
function balanced({ scheduling, settings }: Library): Strategy {
  const many = Number.MAX_SAFE_INTEGER;
  return scheduling.strategyNamed('balanced', { ...settings, 'scheduling.moves-per-round': many });
}

/** From task counts to slots: numbering, executors, sharing, machines. */
function millionTasks(library: Library): Prepared {
  const options = {
    machines: 2000,
    slots: 6,
    topologies: 200,
    executors: 1000,
    workers: 50,
    tasksPerExecutor: 5,
  };
  const strategy = balanced(library);
  let result: SchedulingResult | undefined;
  let snapshot: ClusterSnapshot | undefined;
  return {
    decide: () => {
      snapshot = numbered(library, options);
      result = strategy(snapshot);
    },
    facts: () => loadFacts(snapshot!, result!),
  };
}

/** Most and fewest executors on a machine, and the bound. */
function loadFacts({ supervisors }: ClusterSnapshot, { placement }: SchedulingResult): Record<string, Fact> {
  const loads = new Map(supervisors.map(({ id }) => [id, 0]));
  let placed = 0;
  for (const workers of placement.values()) {
    for (const { supervisor, executors } of workers) {
      placed += executors.length;
      loads.set(supervisor, (loads.get(supervisor) ?? 0) + executors.length);
    }
  }
  return {
    'executors-placed': { value: placed, unit: '' },
    'largest-load': { value: Math.max(...loads.values()), unit: '' },
    'lower-bound': { value: Math.ceil(placed / loads.size), unit: '' },
  };
}

type Problem = Parameters<Library['balance']['balanceGroups']>[0];

function balance({ balance: { balanceGroups } }: Library, improves: boolean): Prepared {
  const problem: Problem = {
    fixedLoads: new Float64Array(2000),
    places: new Int32Array(2000).fill(30),
    loads: Float64Array.from(randomLoads()),
    current: new Int32Array(60_000).fill(-1),
  };
  let last: ReturnType<typeof balanceGroups> | undefined;
  return {
    decide: () => (last = balanceGroups(problem, { improves, moveBudget: Infinity })),
    facts: () => ({
      'largest-load': { value: last!.spread.max, unit: '' },
      'smallest-load': { value: last!.spread.min, unit: '' },
      'lower-bound': { value: last!.lowerBound, unit: '' },
    }),
  };
}

/** A worker an executor, thirty or thirty-one on each of 1,999 machines; the 2,000th is empty. */
function returnedToGroups({ balance: { balanceGroups } }: Library): Prepared {
  const problem: Problem = {
    fixedLoads: new Float64Array(2000),
    places: new Int32Array(2000).fill(40),
    loads: new Float64Array(60_000).fill(1),
    current: Int32Array.from({ length: 60_000 }, (_, group) => group % 1999),
  };
  let last: ReturnType<typeof balanceGroups> | undefined;
  return {
    decide: () => (last = balanceGroups(problem, { improves: true, moveBudget: Infinity })),
    facts: () => ({
      moves: { value: last!.moves.length, unit: '' },
      'lower-bound-of-moves': { value: last!.movesBound, unit: '' },
      'largest-load': { value: last!.spread.max, unit: '' },
      'lower-bound': { value: last!.lowerBound, unit: '' },
    }),
  };
}

/** The strategy as a whole: 8,000 workers of 100 topologies were placed while a machine was away. */
function returnedToStrategy(library: Library): Prepared {
  const cluster = syntheticCluster({
    machines: 2000,
    slots: 6,
    topologies: 100,
    executors: 600,
    workers: 80,
  });
  const { placement } = balanced(library)({ ...cluster, supervisors: cluster.supervisors.slice(0, -1) });
  const snapshot = { ...cluster, placement };
  let result: SchedulingResult | undefined;
  return {
    // A new one each time: it would know the question.
    decide: () => (result = balanced(library)(snapshot)),
    facts: () => ({
      ...loadFacts(snapshot, result!),
      'moved-executors': { value: movedExecutors(placement, result!.placement), unit: '' },
    }),
  };
}
