/**
 * `npm run -s faults -- NAME --seed S --rounds N --rows R --json`: the accountant.
 *
 * NAME is one of the faults, `all` to take those of `isobar run` in turn, or `dev` for those of a cluster of `isobar dev`.
 * Prints one line a round and a summary; exits with 1 when a row was lost, a round hung, or a healthy worker was restarted.
 */
import { parseArgs } from 'node:util';
import { DEV_FAULTS, type DevFault, runDevRound } from './dev-round.js';
import { FAULTS, runRound, type Fault, type RoundResult } from './round.js';

function usage(message: string): never {
  console.error(
    `${message}\nusage: npm run -s faults -- ${[...FAULTS, 'all', ...DEV_FAULTS, 'dev'].join('|')} [--seed S] [--rounds N] [--rows R] [--json]`,
  );
  process.exit(2);
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    usage(`--${name} needs a whole number, found ${JSON.stringify(text)}`);
  return value;
}

function kindsOf(name: string): readonly (Fault | DevFault)[] {
  if (name === 'all') return FAULTS.filter((fault) => fault !== 'none');
  if (name === 'dev') return DEV_FAULTS;
  return [...FAULTS, ...DEV_FAULTS].filter((fault) => fault === name);
}

function isDevFault(kind: Fault | DevFault): kind is DevFault {
  return DEV_FAULTS.some((fault) => fault === kind);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string', default: '1' },
      rounds: { type: 'string', default: '1' },
      rows: { type: 'string', default: '150000' },
      json: { type: 'boolean', default: false },
    },
  });
  const [name = 'all'] = positionals;
  const kinds = kindsOf(name);
  if (kinds.length === 0) usage(`unknown fault ${JSON.stringify(name)}`);
  const seed = wholeNumber('seed', values.seed);
  const rounds = wholeNumber('rounds', values.rounds);
  const rows = wholeNumber('rows', values.rows);
  const results: RoundResult[] = [];
  for (let round = 0; round < rounds; round++) {
    const kind = kinds[round % kinds.length]!;
    const result = isDevFault(kind)
      ? await runDevRound(round, seed + round, kind, rows)
      : await runRound(round, seed + round, kind, rows);
    results.push(result);
    if (values.json) console.log(JSON.stringify(result));
    else {
      console.log(
        `round ${round} seed ${result.seed} ${result.fault}: ${result.rows} rows, ${result.lost} lost, ${result.duplicates} duplicates, ` +
          `recovery ${result.recoveryMs === null ? '–' : `${Math.round(result.recoveryMs)} ms`}, ${result.needlessRestarts} needless restarts` +
          (result.problem === null ? '' : `\n  PROBLEM: ${result.problem}`),
      );
    }
  }
  const recoveries = results
    .flatMap(({ recoveryMs }) => (recoveryMs === null ? [] : [recoveryMs]))
    .sort((a, b) => a - b);
  const sum = (field: 'rows' | 'lost' | 'duplicates' | 'needlessRestarts' | 'deadLetters'): number =>
    results.reduce((total, result) => total + result[field], 0);
  const summary = {
    summary: true,
    rounds: results.length,
    rows: sum('rows'),
    lost: sum('lost'),
    duplicates: sum('duplicates'),
    deadLetters: sum('deadLetters'),
    needlessRestarts: sum('needlessRestarts'),
    recoveryMsMedian: recoveries.length === 0 ? null : recoveries[Math.floor(recoveries.length / 2)]!,
    recoveryMsMax: recoveries.at(-1) ?? null,
    problems: results.filter(({ problem }) => problem !== null).length,
  };
  console.log(values.json ? JSON.stringify(summary) : `summary: ${JSON.stringify(summary)}`);
  process.exit(summary.problems > 0 ? 1 : 0);
}

await main();
