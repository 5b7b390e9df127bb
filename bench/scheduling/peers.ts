/**
 * The peers' own benches, run case by case in turn with ours: Storm's and Flink's scheduler classes behind `run.sh bench`, which
 * prints one JSON line a measurement with `medianCpuMs`. A directory says by its `pom.xml` whose classes it runs.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { PeerRow } from './case.js';

export type PeerLine = Readonly<Record<string, unknown>>;

export class Peers {
  readonly #directories = new Map<PeerRow['peer'], string>();
  /** Lines of Flink's cases, which measure several strategies at once. */
  readonly #flinkLines = new Map<string, readonly PeerLine[]>();
  readonly #isQuick: boolean;

  /** @throws Error with a sentence for the user if a directory holds no peer. */
  constructor(directories: readonly string[], isQuick: boolean) {
    this.#isQuick = isQuick;
    for (const directory of directories) this.#directories.set(peerIn(directory), directory);
    if (directories.length > 0 && spawnSync('java', ['-version']).error !== undefined) {
      console.error('Java is not there: the peers are left out, and so are the ratios to them.');
      this.#directories.clear();
    }
  }

  /** The peer's line for a row; undefined if its directory was not given. @throws Error if its bench fails or lacks the row. */
  async measure(row: PeerRow, dataFile: string | undefined): Promise<PeerLine | undefined> {
    const directory = this.#directories.get(row.peer);
    if (directory === undefined) return undefined;
    const lines =
      row.peer === 'storm'
        ? await this.#storm(directory, row.label, dataFile)
        : await this.#flink(directory, row.run);
    const found = lines.find((line) =>
      row.peer === 'storm' ? true : line['case'] === row.case && line['strategy'] === row.strategy,
    );
    if (found === undefined) throw new Error(`The peer in ${directory} has no row ${JSON.stringify(row)}.`);
    return found;
  }

  #storm(directory: string, label: string, dataFile: string | undefined): Promise<readonly PeerLine[]> {
    const effort = this.#isQuick ? ['--runs', '1', '--warmup', '0'] : [];
    const subject = dataFile === undefined ? ['--synthetic'] : [dataFile];
    return runBench(directory, [...subject, ...effort, '--only', label]);
  }

  async #flink(directory: string, run: string): Promise<readonly PeerLine[]> {
    const known = this.#flinkLines.get(run);
    if (known !== undefined) return known;
    const lines = await runBench(directory, [run]);
    this.#flinkLines.set(run, lines);
    return lines;
  }
}

function peerIn(directory: string): PeerRow['peer'] {
  const pom = join(directory, 'pom.xml');
  const text = existsSync(pom) ? readFileSync(pom, 'utf8') : '';
  if (text.includes('org.apache.storm')) return 'storm';
  if (text.includes('org.apache.flink')) return 'flink';
  throw new Error(
    `--peer expects a directory with run.sh and the pom.xml of Storm's or Flink's classes; ${directory} has none.`,
  );
}

async function runBench(directory: string, words: readonly string[]): Promise<readonly PeerLine[]> {
  const child = spawn(join(directory, 'run.sh'), ['bench', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = (): boolean => child.kill();
  process.once('exit', kill);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4000)));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  process.off('exit', kill);
  if (code !== 0)
    throw new Error(`The bench in ${dirname(join(directory, 'run.sh'))} ended with ${code}.\n${errors}`);
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as PeerLine);
}
