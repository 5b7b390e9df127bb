/** Rows that user code is given are frozen, so that code which changes a row that others may see fails in its test. */
import type { BoltTask, Row, RuntimeBolt } from '../topology/index.js';

/** The same bolt, with every row frozen before it is given one. */
export function withFrozenRows(bolt: RuntimeBolt): RuntimeBolt {
  return {
    kind: 'bolt',
    create(context, saved) {
      const made = bolt.create(context, saved);
      return made instanceof Promise ? made.then(frozenTask) : frozenTask(made);
    },
  };
}

function frozenTask(task: BoltTask): BoltTask {
  const process = Object.fromEntries(
    Object.entries(task.process).map(([input, run]): [string, BoltTask['process'][string]] => [
      input,
      (row, out, anchor) => run(freeze(row), out, anchor),
    ]),
  );
  return { ...bound(task), process };
}

/** The other calls of a task, which may rely on `this`. */
function bound(task: BoltTask): Omit<BoltTask, 'process'> {
  const { tick, end, save, close } = task;
  return {
    ...(tick === undefined ? {} : { tick: (out) => tick.call(task, out) }),
    ...(end === undefined ? {} : { end: (out) => end.call(task, out) }),
    ...(save === undefined ? {} : { save: () => save.call(task) }),
    ...(close === undefined ? {} : { close: () => close.call(task) }),
  };
}

function freeze<T extends Row>(row: T): T {
  freezeDeeply(row, new Set());
  return row;
}

function freezeDeeply(value: unknown, seen: Set<object>): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return;
  // The elements of a view cannot be frozen.
  if (ArrayBuffer.isView(value)) return;
  seen.add(value);
  Object.freeze(value);
  for (const part of Object.values(value)) freezeDeeply(part, seen);
}
