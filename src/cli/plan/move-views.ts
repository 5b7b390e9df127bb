/** The moves of a plan as text: each with its rules, or where there are many, by topology. Pure. */
import { type ClusterPlan, type Move, PLAN_RULES } from '../../scheduling/index.js';
import { type Column, columns, columnsWidth, counted, cut, grouped, printable } from '../view/format.js';
import { indented } from '../view/indented.js';
import { executorsText, figure, slotText } from './plan-words.js';

const MAX_MOVES = 20;
const MAX_TOPOLOGIES = 20;
/** Characters that rules have at least where names are long. */
const LEAST_FOR_RULES = 16;

export function moveLines(
  plan: ClusterPlan,
  { width, isWhole }: { readonly width: number; readonly isWhole: boolean },
): string[] {
  const { moves, rounds } = plan;
  if (moves.length === 0) return [];
  const { started, moved, stopped } = totalsOf(moves);
  const parts = [
    ...(started > 0 ? [`${counted(started, 'executor')} started`] : []),
    ...(moved > 0 ? [`${counted(moved, 'executor')} moved`] : []),
    ...(stopped > 0 ? [`${counted(stopped, 'executor')} stopped`] : []),
  ];
  const lines = [`Moves: ${parts.join(', ')}`];
  if (isWhole || moves.length <= MAX_MOVES)
    for (const move of moves) lines.push(...moveText(move, rounds > 1, width));
  else lines.push(...byTopology(plan, width));
  const rules = new Set(rulesOf(moves));
  lines.push('Rules:');
  for (const rule of rules) lines.push(...indented(`  ${rule}: ${PLAN_RULES[rule]}`, width, 4));
  return lines;
}

function rulesOf(moves: readonly Move[]): (keyof typeof PLAN_RULES)[] {
  return moves.flatMap(({ left, chosen }) => [left, chosen]).filter((rule) => rule !== null);
}

function totalsOf(moves: readonly Move[]): { started: number; moved: number; stopped: number } {
  const totals = { started: 0, moved: 0, stopped: 0 };
  for (const { from, to, executors } of moves)
    totals[to === null ? 'stopped' : from === null ? 'started' : 'moved'] += executors.length;
  return totals;
}

interface TopologyRow {
  readonly id: string;
  readonly totals: ReturnType<typeof totalsOf>;
  readonly workers: string;
  readonly machines: number;
  readonly rules: readonly string[];
}

/** Those with most executors that move first. */
function byTopology({ moves, snapshot, strategy }: ClusterPlan, width: number): string[] {
  const own = new Map<string, Move[]>();
  for (const move of moves) {
    const list = own.get(move.topologyId) ?? [];
    own.set(move.topologyId, list);
    list.push(move);
  }
  const wanted = new Map(
    snapshot.topologies.map(({ id, workers, executors }) => [id, Math.min(workers, executors.length)]),
  );
  const rows = [...own].map(([id, list]): TopologyRow => {
    const workers = snapshot.placement.get(id) ?? [];
    return {
      id,
      totals: totalsOf(list),
      workers:
        strategy === 'resource-aware'
          ? grouped(workers.length)
          : `${grouped(workers.length)} of ${grouped(wanted.get(id) ?? 0)}`,
      machines: new Set(workers.map(({ supervisor }) => supervisor)).size,
      rules: [...new Set(rulesOf(list))],
    };
  });
  const weight = ({ totals }: TopologyRow): number => totals.started + totals.moved + totals.stopped;
  rows.sort((a, b) => weight(b) - weight(a) || (a.id < b.id ? -1 : 1));
  const count = (title: string, value: (row: TopologyRow) => number): Column<TopologyRow>[] =>
    rows.some((row) => value(row) > 0) ? [{ title, align: 'right', cell: (row) => grouped(value(row)) }] : [];
  const others: readonly Column<TopologyRow>[] = [
    { title: 'TOPOLOGY', align: 'left', cell: ({ id }) => printable(id) },
    ...count('STARTED', ({ totals }) => totals.started),
    ...count('MOVED', ({ totals }) => totals.moved),
    ...count('STOPPED', ({ totals }) => totals.stopped),
    { title: 'WORKERS', align: 'right', cell: ({ workers }) => workers },
    { title: 'MACHINES', align: 'right', cell: ({ machines }) => grouped(machines) },
  ];
  const shown = rows.slice(0, MAX_TOPOLOGIES);
  const room = Math.max(LEAST_FOR_RULES, width - 4 - columnsWidth(shown, others));
  const all: readonly Column<TopologyRow>[] = [
    ...others,
    { title: 'RULES', align: 'left', cell: ({ rules }) => asManyAsFit(rules, room) },
  ];
  const lines = columns(shown, all, width - 2).map((line) => `  ${line}`);
  if (rows.length > MAX_TOPOLOGIES)
    lines.push(`  and ${counted(rows.length - MAX_TOPOLOGIES, 'topology', 'topologies')} more`);
  lines.push(
    ...indented(
      `  --all prints the ${grouped(moves.length)} moves of workers, --json has them, --explain TOPOLOGY/TASK tells more of one`,
      width,
      4,
    ),
  );
  return lines;
}

/** Names with commas, and how many more there are than have room; the first one always. */
function asManyAsFit(names: readonly string[], room: number): string {
  for (let count = names.length; count > 1; count--) {
    const text = `${names.slice(0, count).join(', ')}${count < names.length ? ` +${names.length - count}` : ''}`;
    if (text.length <= room) return text;
  }
  return `${names[0] ?? ''}${names.length > 1 ? ` +${names.length - 1}` : ''}`;
}

function moveText(move: Move, hasRounds: boolean, width: number): string[] {
  const { round, topologyId, from, to, load, left, chosen, machineLoad, evictedBy } = move;
  const rounds = hasRounds ? `${round}. ` : '';
  const where = from === null ? slotText(to) : `${slotText(from)} → ${slotText(to)}`;
  const head = `  ${rounds}${printable(topologyId)} ${where}  load ${figure(load)}: `;
  const carried =
    machineLoad === null || to === null
      ? ''
      : ` (${printable(to.supervisor)}: ${figure(machineLoad.before)} → ${figure(machineLoad.after)})`;
  const why = [
    ...(left === null
      ? []
      : [`${left}${evictedBy.length > 0 ? ` for ${evictedBy.map(printable).join(', ')}` : ''}`]),
    ...(chosen === null ? [] : [`${chosen}${carried}`]),
  ].join('; ');
  const executors = executorsText(move.executors);
  const one = `${head}${executors}  ${why}`;
  if (one.length <= width) return [one];
  return [cut(`${head}${executors}`, width), cut(`      ${why}`, width)];
}
