/** `isobar events`: asks for what has happened, and again for what has changed since. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterClient, ClusterEvent } from '../api/index.js';
import { IsobarError, parseDurationMs, systemClock } from '../base/index.js';
import type { EventsFlags } from './observe-program.js';

const FOLLOW_MS = 1000;

/** Prints events until there are no more, or with `--follow` until `signal` is aborted. @throws USAGE, TOPOLOGY_NOT_ALIVE */
export async function printEvents(
  client: ClusterClient,
  { name, flags }: { readonly name: string | undefined; readonly flags: EventsFlags },
  print: (event: ClusterEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const lines = readLines(flags.lines);
  const question = { name: name ?? null, sinceMs: sinceMs(flags.since) };
  const first = await client.ask('events', { ...question, after: null });
  const skipped = lines === undefined ? 0 : Math.max(0, first.events.length - lines);
  for (const event of first.events.slice(skipped)) print(event);
  let { sequence } = first;
  while (flags.follow === true && !signal.aborted) {
    const more = await client.ask('events', { ...question, after: sequence });
    for (const event of more.events) print(event);
    ({ sequence } = more);
    await pause(FOLLOW_MS, undefined, { signal }).catch(() => undefined);
  }
}

function sinceMs(since: string | undefined): number | null {
  if (since === undefined) return null;
  const ms = parseDurationMs(since);
  if (ms !== undefined) return systemClock.wallMs() - ms;
  throw usage('--since', since, 'a duration such as 30s, 10m or 2h');
}

function readLines(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (text.trim() !== '' && Number.isInteger(count) && count >= 0) return count;
  throw usage('--lines', text, 'a whole number from 0');
}

function usage(where: string, found: string, expected: string): IsobarError {
  return new IsobarError('USAGE', `${where}: ${found} is not understood`, { expected, found, where });
}
