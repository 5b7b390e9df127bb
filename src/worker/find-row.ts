/** Where a row of one tree is, as far as one executor thread can see: in a queue, in a call that lasts, behind another row, or held. */
import type { BoltExecutor } from './bolt-executor.js';
import type { Link } from './link.js';

/** Words for people; null: not here. */
export function findRow(
  bolts: readonly BoltExecutor[],
  links: Iterable<Link>,
  rootTask: number,
  sequence: number,
  nowMs: number,
): string | null {
  const isOf = (words: Int32Array, at: number): boolean =>
    words[at + 3] === rootTask && words[at + 5] === sequence;
  const isRoot = (row: { readonly rootTask: number; readonly rootSequence: number }): boolean =>
    row.rootTask === rootTask && row.rootSequence === sequence;
  for (const bolt of bolts) {
    const { id } = bolt.component;
    for (const task of bolt.tasks) {
      for (const call of task.openCalls) {
        if (isRoot(call)) return `${id}[${task.number}] (in process for ${seconds(nowMs - call.sinceMs)})`;
      }
      if (task.lines.some(isRoot)) return `${id}[${task.number}] (behind another row of its key)`;
    }
    if (bolt.someQueued(isOf)) return `${id} (queued)`;
  }
  for (const link of links)
    if (link.someHeld(isOf)) return `held for thread ${link.targetThread} (no credit)`;
  return null;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
