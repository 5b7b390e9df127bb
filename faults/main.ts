/**
 * `npm run -s faults -- NAME --seed S --rounds N --rows R --json`: the accountant.
 *
 * NAME is one of the faults; `all` takes those of `isobar run` in turn, `dev` those of a cluster of `isobar dev`, and
 * `rebalance-kill` those in the middle of planned moves; `zookeeper` takes those over an ensemble of three servers. `rebalance` moves tasks every second for `--seconds` and harms nobody; the
 * rounds of balance are in `balance-round.ts`.
 * Prints one line a round and a summary; exits with 1 when a row was lost, a round hung, or what was healthy was restarted.
 */
import { parseArgs } from 'node:util';
import { BALANCE_FAULTS, type BalanceFault, type BalanceResult, runBalanceRound } from './balance-round.js';
import { DEV_FAULTS, type DevFault, runDevRound } from './dev-round.js';
import { MOVE_HARMS, type MoveFault } from './move-harms.js';
import { type MoveFigures, runMoveRound } from './rebalance-round.js';
import { FAULTS, runRound, type Fault, type RoundResult } from './round.js';
import { runZooKeeperRound, ZOOKEEPER_FAULTS, type ZooKeeperFault } from './zookeeper-round.js';

type Kind = Fault | DevFault | BalanceFault | MoveFault | ZooKeeperFault;

const MOVE_FAULTS: readonly MoveFault[] = ['rebalance', ...MOVE_HARMS];
const ALL: readonly Kind[] = [
  ...FAULTS,
  ...DEV_FAULTS,
  ...BALANCE_FAULTS,
  ...MOVE_FAULTS,
  ...ZOOKEEPER_FAULTS,
];

const USAGE = `npm run -s faults -- NAME [options]

  all             in turn: ${listed(FAULTS.filter((fault) => fault !== 'none'))}
  dev             in turn: ${listed(DEV_FAULTS)}
  rebalance-kill  in turn: ${listed(MOVE_HARMS)}
  zookeeper       in turn: ${listed(ZOOKEEPER_FAULTS)}
  rebalance       tasks move every second, and nobody is harmed
  ${listed(BALANCE_FAULTS)}
                  three supervisors that come one after another, by real processes
  or one of those that are named above, or none

  --seed S        of the first round; each one after it has one more (1)
  --rounds N      (1)
  --rows R        rows of a round of isobar run or isobar dev (150000)
  --seconds S     of a round with rebalances (60)
  --json          one JSON line a round and a summary
  --help          this text`;

function listed(names: readonly string[]): string {
  return names.join(', ');
}

function usage(message: string): never {
  console.error(`${message}\n\n${USAGE}`);
  process.exit(2);
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    usage(`--${name} needs a whole number, found ${JSON.stringify(text)}`);
  return value;
}

function kindsOf(name: string): readonly Kind[] {
  if (name === 'all') return FAULTS.filter((fault) => fault !== 'none');
  if (name === 'dev') return DEV_FAULTS;
  if (name === 'rebalance-kill') return MOVE_HARMS;
  if (name === 'zookeeper') return ZOOKEEPER_FAULTS;
  return ALL.filter((fault) => fault === name);
}

function isDevFault(kind: Kind): kind is DevFault {
  return DEV_FAULTS.some((fault) => fault === kind);
}

function isBalanceFault(kind: Kind): kind is BalanceFault {
  return BALANCE_FAULTS.some((fault) => fault === kind);
}

function isMoveFault(kind: Kind): kind is MoveFault {
  return MOVE_FAULTS.some((fault) => fault === kind);
}

function isZooKeeperFault(kind: Kind): kind is ZooKeeperFault {
  return ZOOKEEPER_FAULTS.some((fault) => fault === kind);
}

interface Amounts {
  readonly rows: number;
  readonly seconds: number;
}

function runKind(kind: Kind, round: number, seed: number, { rows, seconds }: Amounts): Promise<RoundResult> {
  if (isBalanceFault(kind)) return runBalanceRound(round, seed, kind);
  if (isZooKeeperFault(kind)) return runZooKeeperRound(round, seed, kind);
  if (isMoveFault(kind)) return runMoveRound({ round, seed, fault: kind, seconds });
  return isDevFault(kind) ? runDevRound(round, seed, kind, rows) : runRound(round, seed, kind, rows);
}

/** What only some kinds of rounds say. */
function extras(result: RoundResult): string {
  if (result.moves !== undefined) return moveExtras(result.moves);
  if (!('spreads' in result)) return '';
  const { spreads, how, balancedAfterMs, movesAtReturn, longestGapMs } = result as BalanceResult;
  const placed = Object.entries(spreads).map(([when, spread]) => `${when} ${spread.join('/')}`);
  const after =
    balancedAfterMs === null ? '' : `, ${how}, balanced ${balancedAfterMs} ms after the third supervisor`;
  const back =
    movesAtReturn === null ? '' : `, ${movesAtReturn} moves at its return, longest gap ${longestGapMs} ms`;
  return `\n  ${placed.join(', ')}${after}${back}`;
}

function moveExtras(moves: MoveFigures): string {
  const { rebalances, outOfOrder, aliveTwice, stateLost, needlessStops, rowsPerSecond } = moves;
  const ms = (value: number | null): string => (value === null ? '–' : `${Math.round(value)} ms`);
  return (
    `\n  ${outOfOrder} out of order, ${aliveTwice} alive twice, ${stateLost} times state lost; ` +
    `${rebalances} rebalances, ${moves.moves} tasks moved, ${needlessStops} stopped needlessly; pause ${ms(moves.pauseMs)}, ` +
    `moved tasks stood still for ${ms(moves.standstillMsMedian)} (median), ${ms(moves.standstillMsMax)} (most); ${rowsPerSecond} rows/s`
  );
}

function parseWords() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        seed: { type: 'string', default: '1' },
        rounds: { type: 'string', default: '1' },
        rows: { type: 'string', default: '150000' },
        seconds: { type: 'string', default: '60' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    usage(error instanceof Error ? error.message : String(error));
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseWords();
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const [name = 'all'] = positionals;
  const kinds = kindsOf(name);
  if (kinds.length === 0) usage(`unknown fault ${JSON.stringify(name)}`);
  const seed = wholeNumber('seed', values.seed);
  const rounds = wholeNumber('rounds', values.rounds);
  const rows = wholeNumber('rows', values.rows);
  const seconds = wholeNumber('seconds', values.seconds);
  const results: RoundResult[] = [];
  for (let round = 0; round < rounds; round++) {
    const kind = kinds[round % kinds.length]!;
    const result = await runKind(kind, round, seed + round, { rows, seconds });
    results.push(result);
    if (values.json) console.log(JSON.stringify(result));
    else {
      console.log(
        `round ${round} seed ${result.seed} ${result.fault}: ${result.rows} rows, ${result.lost} lost, ${result.duplicates} duplicates, ` +
          `recovery ${result.recoveryMs === null ? '–' : `${Math.round(result.recoveryMs)} ms`}, ${result.needlessRestarts} needless restarts${extras(result)}` +
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
