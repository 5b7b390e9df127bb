/**
 * Cases that a peer makes itself, answered by its own classes and checked under renamings: `run.sh generate` prints a case a line, or
 * a JSON array with a case a line.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { parseCases, type VectorCase } from '../vectors/read-cases.js';

export interface GeneratedOptions {
  readonly kind: string;
  readonly seed: number;
  readonly count: number;
  /** The scheduler that the cases are for; undefined: their shape says it. */
  readonly scheduler: string | undefined;
}

/** @throws Error if the peer fails or prints something else than cases. */
export async function* generated(
  directory: string,
  { kind, seed, count, scheduler }: GeneratedOptions,
): AsyncGenerator<VectorCase> {
  const words = ['generate', '--kind', kind, '--seed', String(seed), '--count', String(count)];
  const child = spawn(join(directory, 'run.sh'), words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines = createInterface({ input: child.stdout });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4000)));
  const ended = new Promise<number | null>((resolve) => {
    child.on('error', ({ message }) => {
      errors += message;
      lines.close();
      resolve(null);
    });
    child.on('close', resolve);
  });
  try {
    for await (const line of lines) {
      const text = line.trim().replace(/,$/, '');
      if (!text.startsWith('{')) continue;
      const read = parseCases('', `[${text}]`);
      if ('problem' in read) throw new Error(read.problem);
      for (const one of read.cases) yield scheduler === undefined ? one : { ...one, scheduler };
    }
    if ((await ended) !== 0) throw new Error(`The peer could not make cases.\n${errors}`);
  } finally {
    child.kill();
  }
}
