/** `isobar tap`: asks for live rows again and again until there were enough. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterClient, TapAnswer, TapRow } from '../api/index.js';
import { parseDurationMs } from '../base/index.js';
import { usage } from './cluster-options.js';
import type { TapFlags } from './observe-program.js';

/** Length of one look: long enough to be cheap, short enough to be live. */
const LOOK_MS = 1000;
/** The first one is short, so that a busy component shows something at once. */
const FIRST_LOOK_MS = 200;
const MAX_ROWS = 100_000;
/** Rows of one look. */
const MAX_ROWS_OF_LOOK = 200;
/** A look that nobody could answer was over at once. */
const UNHEARD_PAUSE_MS = 500;

export interface WantedRows {
  readonly name: string;
  readonly component: string;
  readonly flags: TapFlags;
}

/**
 * Resolves to the number of rows printed.
 *
 * @param tell called with what could not be heard, when that changes
 * @throws USAGE, TOPOLOGY_NOT_ALIVE, COMPONENT_NOT_FOUND
 */
export async function printRows(
  client: ClusterClient,
  { name, component, flags }: WantedRows,
  print: (row: TapRow) => void,
  tell: (unheard: readonly string[]) => void,
  signal: AbortSignal,
): Promise<number> {
  const wanted = readCount(flags.rows);
  const where = readWhere(flags.where);
  const forMs = readFor(flags.for);
  const endMs = performance.now() + forMs;
  let printed = 0;
  let told = '';
  for (let look = 0; printed < wanted && !signal.aborted; look++) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) break;
    const windowMs = Math.max(50, Math.min(look === 0 ? FIRST_LOOK_MS : LOOK_MS, leftMs));
    const limit = Math.min(wanted - printed, MAX_ROWS_OF_LOOK);
    const question = { name, component, taken: flags.taken === true, where, limit, windowMs };
    const { rows, unheard }: TapAnswer = await client.ask('tap', question);
    // Each thread may have given as many as were wanted of all.
    for (const row of rows.slice(0, limit)) print(row);
    printed += Math.min(rows.length, limit);
    const text = unheard.join('; ');
    if (text !== told && unheard.length > 0) tell(unheard);
    told = text;
    if (unheard.length > 0 && rows.length === 0)
      await pause(UNHEARD_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
  return printed;
}

function readCount(text = '20'): number {
  const count = Number(text);
  if (text.trim() !== '' && Number.isInteger(count) && count >= 1 && count <= MAX_ROWS) return count;
  throw usage('--rows', text, `a whole number from 1 to ${MAX_ROWS}`);
}

function readWhere(text: string | undefined): { readonly field: string; readonly value: string } | null {
  if (text === undefined) return null;
  const at = text.indexOf('=');
  if (at > 0) return { field: text.slice(0, at), value: text.slice(at + 1) };
  throw usage('--where', text, 'field=value, such as word=storm');
}

function readFor(text: string | undefined): number {
  if (text === undefined) return Infinity;
  const forMs = parseDurationMs(text);
  if (forMs !== undefined && forMs > 0) return forMs;
  throw usage('--for', text, 'a duration such as 10s or 2m');
}
