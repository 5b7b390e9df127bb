/** The command line of the benches. */
import { parseArgs } from 'node:util';
import { PLACEMENTS, type Placement } from './subject.js';
import type { WindowOptions } from './window.js';

export interface BenchOptions {
  readonly json: boolean;
  readonly quick: boolean;
  /** Windows of each case. */
  readonly windows: number;
  readonly window: WindowOptions;
  readonly placements: readonly Placement[];
  readonly acking: readonly boolean[];
  /** How long `soak` leaves the cluster alone. */
  readonly soakMs: number;
  /** Cases whose name contains it; empty: all. */
  readonly only: string;
  /** Where production clusters are; not given: cases that need one are left out. */
  readonly dataDirectory: string | undefined;
  /** Directories with a peer's `run.sh`. */
  readonly peers: readonly string[];
}

export const USAGE = `npm run -s bench -- NAME [options]

  wordcount   acked rows per second, latency, CPU and memory, beside the hand-written ceiling
  ceiling     the hand-written ceiling alone
  startup     time until the first row
  submit      time from isobar submit to the first acked row on daemons that run
  idle        what a local cluster with an idle topology takes
  soak        a cluster left alone with an idle topology: memory, processor time, false alarms
  lifecycle   10,000 small topologies submitted, listed and killed, workers off
  scheduling  placing whole clusters: processor time, memory, and what the placements are worth
  console     processor time of a line that user code prints
  coordination  writes to the coordinator by executors and supervisors, over both coordinators

  --json              one JSON line a measurement
  --quick             one short window a case, no wait for a quiet machine
  --windows N         windows a case (3)
  --seconds S         length of a window (4)
  --warm-up S         time before a window in which nothing is measured (3)
  --retries N         further attempts at a window of which others took more than 5 % (2)
  --quiet-wait S      longest wait for a quiet machine before a window (20)
  --placement NAME    one-thread, two-threads or two-workers; may be repeated (all)
  --acking WHICH      on, off or both (both)
  --minutes N         of soak: how long it is left alone (30; with --quick 0.2)
  --only TEXT         of scheduling: cases whose name contains the text (all)
  --data DIR          of scheduling: directory with largeCluster01.json; without it its cases are left out
  --peer DIR          of scheduling: directory of Storm's or Flink's classes behind run.sh, timed in turn; may be repeated
  --help              this text`;

/**
 * Parses what follows `npm run -s bench --`.
 *
 * @throws Error with a sentence for the user.
 */
export function parseOptions(words: readonly string[]): {
  readonly name: string;
  readonly options: BenchOptions;
} {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      windows: { type: 'string' },
      seconds: { type: 'string' },
      'warm-up': { type: 'string' },
      retries: { type: 'string' },
      'quiet-wait': { type: 'string' },
      placement: { type: 'string', multiple: true },
      acking: { type: 'string', default: 'both' },
      minutes: { type: 'string' },
      only: { type: 'string', default: '' },
      data: { type: 'string' },
      peer: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [name = 'help', ...more] = positionals;
  if (more.length > 0) throw new Error(`One bench at a time; "${more.join(' ')}" is too much.`);
  const { quick } = values;
  const acking = { on: [true], off: [false], both: [true, false] }[values.acking];
  if (acking === undefined) throw new Error(`--acking expects on, off or both; it got "${values.acking}".`);
  return {
    name: values.help ? 'help' : name,
    options: {
      json: values.json,
      quick,
      windows: numberOf('--windows', values.windows, quick ? 1 : 3, 1, true),
      window: {
        windowMs: 1000 * numberOf('--seconds', values.seconds, quick ? 2 : 4, 1, false),
        warmUpMs: 1000 * numberOf('--warm-up', values['warm-up'], quick ? 1 : 3, 0, false),
        retries: numberOf('--retries', values.retries, quick ? 0 : 2, 0, true),
        quietWaitMs: 1000 * numberOf('--quiet-wait', values['quiet-wait'], quick ? 0 : 20, 0, false),
      },
      placements: values.placement === undefined ? PLACEMENTS : values.placement.map(placementOf),
      acking,
      soakMs: 60_000 * numberOf('--minutes', values.minutes, quick ? 0.2 : 30, 0.1, false),
      only: values.only,
      dataDirectory: values.data,
      peers: values.peer ?? [],
    },
  };
}

function placementOf(text: string): Placement {
  const found = PLACEMENTS.find((placement) => placement === text);
  if (found === undefined)
    throw new Error(`--placement expects one of ${PLACEMENTS.join(', ')}; it got "${text}".`);
  return found;
}

function numberOf(
  option: string,
  text: string | undefined,
  fallback: number,
  least: number,
  whole: boolean,
): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isFinite(value) || value < least || (whole && !Number.isInteger(value))) {
    throw new Error(`${option} expects a ${whole ? 'whole ' : ''}number from ${least}; it got "${text}".`);
  }
  return value;
}
