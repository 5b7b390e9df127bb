/** What `isobar plan` prints for people: plain lines. Pure. */
import {
  type ClusterPlan,
  type Lack,
  lackRuleText,
  type PlanWarning,
  WARNING_RULES,
} from '../../scheduling/index.js';
import { counted, cut, grouped, printable } from '../view/format.js';
import { indented } from '../view/indented.js';
import { machineLines, metricLines } from './machine-views.js';
import { moveLines } from './move-views.js';
import { figure } from './plan-words.js';

export interface PlanViewOptions {
  readonly width: number;
  /** Every machine, move and warning. */
  readonly isWhole: boolean;
}

const MAX_LACKS = 10;
const MAX_WARNINGS_OF_A_RULE = 3;

export function planLines(plan: ClusterPlan, notes: readonly string[], options: PlanViewOptions): string[] {
  const { width } = options;
  const sections: (readonly string[])[] = [
    headLines(plan, width),
    metricLines(plan, width),
    machineLines(plan, options),
    moveLines(plan, options),
    lackLines(plan, options),
    warningLines(plan.warnings, options),
    [...plan.notes, ...notes].flatMap((note) => indented(`note: ${printable(note)}`, width)),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}

function headLines({ strategy, rounds, isSettled, topologies, after }: ClusterPlan, width: number): string[] {
  const executors = topologies.reduce((sum, { plan }) => sum + plan.executors.length, 0);
  const racks = after.racks > 1 ? ` in ${after.racks} racks` : '';
  const ended =
    rounds === 0 ? 'nothing changes' : `${counted(rounds, 'round')}${isSettled ? '' : ', not settled'}`;
  return indented(
    `strategy ${strategy}: ${counted(topologies.length, 'topology', 'topologies')} with ${counted(executors, 'executor')} on ${counted(after.machines.length, 'machine')}${racks}, ${counted(after.slots, 'slot')}; ${ended}`,
    width,
  );
}

function lackLines(plan: ClusterPlan, { width, isWhole }: PlanViewOptions): string[] {
  const { lacks, topologies } = plan;
  const lines: string[] = [];
  for (const { id, failure } of topologies) {
    if (failure !== null)
      lines.push(...indented(`${printable(id)}: ${failure.code}: ${printable(failure.message)}`, width));
  }
  if (lacks.length > 0) {
    const executors = lacks.reduce((sum, lack) => sum + lack.executors.length, 0);
    lines.push(
      `Does not fit: ${counted(executors, 'executor')} of ${counted(lacks.length, 'topology', 'topologies')}`,
    );
  }
  const shown = isWhole ? lacks : lacks.slice(0, MAX_LACKS);
  for (const lack of shown) lines.push(...lackText(lack, togetherText(lack, plan), width));
  if (lacks.length > shown.length) lines.push(`  and ${lacks.length - shown.length} more; --all prints them`);
  return lines;
}

/**
 * What all executors without a place ask for together, and what is left beside everything that has a place; undefined where a
 * single one says as much. `need` and `have` are those of the last try, when others of the topology took their parts.
 */
function togetherText(
  { topologyId, executors, component, rule }: Lack,
  { snapshot, after }: ClusterPlan,
): string | undefined {
  if (component === null || executors.length === 1) return undefined;
  const topology = snapshot.topologies.find(({ id }) => id === topologyId);
  const resources = new Map(topology?.components?.map((one) => [one.id, one.resources]));
  const asked = { cpuPercent: 0, memoryMb: 0 };
  for (const one of executors) {
    const { cpuPercent = 0, onHeapMb = 0, offHeapMb = 0 } = resources.get(one.component) ?? {};
    asked.cpuPercent += cpuPercent;
    asked.memoryMb += onHeapMb + offHeapMb;
  }
  const left = { cpuPercent: 0, memoryMb: 0 };
  for (const { cpuPercent, memoryMb, offeredCpuPercent, offeredMemoryMb } of after.machines) {
    left.cpuPercent += Math.max(0, (offeredCpuPercent ?? 0) - cpuPercent);
    left.memoryMb += Math.max(0, (offeredMemoryMb ?? 0) - memoryMb);
  }
  const isAmount = rule === 'cpu' || rule === 'memory';
  const isEnough = isAmount && left.cpuPercent >= asked.cpuPercent && left.memoryMb >= asked.memoryMb;
  const why = isEnough ? '; enough in sum, but not machine by machine' : '';
  return `${counted(executors.length, 'executor')} ask ${amountsText(asked)}; ${amountsText(left)} left beside all that is placed${why}`;
}

function lackText(
  { topologyId, executors, component, need, have, best, rule, text }: Lack,
  together: string | undefined,
  width: number,
): string[] {
  const one = component === null ? '' : `an executor of "${printable(component)}": `;
  const known = lackRuleText(rule);
  return [
    cut(`  ${printable(topologyId)}: ${counted(executors.length, 'executor')} without a place`, width),
    ...(together === undefined ? [] : indented(`    all   ${together}`, width, 10)),
    ...indented(`    need  ${one}${amountsText(need)}`, width, 10),
    ...indented(
      `    have  ${amountsText(have)} free in all${together === undefined ? '' : ', in the last try'}`,
      width,
      10,
    ),
    ...indented(
      `    best  ${best === null ? 'no machine may be used' : `${printable(best.machine)}: ${amountsText(best.have)} free`}`,
      width,
      10,
    ),
    ...indented(`    rule  ${rule}: ${known}`, width, 10),
    ...(rule === 'by-strategy' ? indented(`    ${printable(text)}`, width, 4) : []),
  ];
}

const AMOUNTS: Readonly<Record<string, (amount: string) => string>> = {
  slots: (amount) => (amount === '1' ? '1 slot' : `${amount} slots`),
  cpuPercent: (amount) => `${amount} % of a core`,
  memoryMb: (amount) => `${amount} MB`,
  onHeapMb: (amount) => `of these ${amount} MB on heap`,
};

function amountsText(amounts: Lack['need']): string {
  return Object.entries(amounts)
    .map(([name, amount]) => (AMOUNTS[name] ?? ((text: string) => `${text} ${name}`))(figure(amount)))
    .join(', ');
}

function warningLines(warnings: readonly PlanWarning[], { width, isWhole }: PlanViewOptions): string[] {
  if (warnings.length === 0) return [];
  const byRule = new Map<PlanWarning['rule'], PlanWarning[]>();
  for (const warning of warnings) byRule.set(warning.rule, [...(byRule.get(warning.rule) ?? []), warning]);
  const lines = ['Warnings:'];
  for (const [rule, all] of byRule) {
    const shown = isWhole ? all : all.slice(0, MAX_WARNINGS_OF_A_RULE);
    lines.push(...indented(`  ${rule}: ${WARNING_RULES[rule]}`, width, 4));
    for (const { text } of shown) lines.push(...indented(`    ${printable(text)}`, width, 6));
    if (all.length > shown.length) lines.push(`    and ${grouped(all.length - shown.length)} more`);
  }
  return lines;
}
