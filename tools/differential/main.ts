/**
 * `npm run -s differential -- KIND --peer DIR`: random cases to Storm's or Flink's own scheduler classes behind a line protocol and to
 * this one. The peer runs each case under several renamings; only what is the same in all of them is compared.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { z } from 'zod';
import type { VectorCase } from '../vectors/read-cases.js';
import { runCase, type Verdict } from '../vectors/run-case.js';
import { generated } from './generated.js';
import { freshMultitenant, laterMultitenant } from './multitenant-cases.js';
import { type Answer, Peer } from './peer.js';
import { type CaseInput, freshInputs, laterInputs } from './resource-cases.js';

/** Kinds whose cases are drawn here and answered by the peer. */
const DRAWN: ReadonlyMap<string, readonly fc.Arbitrary<CaseInput>[]> = new Map([
  ['resource-aware', [freshInputs, laterInputs]],
  ['multitenant', [freshMultitenant, laterMultitenant]],
]);

/** Kinds whose cases the peer makes, with the scheduler that they are for; undefined: their shape says it. */
const GENERATED: ReadonlyMap<string, string | undefined> = new Map([
  ['even', 'even'],
  ['default', 'default'],
  ['isolation', 'isolation'],
  ['executors', undefined],
  ['sharing-balanced', undefined],
  ['sharing-local', undefined],
  ['matching', undefined],
  ['adaptive', undefined],
  ['rm', undefined],
  ['timing', undefined],
]);

const USAGE = `npm run -s differential -- KIND --peer DIRECTORY [options]

  KIND               of Storm's peer: ${[...DRAWN.keys()].join(', ')}, even, default, isolation, executors
                     of Flink's peer: sharing-balanced, sharing-local, matching, adaptive, rm, timing
  --peer DIRECTORY   holds run.sh, which answers cases after "serve" and makes some after "generate"
  --cases N          random cases (2000)
  --seed N           of the cases (1)
  --variants N       runs of each drawn case under other names: many show what hash order decides (40)
  --save FILE        writes the cases that disagree there, as vectors
  --help             this text

  Exit code 0: all agree; 1: not all; 2: the command line says something else; 3: the peer cannot be used.`;

interface Options {
  readonly kind: string;
  readonly peer: string;
  readonly count: number;
  readonly seed: number;
  readonly variants: number;
  readonly save: string | undefined;
}

async function main(options: Options): Promise<number> {
  const counts = { agree: 0, disagree: 0, undecided: 0 };
  const disagreeing: unknown[] = [];
  for await (const test of DRAWN.has(options.kind) ? drawnCases(options) : generatedCases(options)) {
    if (test === undefined) {
      counts.undecided++;
      continue;
    }
    const verdict = await judged(test, options);
    if (verdict === undefined) {
      counts.undecided++;
      continue;
    }
    if (verdict.kind === 'passed') {
      counts.agree++;
      continue;
    }
    counts.disagree++;
    disagreeing.push({
      name: test.name,
      scheduler: test.scheduler,
      input: test.input,
      expected: test.expected,
    });
    const details =
      verdict.kind === 'failed'
        ? verdict.disagreements.map(
            ({ what, expected, actual }) => `${what}: the peer has ${expected}, here it is ${actual}`,
          )
        : [`not supported: ${verdict.what}`];
    for (const detail of details) console.log(`${test.name} ${detail.slice(0, 1000)}`);
  }
  if (options.save !== undefined) writeFileSync(options.save, JSON.stringify(disagreeing));
  console.log(
    `${counts.agree} agree, ${counts.disagree} disagree, ${counts.undecided} have no answer of the peer's that could be compared`,
  );
  return counts.disagree > 0 ? 1 : 0;
}

/** Runs of a case under other names before a disagreement is believed: few leave facts that hash order decides. */
const SURE_VARIANTS = 200;

/** undefined: the peer is not bound to answer as the reference says. */
async function judged(test: VectorCase, { peer }: Options): Promise<Verdict | undefined> {
  const verdict = runCase(test);
  const { scheduler, input, name } = test;
  if (verdict.kind === 'passed' || scheduler === undefined) return verdict;
  if (scheduler === 'default' && topologiesInNeed(input) > 1) return undefined;
  const sure = new Peer(peer);
  try {
    for await (const answer of sure.ask([{ scheduler, variants: SURE_VARIANTS, input }])) {
      const again = toCase(name, scheduler, input, answer);
      return again === undefined ? undefined : runCase(again);
    }
  } finally {
    sure.stop();
  }
  return verdict;
}

/**
 * How many topologies lack a worker or an executor. The released classes hand free slots to all of them in each step of the default
 * scheduler, so one can take what another just gave up; the reference and the recorded answers place one at a time.
 */
function topologiesInNeed(input: CaseInput): number {
  const { topologies, assignments } = needSchema.parse(input);
  return topologies.filter(({ id, numWorkers, executors }) => {
    const workers = assignments[id] ?? [];
    const placed = workers.reduce((sum, worker) => sum + worker.executors.length, 0);
    return workers.length < numWorkers || placed < executors.length;
  }).length;
}

const needSchema = z.object({
  topologies: z.array(
    z.object({ id: z.string(), numWorkers: z.number().default(1), executors: z.array(z.unknown()) }),
  ),
  assignments: z.record(z.string(), z.array(z.object({ executors: z.array(z.unknown()) }))).default({}),
});

/** Cases that are drawn here, with the peer's facts; undefined: its answers differ between renamings, or it threw. */
async function* drawnCases(options: Options): AsyncGenerator<VectorCase | undefined> {
  const { kind, seed, variants } = options;
  const inputs = draw(options);
  const peer = new Peer(options.peer);
  try {
    let index = 0;
    const requests = inputs.map((input) => ({ scheduler: kind, variants, input }));
    for await (const answer of peer.ask(requests)) {
      yield toCase(`${kind}-${seed}-${index}`, kind, inputs[index]!, answer);
      index++;
    }
  } finally {
    peer.stop();
  }
}

function generatedCases({ kind, peer, seed, count }: Options): AsyncGenerator<VectorCase> {
  return generated(peer, { kind, seed, count, scheduler: GENERATED.get(kind) });
}

/** Cases by turns from each generator of the kind. */
function draw({ kind, count, seed }: Options): readonly CaseInput[] {
  const generators = DRAWN.get(kind) ?? [];
  const drawn = generators.map((one) =>
    fc.sample(one, { seed, numRuns: Math.ceil(count / generators.length) }),
  );
  return Array.from({ length: count }, (_, index) => {
    const list = drawn[index % drawn.length] ?? [];
    return list[Math.floor(index / drawn.length)] ?? {};
  });
}

function toCase(
  name: string,
  scheduler: string,
  input: CaseInput,
  { facts }: Answer,
): VectorCase | undefined {
  if (typeof facts !== 'object' || facts === null) return undefined;
  if (Object.hasOwn(facts, 'mixed') || Object.hasOwn(facts, 'error')) return undefined;
  return { file: '', name, scheduler, input, expected: { ...facts } };
}

/** @throws Error with a sentence for the user. */
function parseOptions(words: readonly string[]): Options | 'help' {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      peer: { type: 'string' },
      cases: { type: 'string', default: '2000' },
      seed: { type: 'string', default: '1' },
      variants: { type: 'string', default: '40' },
      save: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const [kind] = positionals;
  const numbers = [values.cases, values.seed, values.variants].map(Number);
  if (kind === undefined) throw new Error('A kind of case was expected.');
  if (!(DRAWN.has(kind) || GENERATED.has(kind))) throw new Error(`There is no kind of case "${kind}".`);
  if (values.peer === undefined) throw new Error('--peer was expected: the directory of the peer.');
  if (!numbers.every((value) => Number.isSafeInteger(value) && value > 0))
    throw new Error('--cases, --seed and --variants expect whole numbers from 1.');
  const [count = 0, seed = 0, variants = 0] = numbers;
  return { kind, peer: values.peer, count, seed, variants, save: values.save };
}

async function run(words: readonly string[]): Promise<number> {
  let options: Options | 'help';
  try {
    options = parseOptions(words);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  if (options === 'help') {
    console.log(USAGE);
    return 0;
  }
  try {
    return await main(options);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 3;
  }
}

process.exitCode = await run(process.argv.slice(2));
