/**
 * How late flights leave, by state: 231,083 flights of 2001 joined with 3,376 airports, some of which have no state. The records come
 * from the npm package `vega-datasets`. The feed is read at a pace and then stays open, as a live one would. Once a second the
 * whole result replaces the file named by FLIGHTS_RESULT. docs/flights.md explains it; operate.mjs operates it.
 *
 *     isobar submit examples/flights/app.ts          (or isobar run …; Ctrl-C drains it)
 */
import { once } from 'node:events';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { bolt, type RowOf, spout, t, topology } from 'isobar';

const ROWS_AT_ONCE = 100;
/** Between two batches of a task: two tasks read at most 20,000 flights a second. */
const PACE_MS = 10;
/** Minutes behind plan from which on a flight is late. */
const LATE_MINUTES = 15;

/** The lines of a file of records, without the one that names its columns. */
function linesOf(file: string): readonly string[] {
  const path = createRequire(import.meta.url).resolve(`vega-datasets/data/${file}`);
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(1);
}

/** A flight has no key of its own: the number of its line is one. */
const flights = spout({
  emits: { flight: t.int32, origin: t.string, delay: t.int32 },
  async *read(context, from = context.index) {
    const lines = linesOf('flights-3m.csv');
    let batch: { row: { flight: number; origin: string; delay: number }; position: number }[] = [];
    for (let flight = from; flight < lines.length; flight += context.count) {
      const [, delay = '', , origin = ''] = lines[flight]!.split(',');
      batch.push({ row: { flight, origin, delay: Number(delay) }, position: flight + context.count });
      if (batch.length < ROWS_AT_ONCE) continue;
      yield batch;
      batch = [];
      await pause(PACE_MS);
    }
    yield batch;
    await ended(context.signal);
  },
});

/** State is the fourth cell from the end, since names in front of it may hold commas; the file says `NA` where it is not known. */
const airports = spout({
  emits: { code: t.string, state: t.nullable(t.string) },
  async *read(context, from = 0) {
    const rows = linesOf('airports.csv').map((line, index) => {
      const cells = line.split(',');
      const state = cells.at(-4) ?? 'NA';
      return { row: { code: cells[0]!, state: state === 'NA' ? null : state }, position: index + 1 };
    });
    for (let next = from; next < rows.length; next += ROWS_AT_ONCE)
      yield rows.slice(next, next + ROWS_AT_ONCE);
    await ended(context.signal);
  },
});

async function ended(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

interface Departure {
  readonly flight: number;
  readonly delay: number;
}

/** Gives each flight the state of its airport. Flights that come before their airport wait for it; both may come in any order. */
const locate = bolt({
  inputs: {
    flight: { flight: t.int32, origin: t.string, delay: t.int32 },
    airport: { code: t.string, state: t.nullable(t.string) },
  },
  emits: { state: t.nullable(t.string), flight: t.int32, delay: t.int32 },
  prepare(_context, saved?: { states: Map<string, string | null>; waiting: Map<string, Departure[]> }) {
    const { states, waiting } = saved ?? {
      states: new Map<string, string | null>(),
      waiting: new Map<string, Departure[]>(),
    };
    return {
      process: {
        flight({ flight, origin, delay }, out) {
          const state = states.get(origin);
          if (state !== undefined) {
            out.emit({ state, flight, delay });
            return;
          }
          const others = waiting.get(origin);
          if (others === undefined) waiting.set(origin, [{ flight, delay }]);
          else others.push({ flight, delay });
        },
        airport({ code, state }, out) {
          states.set(code, state);
          for (const departure of waiting.get(code) ?? []) out.emit({ state, ...departure });
          waiting.delete(code);
        },
      },
      save: () => ({ states, waiting }),
    };
  },
});

/** What is known of a state: sets, not counts, of what may come twice, so that a replayed row changes nothing. */
interface Tally {
  readonly airports: Set<string>;
  readonly flights: Set<number>;
  late: number;
  delay: number;
  worst: number | null;
}

const result = {
  state: t.nullable(t.string),
  airports: t.int32,
  flights: t.int32,
  late: t.int32,
  meanDelay: t.nullable(t.float64),
  worstDelay: t.nullable(t.int32),
};

type Result = RowOf<typeof result>;

/** The aggregate by state. It has no windows and no end, so once a second it says all that it knows. */
const sumUp = bolt({
  inputs: {
    departure: { state: t.nullable(t.string), flight: t.int32, delay: t.int32 },
    airport: { code: t.string, state: t.nullable(t.string) },
  },
  emits: result,
  every: '1s',
  prepare(_context, saved?: Map<string | null, Tally>) {
    const tallies = saved ?? new Map<string | null, Tally>();
    const tallyOf = (state: string | null): Tally => {
      let tally = tallies.get(state);
      if (tally === undefined) {
        tally = { airports: new Set(), flights: new Set(), late: 0, delay: 0, worst: null };
        tallies.set(state, tally);
      }
      return tally;
    };
    const tell = (out: { emit(row: Result): void }): void => {
      for (const [state, { airports, flights, late, delay, worst }] of tallies) {
        const meanDelay = flights.size === 0 ? null : delay / flights.size;
        const counts = { airports: airports.size, flights: flights.size, late };
        out.emit({ state, ...counts, meanDelay, worstDelay: worst });
      }
    };
    return {
      process: {
        departure({ state, flight, delay }) {
          const tally = tallyOf(state);
          if (tally.flights.has(flight)) return;
          tally.flights.add(flight);
          tally.delay += delay;
          tally.worst = Math.max(tally.worst ?? delay, delay);
          if (delay >= LATE_MINUTES) tally.late++;
        },
        airport({ code, state }) {
          tallyOf(state).airports.add(code);
        },
      },
      tick: tell,
      end: tell,
      save: () => tallies,
    };
  },
});

/** Keeps the newest result of each state, and replaces the file as a whole when it differs: again is as good as once. */
const report = bolt({
  takes: result,
  every: '1s',
  prepare(_context, saved?: Map<string | null, Result>) {
    const results = saved ?? new Map<string | null, Result>();
    let written = '';
    const write = (): void => {
      const all = [...results.values()].sort((a, b) => ((a.state ?? '') < (b.state ?? '') ? -1 : 1));
      const text = JSON.stringify(all, null, 1);
      if (text === written) return;
      written = text;
      const path = process.env['FLIGHTS_RESULT'];
      if (path !== undefined) {
        writeFileSync(`${path}.new`, text);
        renameSync(`${path}.new`, path);
      }
      const flights = all.reduce((sum, one) => sum + one.flights, 0);
      const late = all.reduce((sum, one) => sum + one.late, 0);
      console.log(`${flights} flights from ${all.length} states, ${late} of them late`);
    };
    return {
      process(row) {
        results.set(row.state, row);
      },
      tick: write,
      end: write,
      save: () => results,
    };
  },
});

export default topology('flights', (b) => {
  const flown = b.spout('flights', flights, { parallelism: 2 });
  const known = b.spout('airports', airports);
  const located = b
    .bolt('locate', locate, { parallelism: 2, tasks: 4 })
    .on.flight.fields(flown, ['origin'])
    .on.airport.fields(known, ['code']);
  const sums = b
    .bolt('sum-up', sumUp, { parallelism: 2, tasks: 4 })
    .on.departure.fields(located, ['state'])
    .on.airport.fields(known, ['state']);
  b.bolt('report', report).global(sums);
});
