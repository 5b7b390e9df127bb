/** The numbers of a plan before and after, and its machines with bars. Pure. */
import type { ClusterPlan, MachineUse, PlacementMetrics } from '../../scheduling/index.js';
import { type Column, columns, counted, cut, printable } from '../view/format.js';
import { figure } from './plan-words.js';

const MAX_MACHINES = 24;
const HOTTEST = 8;
const COLDEST = 4;
const MAX_LEVELS = 8;
const MAX_LOADS_IN_A_ROW = 8;
const [WIDE_BAR, NARROW_BAR] = [24, 10];

interface MetricRow {
  readonly name: string;
  readonly value: (metrics: PlacementMetrics) => string;
}

export const METRICS: readonly MetricRow[] = [
  {
    name: 'machines in use',
    value: ({ machinesUsed, machines }) => `${figure(machinesUsed)} of ${figure(machines.length)}`,
  },
  { name: 'workers, of slots', value: ({ workers, slots }) => `${figure(workers)} of ${figure(slots)}` },
  { name: 'executors placed', value: ({ executors }) => figure(executors) },
  { name: 'load per machine', value: loadsText },
  { name: '  largest', value: boundText },
  { name: '  mean', value: ({ machineLoad }) => figure(machineLoad.mean) },
  { name: '  largest / mean', value: ({ machineLoad }) => overMean(machineLoad) },
  ...(['sources', 'stateful', 'stateless'] as const).map(
    (name): MetricRow => ({ name: `  of ${name}`, value: ({ classLoads }) => rangeText(classLoads[name]) }),
  ),
  {
    name: 'load per worker',
    value: ({ workerLoad }) => rangeText(workerLoad),
  },
  { name: '  mean', value: ({ workerLoad }) => figure(workerLoad.mean) },
  { name: '  largest / mean', value: ({ workerLoad }) => overMean(workerLoad) },
  {
    name: 'components spread',
    value: ({ components: { placed, spread } }) =>
      placed === 0 ? '–' : `${figure(spread)} of ${figure(placed)}`,
  },
  { name: 'traffic cost', value: ({ traffic: { cost } }) => figure(cost) },
  {
    name: '  per row, 0 to 3',
    value: ({ traffic: { cost, rows } }) => (rows === 0 ? '–' : (cost / rows).toFixed(2)),
  },
];

function rangeText({ min, max }: PlacementMetrics['machineLoad']): string {
  return min === max ? figure(max) : `${figure(min)} to ${figure(max)}`;
}

/** `6/6`, or `17 to 18` where there are many machines. */
function loadsText({ machines, machineLoad }: PlacementMetrics): string {
  const loads = machines.map(({ load }) => load).sort((a, b) => b - a);
  if (loads.length > 0 && loads.length <= MAX_LOADS_IN_A_ROW) return loads.map(figure).join('/');
  return rangeText(machineLoad);
}

/** The largest load, and how near it is to what is possible. */
export function boundText({ machineLoad: { max }, lowestMaxLoad, workers }: PlacementMetrics): string {
  if (workers === 0) return '–';
  const isOptimal = max <= lowestMaxLoad * (1 + 1e-9);
  return `${figure(max)} ${isOptimal ? '(optimal)' : `(${figure(lowestMaxLoad)} at least)`}`;
}

function overMean({ max, mean }: PlacementMetrics['machineLoad']): string {
  return mean === 0 ? '–' : (max / mean).toFixed(2);
}

export function metricLines({ before, after }: ClusterPlan, width: number): readonly string[] {
  const all: readonly Column<MetricRow>[] = [
    { title: '', align: 'left', cell: ({ name }) => name },
    { title: 'BEFORE', align: 'left', cell: ({ value }) => value(before) },
    { title: 'AFTER', align: 'left', cell: ({ value }) => value(after) },
  ];
  return columns(METRICS, all, width);
}

interface MachineRow {
  readonly before: MachineUse | undefined;
  readonly after: MachineUse | undefined;
}

/** All machines, or of many the hottest and the coldest, and how loads are distributed. */
export function machineLines(
  plan: ClusterPlan,
  { width, isWhole }: { readonly width: number; readonly isWhole: boolean },
): string[] {
  const rows = rowsOf(plan);
  if (rows.length === 0) return [];
  const isLong = rows.length > MAX_MACHINES && !isWhole;
  if (!isLong) return [...table(rows, plan, width)];
  const hottest = [...rows].sort((a, b) => loadOf(b) - loadOf(a));
  const changed = rows
    .filter(({ before, after }) => before === undefined || after === undefined)
    .slice(0, COLDEST);
  const shown = new Set([...hottest.slice(0, HOTTEST), ...changed, ...hottest.slice(-COLDEST)]);
  return [
    `Machines: the ${HOTTEST} with most load and the ${COLDEST} with least of ${rows.length}; --all prints all`,
    ...table([...shown], plan, width),
    '',
    ...distribution(plan.after, width),
  ];
}

/** Most load first in a long list; otherwise in order of name. */
function rowsOf({ before, after }: ClusterPlan): MachineRow[] {
  const rows = new Map<string, MachineRow>();
  for (const machine of before.machines) rows.set(machine.id, { before: machine, after: undefined });
  for (const machine of after.machines) {
    rows.set(machine.id, { before: rows.get(machine.id)?.before, after: machine });
  }
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function loadOf({ before, after }: MachineRow): number {
  return after?.load ?? before?.load ?? 0;
}

function table(
  rows: readonly MachineRow[],
  { before, after }: ClusterPlan,
  width: number,
): readonly string[] {
  const most = Math.max(before.machineLoad.max, after.machineLoad.max);
  const isWide = width >= 110;
  const bar = isWide ? WIDE_BAR : NARROW_BAR;
  const either = ({ before: old, after: now }: MachineRow): MachineUse => (now ?? old)!;
  const knowsResources = rows.some((row) => either(row).offeredCpuPercent !== null);
  const figures = (use: MachineUse | undefined): string => (use === undefined ? '' : figure(use.load));
  const padding = (which: (row: MachineRow) => MachineUse | undefined): number =>
    Math.max(...rows.map((row) => figures(which(row)).length));
  const [padBefore, padAfter] = [padding((row) => row.before), padding((row) => row.after)];
  const load = (use: MachineUse | undefined, pad: number, missing: string): string =>
    use === undefined ? missing : `${figures(use).padStart(pad)} ${barOf(use.load, most, bar)}`;
  const all: Column<MachineRow>[] = [
    { title: 'MACHINE', align: 'left', cell: (row) => printable(either(row).id) },
    ...(after.racks > 1 || before.racks > 1
      ? [
          {
            title: 'RACK',
            align: 'left',
            cell: (row) => cut(printable(either(row).rack), 12),
          } as Column<MachineRow>,
        ]
      : []),
    {
      title: 'WORKERS',
      align: 'right',
      cell: ({ before: old, after: now }) => {
        const count = (now ?? old)!.workers;
        const was =
          old !== undefined && now !== undefined && old.workers !== count ? `${old.workers} → ` : '';
        return `${was}${count} of ${(now ?? old)!.slots}`;
      },
    },
    { title: 'LOAD BEFORE', align: 'left', cell: ({ before: use }) => load(use, padBefore, 'new') },
    { title: 'LOAD AFTER', align: 'left', cell: ({ after: use }) => load(use, padAfter, 'gone') },
  ];
  if (knowsResources) {
    all.push(
      {
        title: 'CPU',
        align: 'right',
        cell: ({ after: use }) => share(use?.cpuPercent, use?.offeredCpuPercent),
      },
      {
        title: 'MEM',
        align: 'right',
        cell: ({ after: use }) => share(use?.memoryMb, use?.offeredMemoryMb),
      },
    );
  }
  return columns(rows, all, width);
}

function share(used: number | undefined, offered: number | null | undefined): string {
  if (used === undefined || offered == null || offered === 0) return '–';
  return `${Math.round((100 * used) / offered)} %`;
}

/** Eighths of a character, so that small differences show. */
export function barOf(value: number, most: number, width: number): string {
  if (most <= 0) return ' '.repeat(width);
  const eighths = Math.round((value / most) * width * 8);
  const rest = eighths % 8;
  return `${'█'.repeat(Math.floor(eighths / 8))}${rest === 0 ? '' : '▏▎▍▌▋▊▉'[rest - 1]!}`.padEnd(width);
}

/** How many machines carry how much. */
function distribution({ machines }: PlacementMetrics, width: number): string[] {
  const loads = machines.map(({ load }) => load).sort((a, b) => a - b);
  const distinct = [...new Set(loads)];
  const [least = 0, most = 0] = [loads[0], loads.at(-1)];
  const rows =
    distinct.length <= MAX_LEVELS
      ? distinct.map((load) => ({ name: figure(load), count: loads.filter((one) => one === load).length }))
      : Array.from({ length: MAX_LEVELS }, (_, level) => {
          const size = (most - least) / MAX_LEVELS;
          const [from, to] = [least + level * size, least + (level + 1) * size];
          const isLast = level === MAX_LEVELS - 1;
          const count = loads.filter((load) => load >= from && (isLast || load < to)).length;
          return { name: `${figure(from)} to ${isLast ? '' : 'below '}${figure(isLast ? most : to)}`, count };
        });
  const widest = Math.max(...rows.map(({ name }) => name.length));
  const largest = Math.max(...rows.map(({ count }) => count));
  const bar = Math.max(8, Math.min(40, width - widest - 24));
  return [
    'Load of machines after:',
    ...rows.map(
      ({ name, count }) =>
        `  ${name.padStart(widest)}  ${barOf(count, largest, bar)} ${counted(count, 'machine')}`,
    ),
  ];
}
