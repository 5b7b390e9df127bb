/** Plans of several strategies side by side on the same numbers. Pure. */
import type { ClusterPlan } from '../../scheduling/index.js';
import { type Column, columns } from '../view/format.js';
import { METRICS } from './machine-views.js';
import { figure } from './plan-words.js';

export function compareLines(plans: readonly ClusterPlan[], width: number): readonly string[] {
  const [first] = plans;
  if (first === undefined) return [];
  const rows: { readonly name: string; readonly values: readonly string[] }[] = METRICS.map(
    ({ name, value }) => ({
      name,
      values: [value(first.before), ...plans.map(({ after }) => value(after))],
    }),
  );
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
  const all: readonly Column<(typeof rows)[number]>[] = [
    { title: '', align: 'left', cell: ({ name }) => name },
    { title: 'NOW', align: 'left', cell: ({ values }) => values[0] ?? '' },
    ...plans.map(
      ({ strategy }, index): Column<(typeof rows)[number]> => ({
        title: strategy.toUpperCase(),
        align: 'left',
        cell: ({ values }) => values[index + 1] ?? '',
      }),
    ),
  ];
  return columns(rows, all, width);
}
