/**
 * `npm run -s differential -- KIND --peer DIR`: random cases to a scheduler of Storm's behind a line protocol and to this one.
 * The peer runs each case under several renamings; only what is the same in all of them is compared. Exit code 0 only if all agree.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import type { VectorCase } from '../vectors/read-cases.js';
import { runCase } from '../vectors/run-case.js';
import { type Answer, Peer } from './peer.js';
import { type CaseInput, freshInputs, laterInputs } from './resource-cases.js';

const KINDS: ReadonlyMap<string, readonly fc.Arbitrary<CaseInput>[]> = new Map([
  ['resource-aware', [freshInputs, laterInputs]],
]);

const USAGE = `npm run -s differential -- KIND --peer DIRECTORY [options]

  KIND               ${[...KINDS.keys()].join(', ')}
  --peer DIRECTORY   holds run.sh, which answers cases after "serve"
  --count N          random cases (2000)
  --seed N           of the cases (1)
  --variants N       runs of each case under other names (6)
  --save FILE        writes the cases that disagree there, as vectors`;

interface Options {
  readonly kind: string;
  readonly peer: string;
  readonly count: number;
  readonly seed: number;
  readonly variants: number;
  readonly save: string | undefined;
}

async function main(options: Options): Promise<number> {
  const inputs = draw(options);
  const peer = new Peer(options.peer);
  const counts = { agree: 0, disagree: 0, undecided: 0 };
  const disagreeing: unknown[] = [];
  try {
    let index = 0;
    const requests = inputs.map((input) => ({ scheduler: options.kind, variants: options.variants, input }));
    for await (const answer of peer.ask(requests)) {
      const name = `${options.kind}-${options.seed}-${index}`;
      const test = toCase(name, options.kind, inputs[index]!, answer);
      index++;
      if (test === undefined) {
        counts.undecided++;
        continue;
      }
      const verdict = runCase(test);
      if (verdict.kind === 'passed') {
        counts.agree++;
        continue;
      }
      counts.disagree++;
      disagreeing.push({ name, scheduler: options.kind, input: test.input, expected: test.expected });
      const details =
        verdict.kind === 'failed'
          ? verdict.disagreements.map(
              ({ what, expected, actual }) => `${what}: expected ${expected}, came ${actual}`,
            )
          : [`not supported: ${verdict.what}`];
      for (const detail of details) console.log(`${name} ${detail.slice(0, 1000)}`);
    }
  } finally {
    peer.stop();
  }
  if (options.save !== undefined) writeFileSync(options.save, JSON.stringify(disagreeing));
  console.log(
    `${counts.agree} agree, ${counts.disagree} disagree, ${counts.undecided} have no answer of the peer's to compare`,
  );
  return counts.disagree > 0 ? 1 : 0;
}

/** Cases by turns from each generator of the kind. */
function draw({ kind, count, seed }: Options): readonly CaseInput[] {
  const generators = KINDS.get(kind) ?? [];
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

function parseOptions(words: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      peer: { type: 'string' },
      count: { type: 'string', default: '2000' },
      seed: { type: 'string', default: '1' },
      variants: { type: 'string', default: '6' },
      save: { type: 'string' },
    },
  });
  const [kind] = positionals;
  const numbers = [values.count, values.seed, values.variants].map(Number);
  if (kind === undefined || !KINDS.has(kind) || values.peer === undefined) return undefined;
  if (!numbers.every((value) => Number.isInteger(value) && value > 0)) return undefined;
  const [count = 0, seed = 0, variants = 0] = numbers;
  return { kind, peer: values.peer, count, seed, variants, save: values.save };
}

const options = parseOptions(process.argv.slice(2));
if (options === undefined) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  process.exitCode = await main(options);
}
