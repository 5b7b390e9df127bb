/** Why one executor is where it is, as text. Pure. */
import { type ClusterPlan, type Explanation, PLAN_RULES } from '../../scheduling/index.js';
import { counted, printable } from '../view/format.js';
import { boundText } from './machine-views.js';
import { indented } from '../view/indented.js';
import { executorsText, figure, slotText } from './plan-words.js';

export function explainLines(plan: ClusterPlan, explanation: Explanation, width: number): string[] {
  const { topologyId, executor, before, after, moves, lack } = explanation;
  const [first, last] = executor.range;
  const tasks = first === last ? `task ${first}` : `tasks ${first}-${last}`;
  const lines = [`${printable(topologyId)}: ${printable(executor.component)}, ${tasks}`];
  const add = (name: string, text: string): void =>
    void lines.push(...indented(`  ${name.padEnd(10)}${text}`, width, 12));
  add('load', loadText(explanation));
  add('group', groupText(explanation));
  if (after !== null) {
    const others = after.executors.filter(({ range }) => range[0] !== first);
    add(
      'request',
      others.length === 0
        ? `one slot of its own, load ${figure(after.load)}`
        : `one slot, shared with ${executorsText(others)}; together they weigh ${figure(after.load)}`,
    );
  }
  add('before', before === null ? 'nowhere' : slotText(before));
  add('after', after === null ? 'nowhere' : slotText(after));
  for (const { round, from, to, left, chosen, machineLoad, evictedBy } of moves) {
    const why =
      left === null
        ? ''
        : `left ${slotText(from)}, because ${PLAN_RULES[left]}${evictedBy.length > 0 ? ` (${evictedBy.join(', ')})` : ''}. `;
    const carried =
      machineLoad === null || to === null
        ? ''
        : `; in this round ${to.supervisor} went from ${figure(machineLoad.before)} to ${figure(machineLoad.after)}`;
    const where =
      chosen === null
        ? 'It has no slot now.'
        : `${slotText(to)} by ${chosen}: ${PLAN_RULES[chosen]}${carried}`;
    add(`round ${round}`, `${why}${where}`);
  }
  if (moves.length === 0 && after !== null)
    add('stays', 'what runs stays where it is unless a rule takes it away');
  if (lack !== null) add('lacks', printable(lack.text));
  const chosen = explanation.machines.find(({ isChosen }) => isChosen);
  if (chosen !== undefined) {
    add(
      'machine',
      `${printable(chosen.id)} carries ${figure(chosen.load)} after the plan; the largest load of any machine is ${boundText(plan.after)}`,
    );
    const others = explanation.machines.filter(({ isChosen }) => !isChosen);
    add(
      'others',
      others.length === 0
        ? 'no other machine has a free slot'
        : others
            .map(
              ({ id, load: carried, freeSlots }) =>
                `${id} ${figure(carried)} (${counted(freeSlots, 'free slot')})`,
            )
            .join(', '),
    );
  }
  for (const {
    component: other,
    direction,
    grouping,
    sameWorker,
    sameMachine,
    sameRack,
    otherRack,
  } of explanation.neighbours) {
    const total = sameWorker + sameMachine + sameRack + otherRack;
    const far = [
      ...(sameWorker > 0 ? [`${sameWorker} in this worker`] : []),
      ...(sameMachine > 0 ? [`${sameMachine} on this machine`] : []),
      ...(sameRack > 0 ? [`${sameRack} in this rack`] : []),
      ...(otherRack > 0 ? [`${otherRack} in other racks`] : []),
    ];
    add(
      direction === 'from' ? 'reads' : 'sends',
      `${direction} ${printable(other)} (${grouping}), ${counted(total, 'executor')}: ${far.length === 0 ? 'none is placed' : far.join(', ')}`,
    );
  }
  return lines;
}

function loadText({ load, loadSource, component }: Explanation): string {
  const { cpuPercent = 0, onHeapMb = 0, offHeapMb = 0 } = component?.resources ?? {};
  const asks =
    cpuPercent + onHeapMb + offHeapMb > 0
      ? `; asks for ${figure(cpuPercent)} % of a core, ${figure(onHeapMb)} MB of heap, ${figure(offHeapMb)} MB beside it`
      : '';
  const why = loadWords(loadSource, component);
  const moves =
    component?.isMovable === false ? '; not moved for balance, since its state would stay behind' : '';
  return `${figure(load)} (${why})${asks}${moves}`;
}

function loadWords(source: Explanation['loadSource'], component: Explanation['component']): string {
  switch (source) {
    case 'system':
      return 'system components weigh nothing';
    case 'executors':
      return 'each executor weighs 1';
    case 'tasks':
      return 'the number of its tasks';
    case 'declared':
      return component?.load === undefined ? 'an executor weighs 1' : 'as declared';
    case 'resources':
      return 'the processor share that it asks for';
    case 'measured':
      return 'the part of its time in which it is busy, as measured';
    case 'estimated':
      return 'not measured yet: as its component, its topology or the cluster measures on average';
  }
}

function groupText({ sharing, workers, component }: Explanation): string {
  const { slotSharingGroup = 'default', coLocationGroup } = component ?? {};
  const together = coLocationGroup === undefined ? '' : `, co-located in ${coLocationGroup}`;
  const dealt = sharing === null ? '' : `, dealt ${sharing}`;
  return `slot sharing group ${slotSharingGroup}${together}${dealt}; ${counted(workers.planned, 'worker')} of ${workers.wanted} wanted`;
}
