/** The timeline of slots as text. Pure. */
import type { SlotTimeline, TimelineEvent } from '../../scheduling/index.js';
import { counted, cut, duration, printable } from '../view/format.js';
import { boundText } from './machine-views.js';
import { indented } from '../view/indented.js';
import { padded, textWidth } from '../view/text-width.js';
import { figure } from './plan-words.js';

const MAX_EVENTS = 60;
const MAX_LOADS = 8;
const MAX_PORTS = 6;

export function timelineLines(
  { strategy, events, isSettled, endMs, after, short }: SlotTimeline,
  { width, isWhole }: { readonly width: number; readonly isWhole: boolean },
): string[] {
  const subjects = events.map(subjectOf);
  const widest = Math.min(24, Math.max(8, ...subjects.map(textWidth)));
  const shown =
    isWhole || events.length <= MAX_EVENTS ? events.map((_, index) => index) : partly(events.length);
  const lines = [
    `strategy ${strategy}: from the first offer to ${duration(endMs)}${isSettled ? '' : ', not settled'}`,
    '',
  ];
  let last = -1;
  for (const index of shown) {
    if (index > last + 1) lines.push(`  … ${counted(index - last - 1, 'event')}; --all prints them`);
    last = index;
    const event = events[index]!;
    const head = `${duration(event.atMs).padStart(9)}  ${padded(cut(subjects[index]!, widest), widest, 'left')}  `;
    const indent = textWidth(head);
    const [first = '', ...rest] = indented(`${' '.repeat(indent)}${textOf(event)}`, width, indent);
    lines.push(`${head}${first.slice(indent)}`, ...rest);
  }
  const { machineLoad, workers, executors } = after;
  const loads =
    machineLoad.min === machineLoad.max
      ? figure(machineLoad.max)
      : `${figure(machineLoad.min)} to ${figure(machineLoad.max)}`;
  lines.push(
    '',
    `at the end: ${counted(executors, 'executor')} in ${counted(workers, 'worker')}; load per machine ${loads}; largest ${boundText(after)}`,
    ...short.flatMap((one) => indented(shortText(one), width, 2)),
  );
  return lines;
}

function shortText({ topologyId, workers, wanted, stays }: SlotTimeline['short'][number]): string {
  const id = printable(topologyId);
  const has = `${id} has ${workers} of ${counted(wanted, 'worker')}`;
  return stays ? `${has}: it stays on the slots that it was placed on, until isobar rebalance ${id}` : has;
}

function partly(count: number): number[] {
  const half = MAX_EVENTS / 2;
  return [
    ...Array.from({ length: half }, (_, index) => index),
    ...Array.from({ length: half }, (_, index) => count - half + index),
  ];
}

function subjectOf(event: TimelineEvent): string {
  return printable(event.kind === 'offered' ? event.machine : event.topologyId);
}

function textOf(event: TimelineEvent): string {
  switch (event.kind) {
    case 'requested':
      return `requests ${counted(event.slots, 'slot')}`;
    case 'declared':
      return `declares ${counted(event.slots, 'slot')}: its requests have been quiet for slot.request.max-interval`;
    case 'offered': {
      const ports = event.ports.slice(0, MAX_PORTS).join(', ');
      return `offers ${counted(event.ports.length, 'slot')}: ${ports}${event.ports.length > MAX_PORTS ? ', …' : ''}`;
    }
    case 'waiting':
      return `waits: ${event.free} of ${counted(event.slots, 'slot')} free`;
    case 'placed': {
      const loads = event.loads;
      const spread =
        loads.length <= MAX_LOADS
          ? loads.map(({ machine, load }) => `${printable(machine)} ${figure(load)}`).join(', ')
          : `${figure(Math.min(...loads.map(({ load }) => load)))} to ${figure(Math.max(...loads.map(({ load }) => load)))} on ${loads.length} machines`;
      const parts = [
        `placed in ${counted(event.workers, 'worker')}`,
        ...(event.isProvisional ? ['provisionally, since its wait was over'] : []),
        ...(event.moved > 0 ? [`${counted(event.moved, 'running executor')} moved`] : []),
        ...(event.waiting > 0 ? [`${counted(event.waiting, 'executor')} without a slot`] : []),
      ];
      return `${parts.join(', ')}; load ${spread}`;
    }
    case 'lacking':
      return `lacks slots for ${counted(event.executors, 'executor')}: ${printable(event.text)}`;
  }
}
