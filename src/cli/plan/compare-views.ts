/** Plans of several strategies side by side on the same numbers, in several tables where they are too wide for one. Pure. */
import type { ClusterPlan } from '../../scheduling/index.js';
import { type Column, columns, columnsWidth } from '../view/format.js';
import { METRICS } from './machine-views.js';
import { figure } from './plan-words.js';

interface Row {
  readonly name: string;
  /** As it is now, then by each strategy. */
  readonly values: readonly string[];
}

export function compareLines(plans: readonly ClusterPlan[], width: number): readonly string[] {
  const [first] = plans;
  if (first === undefined) return [];
  const rows: Row[] = METRICS.map(({ name, value }) => ({
    name,
    values: [value(first.before), ...plans.map(({ after }) => value(after))],
  }));
  const add = (name: string, value: (plan: ClusterPlan) => string): void =>
    void rows.push({ name, values: ['', ...plans.map(value)] });
  add('executors without place', ({ lacks }) =>
    figure(lacks.reduce((sum, { executors }) => sum + executors.length, 0)),
  );
  add('topologies without place', ({ lacks, topologies }) =>
    figure(
      new Set([
        ...lacks.map(({ topologyId }) => topologyId),
        ...topologies.filter(({ failure }) => failure !== null).map(({ id }) => id),
      ]).size,
    ),
  );
  add('executors moved', ({ moves }) =>
    figure(
      moves.filter(({ from }) => from !== null).reduce((sum, { executors }) => sum + executors.length, 0),
    ),
  );
  add('rounds', ({ rounds, isSettled }) => `${rounds}${isSettled ? '' : ', not settled'}`);
  add('warnings', ({ warnings }) => figure(warnings.length));
  const names: readonly Column<Row>[] = [
    { title: '', align: 'left', cell: ({ name }) => name },
    { title: 'NOW', align: 'left', cell: ({ values }) => values[0] ?? '' },
  ];
  const strategies = plans.map(
    ({ strategy }, index): Column<Row> => ({
      title: strategy.toUpperCase(),
      align: 'left',
      cell: ({ values }) => values[index + 1] ?? '',
    }),
  );
  return besideEachOther(rows, names, strategies, width).flatMap((all, index) => [
    ...(index === 0 ? [] : ['']),
    ...columns(rows, all, width),
  ]);
}

/** Columns in as many tables as it takes to cut no word: each begins with the names, and has one more at least. */
function besideEachOther(
  rows: readonly Row[],
  names: readonly Column<Row>[],
  others: readonly Column<Row>[],
  width: number,
): readonly (readonly Column<Row>[])[] {
  const tables: Column<Row>[][] = [];
  for (const column of others) {
    const last = tables.at(-1);
    if (last !== undefined && columnsWidth(rows, [...last, column]) <= width) last.push(column);
    else tables.push([...names, column]);
  }
  return tables;
}
