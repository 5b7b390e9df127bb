/**
 * A topology in a test: all of it in this process, by a clock that stands still until nothing is left to do, with a seed.
 *
 * T1  The same topology, rows and seed give the same run, as far as user code does not wait for the outside.
 * T2  Time passes only when nothing else can: a tick of ten minutes takes none, and a time-out comes when it is due.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as immediate, setTimeout as pause } from 'node:timers/promises';
import {
  type Clock,
  type ErrorRecord,
  IsobarError,
  parseDurationMs,
  silentLogger,
  VirtualClock,
} from '../base/index.js';
import {
  type BuiltTopology,
  buildTopology,
  type Duration,
  type Row,
  type RuntimeBolt,
  type RuntimeSpout,
  type TopologyDefinition,
  type TopologySettings,
} from '../topology/index.js';
import { InProcessTopology, type InProcessTotals } from '../worker/index.js';
import { frozenRow } from './freeze-rows.js';
import { recordedSpout, recorder } from './record-rows.js';
import { type StandIns, withStandIns } from './stand-ins.js';
import { wrappedBolt } from './wrapped-bolt.js';

export interface RunOptions {
  /** Over those in the topology. */
  readonly settings?: TopologySettings;
  /** Definitions in place of components, by id; for sources and for what writes to the outside. */
  readonly replace?: StandIns;
  /** Of all chance: shuffling, ids. Default 1. */
  readonly seed?: number;
  /** Rows are frozen before user code gets them; default true. */
  readonly freeze?: boolean;
  /** Time on the clock after which a run that has not ended fails; default one hour. */
  readonly limit?: Duration;
  /** Real time that open promises of user code are waited for without anything else happening; default 5 s. */
  readonly patience?: Duration;
}

export interface RunError {
  readonly component: string;
  /** Number of the task. */
  readonly task: number;
  readonly error: ErrorRecord;
}

export interface RunDeadLetter {
  readonly component: string;
  readonly stream: string;
  readonly row: Row;
  readonly failures: number;
}

const DEFAULT_LIMIT_MS = 3_600_000;
const DEFAULT_PATIENCE_MS = 5000;
/** So often a timer of the machine is let in, for rows that a bolt holds. */
const HELD_LOOKS = 100;
/** Other events of the process are let in after so many turns with work. */
const TURNS_AT_ONCE = 64;

export class TopologyRun {
  readonly #clock = new VirtualClock();
  readonly #running: InProcessTopology;
  readonly #rows = new Map<string, Row[]>();
  readonly #deadLetterDirectory = mkdtempSync(join(tmpdir(), 'isobar-testing-'));
  readonly #limitMs: number;
  readonly #patienceMs: number;
  #isClosed = false;
  #deadLetters: readonly RunDeadLetter[] | undefined;

  constructor(topology: TopologyDefinition, options: RunOptions = {}) {
    this.#limitMs = durationOf('limit', options.limit, DEFAULT_LIMIT_MS);
    this.#patienceMs = durationOf('patience', options.patience, DEFAULT_PATIENCE_MS);
    const built = withStandIns(buildTopology(topology), options.replace ?? {});
    this.#running = new InProcessTopology({
      topology: this.#observed(built, options.freeze ?? true),
      // The table of settings checks them.
      settings: options.settings ?? {},
      clock: this.#clock,
      logger: silentLogger,
      random: seededRandom(options.seed ?? 1),
      deadLetterDirectory: this.#deadLetterDirectory,
    });
  }

  /** The clock of the run; components have it as `context.clock`. */
  get clock(): Clock {
    return this.#clock;
  }

  /** What a component has emitted so far, in order; replays are not listed again. */
  rows(component: string, stream = 'default'): readonly Row[] {
    return this.#rows.get(`${component}/${stream}`) ?? [];
  }

  totals(component: string): InProcessTotals {
    return this.#running.totals(component);
  }

  /** What the component has counted with `context.metrics.count`. */
  counters(component: string): Readonly<Record<string, number>> {
    return this.#running.counters(component);
  }

  /** What user code has thrown, and what it did wrong. */
  get errors(): readonly RunError[] {
    return this.#running.errors;
  }

  /** Rows that were given up. */
  get deadLetters(): readonly RunDeadLetter[] {
    return this.#deadLetters ?? this.#readDeadLetters();
  }

  get hasEnded(): boolean {
    return this.#running.hasEnded;
  }

  /** Goes on until nothing is left to do at this moment of the clock. @throws what ended a component's task */
  async settle(): Promise<void> {
    const startMs = this.#clock.nowMs();
    await this.#until(() => false, startMs);
  }

  /** Lets time pass, and everything happen that is due in it. */
  async advance(by: Duration): Promise<void> {
    const endMs = this.#clock.nowMs() + durationOf('by', by, 0);
    await this.#until(() => false, endMs);
    this.#clock.advance(Math.max(0, endMs - this.#clock.nowMs()));
    await this.settle();
  }

  /** Goes on, with time passing, until a condition holds. @throws TEST_NOT_ENDED */
  async until(what: string, condition: () => boolean): Promise<void> {
    const endMs = this.#clock.nowMs() + this.#limitMs;
    if (!(await this.#until(condition, endMs))) throw this.#notEnded(what);
  }

  /** To the end: all sources have ended, every row is acked or given up, `end` has run everywhere. @throws TEST_NOT_ENDED */
  toEnd(): Promise<void> {
    return this.until('the end of the topology', () => this.#running.hasEnded);
  }

  /** Closes all tasks. Twice is harmless. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#running.close();
    this.#deadLetters = this.#readDeadLetters();
    rmSync(this.#deadLetterDirectory, { recursive: true, force: true });
  }

  #readDeadLetters(): readonly RunDeadLetter[] {
    return [...this.#running.deadLetterFiles].flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        // Written by this process.
        .map((line) => JSON.parse(line) as RunDeadLetter),
    );
  }

  /** Returns whether the condition holds; it does not when nothing is left to do by `endMs`. */
  async #until(condition: () => boolean, endMs: number): Promise<boolean> {
    let waitingSinceMs: number | undefined;
    let held = 0;
    this.#running.askSources();
    for (let turns = 1; ; turns++) {
      const hasWorked = this.#running.turn();
      const { broken } = this.#running;
      if (broken !== undefined) throw IsobarError.from(broken);
      if (condition()) return true;
      if (hasWorked) {
        waitingSinceMs = undefined;
        if (turns % TURNS_AT_ONCE === 0) await immediate();
        continue;
      }
      await immediate();
      if (this.#running.isWoken) continue;
      if (this.#running.isAwaiting) {
        waitingSinceMs ??= performance.now();
        if (performance.now() - waitingSinceMs > this.#patienceMs) {
          // Perhaps it waits for the clock.
          if (!this.#passTime(endMs)) return false;
          waitingSinceMs = undefined;
          continue;
        }
        await pause(1);
        continue;
      }
      // What answers for a held row may be a timer of the machine.
      if (this.#running.isHolding && held++ < HELD_LOOKS) {
        await pause(1);
        continue;
      }
      if (!this.#passTime(endMs)) return false;
    }
  }

  /** To what is due next; false: nothing is due by `endMs`. */
  #passTime(endMs: number): boolean {
    const dueMs = this.#running.nextDueMs;
    if (dueMs > endMs) return false;
    // Something that is due and cannot be done yet must not stop the clock.
    this.#clock.advance(Math.max(dueMs - this.#clock.nowMs(), 1));
    return this.#clock.nowMs() <= endMs;
  }

  #observed(built: BuiltTopology, freezes: boolean): BuiltTopology {
    const components: BuiltTopology['components'] = new Map(
      [...built.components].map(([id, runtime]): readonly [string, RuntimeSpout | RuntimeBolt] => {
        const onEmit = (stream: string, row: Row): void => {
          const key = `${id}/${stream}`;
          const rows = this.#rows.get(key);
          if (rows === undefined) this.#rows.set(key, [row]);
          else rows.push(row);
        };
        if (runtime.kind === 'spout') return [id, recordedSpout(runtime, onEmit)];
        const freezing = freezes ? { row: frozenRow } : {};
        return [id, wrappedBolt(runtime, { out: recorder(onEmit), ...freezing })];
      }),
    );
    return { ...built, components };
  }

  #notEnded(what: string): IsobarError {
    const pending = [...this.#rows.keys()].map((key) => key.slice(0, key.lastIndexOf('/')));
    const held = [...new Set(pending)]
      .map((component) => [component, this.totals(component).pending] as const)
      .filter(([, count]) => count > 0)
      .map(([component, count]) => `${count} rows of "${component}" are pending`);
    const errors = this.errors.slice(-3).map(({ component, error }) => `${component}: ${error.message}`);
    return new IsobarError('TEST_NOT_ENDED', `waited in vain for ${what}`, {
      expected: `${what} within ${this.#limitMs} ms of the test's clock`,
      found: [...held, ...errors].join('; ') || 'nothing left to do',
      where: 'isobar/testing',
    });
  }
}

/** Starts a topology; nothing runs before the first wait. */
export function startTopology(topology: TopologyDefinition, options: RunOptions = {}): TopologyRun {
  return new TopologyRun(topology, options);
}

/** Runs a topology to its end and closes it. @throws TEST_NOT_ENDED, and what a start failed with */
export async function runTopology(
  topology: TopologyDefinition,
  options: RunOptions = {},
): Promise<TopologyRun> {
  const run = new TopologyRun(topology, options);
  try {
    await run.toEnd();
    return run;
  } finally {
    await run.close();
  }
}

function durationOf(name: string, value: Duration | undefined, otherwiseMs: number): number {
  if (value === undefined) return otherwiseMs;
  const valueMs = parseDurationMs(value);
  if (valueMs === undefined)
    throw new IsobarError('USAGE', `${name} is not a duration`, {
      expected: "a duration such as '10s'",
      found: String(value),
      where: name,
    });
  return valueMs;
}

/** Mulberry32: small, and the same everywhere. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
