/** What a run should be told of while it goes on, each thing once: calls that do not end, rows that nothing would replay. Pure. */
import { duration, printable } from './format.js';
import type { LongCallView, RunView } from './view.js';

export interface Warning {
  /** The same for the same thing; `text` may tell how long it has lasted. */
  readonly key: string;
  /** Empty and 0: not known, or not of one task. */
  readonly component: string;
  readonly task: number;
  readonly text: string;
}

export function warningsOf(view: RunView): readonly Warning[] {
  return [...unreplayable(view), ...view.longCalls.map(longCall)];
}

function unreplayable({ components, isAcking }: RunView): readonly Warning[] {
  if (!isAcking) return [];
  return components
    .filter((component) => component.unreplayable > 0)
    .map(({ id }) => ({
      key: `unreplayable ${id}`,
      component: id,
      task: 0,
      text: `${printable(id)} emits rows without a position, and nothing else replays them: one that fails or is lost is gone`,
    }));
}

function longCall(call: LongCallView): Warning {
  const { component, task, worker, thread, isBlocking } = call;
  return {
    key: ['call', worker, thread, component, task, call.call].join(' '),
    component,
    task,
    text: isBlocking
      ? `${longCallText(call)}; thread ${thread} of worker ${worker} does nothing else meanwhile`
      : longCallText(call),
  };
}

/** `split task 3 has been stuck in process for 12.0 s`. */
export function longCallText({ component, task, call, forMs, isBlocking }: LongCallView): string {
  const who = component === '' ? 'user code' : `${printable(component)} task ${task}`;
  if (!isBlocking) return `the promise of ${call} of ${who} has been open for ${duration(forMs)}`;
  return call === 'code'
    ? `${who} has been stuck outside any call for ${duration(forMs)}`
    : `${who} has been stuck in ${call} for ${duration(forMs)}`;
}
