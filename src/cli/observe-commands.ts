/** The commands that look into a running topology. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ClusterEvent, diagnose, type TapRow } from '../api/index.js';
import { IsobarError, parseDurationMs } from '../base/index.js';
import { colorsFor } from './colors.js';
import { ClusterCaller, type ClusterSurroundings } from './cluster-caller.js';
import { OWN_PLACE } from './own-place.js';
import { printLogs } from './logs-command.js';
import { printEvents } from './events-command.js';
import type { EventsFlags, LogsFlags, ObserveActions, TapFlags, WhyFlags } from './observe-program.js';
import { printRows } from './tap-command.js';
import { eventJson, eventLine } from './view/event-lines.js';
import { rowJson, rowLine } from './view/row-lines.js';
import { logJson, logLine } from './view/log-lines.js';
import { whyJson, whyLines } from './view/why-lines.js';

export interface ObserveSurroundings extends ClusterSurroundings {
  /** Calls back when the user, or whoever reads the output, has had enough; returns how to stop listening. */
  onInterrupt(callback: () => void): () => void;
}

const LOGS_PATIENCE_MS = 500;
const DEFAULT_WINDOW = '3s';
/** Workers report once a second. */
const SHORTEST_WINDOW_MS = 1000;
const LONGEST_WINDOW_MS = 600_000;

/** Each resolves to its exit code; errors have been shown. */
export class ObserveCommands implements ObserveActions {
  readonly #surroundings: ObserveSurroundings;
  readonly #caller: ClusterCaller;

  constructor(surroundings: ObserveSurroundings) {
    this.#surroundings = surroundings;
    this.#caller = new ClusterCaller(surroundings);
  }

  logs(name: string | undefined, component: string | undefined, flags: LogsFlags): Promise<number> {
    const { out, environment } = this.#surroundings;
    const colors = colorsFor(out, environment);
    return this.#untilInterrupted((signal) =>
      this.#caller.run(
        flags,
        async (client) =>
          printLogs(
            client,
            { name, component, flags, directory: this.#caller.directoryOf(flags) },
            (entry) =>
              out.write(
                `${flags.json === true ? JSON.stringify(logJson(entry)) : logLine(entry, colors, OWN_PLACE)}\n`,
              ),
            signal,
          ),
        // The files say nearly as much.
        { patienceMs: LOGS_PATIENCE_MS },
      ),
    );
  }

  why(name: string, flags: WhyFlags): Promise<number> {
    return this.#untilInterrupted((signal) =>
      this.#caller.run(flags, async (client) => {
        const windowMs = readWindowMs(flags.window);
        const before = await client.ask('describe', name);
        await pause(windowMs, undefined, { signal }).catch(() => undefined);
        const after = await client.ask('describe', name);
        const seen = diagnose(before, after);
        const { oldestPending } = seen;
        const isHeldSomewhere = oldestPending !== null && oldestPending.heldBy === null;
        const heldBy = isHeldSomewhere ? await client.ask('holder', name) : null;
        const diagnosis = heldBy === null ? seen : { ...seen, oldestPending: { ...oldestPending!, heldBy } };
        this.#caller.answer(flags, whyJson(after, diagnosis), () =>
          whyLines(after, diagnosis, this.#caller.width),
        );
      }),
    );
  }

  events(name: string | undefined, flags: EventsFlags): Promise<number> {
    const { out, environment } = this.#surroundings;
    const colors = colorsFor(out, environment);
    let printed = 0;
    const print = (event: ClusterEvent): void => {
      printed++;
      out.write(`${flags.json === true ? JSON.stringify(eventJson(event)) : eventLine(event, colors)}\n`);
    };
    return this.#untilInterrupted((signal) =>
      this.#caller.run(flags, async (client) => {
        await printEvents(client, { name, flags }, print, signal);
        if (printed === 0 && flags.json !== true)
          this.#surroundings.err.write('note: nothing has happened\n');
      }),
    );
  }

  tap(name: string, component: string, flags: TapFlags): Promise<number> {
    const { out, err, environment } = this.#surroundings;
    const colors = colorsFor(out, environment);
    const tell = (unheard: readonly string[]): void => {
      for (const text of unheard) err.write(`note: not heard: ${text}\n`);
    };
    return this.#untilInterrupted((signal) =>
      this.#caller.run(flags, async (client) => {
        const print = (row: TapRow): unknown =>
          out.write(
            `${flags.json === true ? JSON.stringify(rowJson(row, component)) : rowLine(row, component, colors)}\n`,
          );
        const printed = await printRows(client, { name, component, flags }, print, tell, signal);
        if (printed === 0) err.write('note: no such row passed\n');
      }),
    );
  }

  async #untilInterrupted(command: (signal: AbortSignal) => Promise<number>): Promise<number> {
    const interrupted = new AbortController();
    const stop = this.#surroundings.onInterrupt(() => interrupted.abort());
    try {
      return await command(interrupted.signal);
    } finally {
      stop();
    }
  }
}

/** @throws USAGE */
function readWindowMs(text = DEFAULT_WINDOW): number {
  const windowMs = parseDurationMs(text);
  if (windowMs !== undefined && windowMs >= SHORTEST_WINDOW_MS && windowMs <= LONGEST_WINDOW_MS)
    return windowMs;
  const expected = 'a duration from 1s to 10m';
  throw new IsobarError('USAGE', `--window ${text} is not understood`, {
    expected,
    found: text,
    where: '--window',
  });
}
