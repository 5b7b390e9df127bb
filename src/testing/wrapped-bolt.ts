/** A bolt as it is, but for the rows that it is given and the collector that it emits to. */
import type { BoltTask, Row, RuntimeBolt, RuntimeOut } from '../topology/index.js';

export interface Wrapping {
  /** Default: the row itself. */
  readonly row?: (row: Row) => Row;
  /** Default: the collector itself. Gives the same one for the same one: typed `out`s are found by it. */
  readonly out?: (out: RuntimeOut) => RuntimeOut;
  /** Told of each task as the bolt made it. */
  readonly created?: (task: BoltTask) => void;
}

export function wrappedBolt(bolt: RuntimeBolt, wrapping: Wrapping): RuntimeBolt {
  return {
    kind: 'bolt',
    create(context, saved) {
      const made = bolt.create(context, saved);
      return made instanceof Promise
        ? made.then((task: BoltTask) => wrappedTask(task, wrapping))
        : wrappedTask(made, wrapping);
    },
  };
}

const same = <T>(value: T): T => value;

function wrappedTask(
  task: BoltTask,
  { row: wrapRow = same, out: wrapOut = same, created }: Wrapping,
): BoltTask {
  created?.(task);
  const { tick, end, save, close } = task;
  return {
    process: Object.fromEntries(
      Object.entries(task.process).map(([input, run]): [string, BoltTask['process'][string]] => [
        input,
        (row, out, anchor) => run(wrapRow(row), wrapOut(out), anchor),
      ]),
    ),
    ...(tick === undefined ? {} : { tick: (out) => tick.call(task, wrapOut(out)) }),
    ...(end === undefined ? {} : { end: (out) => end.call(task, wrapOut(out)) }),
    ...(save === undefined ? {} : { save: () => save.call(task) }),
    ...(close === undefined ? {} : { close: () => close.call(task) }),
  };
}
