/**
 * Operates the topology of flights as one would for months, only quicker: starts daemons, submits it, rebalances it while it reads,
 * compares its result with that of a plain loop over the same files, kills it and stops the daemons. Exits with 0 if all of it
 * held, and prints what it does.
 *
 *     node examples/flights/operate.mjs
 *
 * The cluster is one of its own in a directory for temporary files. Nothing here sleeps for a time that should suffice: each wait
 * looks for a condition and fails when it has not come in two minutes.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const NAME = 'flights';
const LATE_MINUTES = 15;
/** Flights that have been read when the rebalance is asked for. */
const READ_FIRST = 5_000;
const WAIT_MS = 120_000;
const POLL_MS = 100;

const { resolve } = createRequire(import.meta.url);
const manifest = resolve('isobar/package.json');
const COMMAND = join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin.isobar);
const APP = fileURLToPath(new URL('app.ts', import.meta.url));

const home = mkdtempSync(join(tmpdir(), 'isobar-flights-'));
const directory = join(home, 'dev');
const resultPath = join(home, 'result.json');

let isInterrupted = false;
process.once('SIGINT', () => (isInterrupted = true));

/** Runs a command of Isobar's on the cluster, which must succeed, and returns its answer. */
async function isobar(...words) {
  const child = spawn(process.execPath, [COMMAND, ...words, '--json', '--directory', directory], {
    env: { ...process.env, FLIGHTS_RESULT: resultPath },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  const code = await new Promise((done) => child.on('close', done));
  if (code !== 0) throw new Error(`isobar ${words.join(' ')} ended with ${code}: ${text}`);
  return JSON.parse(text.trim().split('\n').at(-1));
}

/** The first value of `look` that is neither undefined nor false. */
async function until(what, look) {
  const endMs = performance.now() + WAIT_MS;
  for (;;) {
    if (isInterrupted) throw new Error('interrupted');
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > endMs) throw new Error(`waited in vain: ${what}`);
    await pause(POLL_MS);
  }
}

/** What the topology should find, by one loop over each file and no topology. */
function byLoop() {
  const records = (file) =>
    readFileSync(resolve(`vega-datasets/data/${file}`), 'utf8')
      .trimEnd()
      .split('\n')
      .slice(1);
  const stateOf = new Map();
  const results = new Map();
  for (const line of records('airports.csv')) {
    const [, code, name] = /^([^,]*),.*,([^,]*)(?:,[^,]*){3}$/.exec(line);
    const state = name === 'NA' ? null : name;
    stateOf.set(code, state);
    const one = results.get(state) ?? { state, airports: 0, flights: 0, late: 0, sum: 0, worstDelay: null };
    one.airports++;
    results.set(state, one);
  }
  for (const line of records('flights-3m.csv')) {
    const [, delay, , origin] = line.split(',');
    const one = results.get(stateOf.get(origin));
    one.flights++;
    one.sum += Number(delay);
    if (Number(delay) >= LATE_MINUTES) one.late++;
    if (one.worstDelay === null || Number(delay) > one.worstDelay) one.worstDelay = Number(delay);
  }
  return [...results.values()].map(({ sum, ...one }) => ({
    ...one,
    meanDelay: one.flights === 0 ? null : sum / one.flights,
  }));
}

const flightsIn = (results) => results.reduce((sum, { flights }) => sum + flights, 0);
const airportsIn = (results) => results.reduce((sum, { airports }) => sum + airports, 0);

/** One line for each state, in one order of fields and lines, so that equal results are equal texts. */
const asText = (results) =>
  results
    .map(({ state, airports, flights, late, meanDelay, worstDelay }) =>
      JSON.stringify([state, airports, flights, late, meanDelay, worstDelay]),
    )
    .sort()
    .join('\n');

function readResult() {
  try {
    return JSON.parse(readFileSync(resultPath, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

async function operate() {
  const expected = byLoop();
  const total = flightsIn(expected);

  await isobar('dev', '--supervisors', '2', '--set', 'metrics.port=0');
  await isobar('submit', APP, '--workers', '2');
  console.log('submitted on two workers');
  await until(`${READ_FIRST} flights`, () => flightsIn(readResult()) >= READ_FIRST);

  const { movedTasks } = (await isobar('rebalance', NAME, '-n', '4', '-e', 'locate=4', '-e', 'sum-up=4'))
    .changes;
  const moved = await until('four workers', async () => {
    const { workers, isRebalancing, lastMove, problems } = await isobar('describe', NAME);
    return !isRebalancing && workers.actual === 4 && { lastMove, problems };
  });
  const during = flightsIn(readResult());
  if (movedTasks === 0) throw new Error('the rebalance has moved nothing');
  if (moved.lastMove?.step !== 'done') throw new Error(`the move is ${JSON.stringify(moved.lastMove)}`);
  if (during >= total) throw new Error('all flights were read before the rebalance ended; it proves nothing');
  console.log(
    `rebalanced to four workers: ${moved.lastMove.tasks} tasks moved, ${during} of ${total} flights read by then`,
  );

  const result = await until('all flights', () => {
    const now = readResult();
    return flightsIn(now) >= total && airportsIn(now) >= airportsIn(expected) && now;
  });
  if (asText(result) !== asText(expected)) {
    throw new Error(`the results differ.\nthe loop:\n${asText(expected)}\nthe topology:\n${asText(result)}`);
  }
  const [unknown] = result.filter(({ state }) => state === null);
  console.log(`${total} flights from ${result.length} states: equal to the plain loop`);
  console.log(
    `without a state: ${unknown.airports} airports, ${unknown.flights} flights, mean delay ${unknown.meanDelay}`,
  );

  await isobar('kill', NAME, '-w', '0');
  await until('the end of the topology', async () => (await isobar('list')).topologies.length === 0);
  console.log('killed');
}

try {
  await operate();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
try {
  await isobar('dev', 'stop');
  rmSync(home, { recursive: true, force: true });
} catch (error) {
  console.error(`${home} is left: ${error.message}`);
  process.exitCode = 1;
}
