/** `isobar logs`: finds the logs that are meant, and prints them. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ClusterClient, componentNotFound } from '../api/index.js';
import { closestName, hasCode, IsobarError, parseDurationMs, systemClock } from '../base/index.js';
import {
  daemonLogs,
  ENTRY_LEVELS,
  type LogEntry,
  type LogFilter,
  type LogPlace,
  LogReader,
  topologyWithLogs,
  workerLogs,
} from '../engines/index.js';
import { isDaemonAway } from './cluster-caller.js';
import type { LogsFlags } from './observe-program.js';

const FOLLOW_MS = 250;

export interface WantedLogs {
  readonly name: string | undefined;
  readonly component: string | undefined;
  readonly flags: LogsFlags;
  /** Of the cluster. */
  readonly directory: string;
}

/**
 * Prints entries until there are no more, or with `--follow` until `signal` is aborted.
 *
 * @throws USAGE, TOPOLOGY_NOT_ALIVE, COMPONENT_NOT_FOUND, and why the daemon does not answer where it has to
 */
export async function printLogs(
  client: ClusterClient,
  wanted: WantedLogs,
  print: (entry: LogEntry) => void,
  signal: AbortSignal,
): Promise<void> {
  const { flags, component } = wanted;
  const lines = readLines(flags.lines);
  const filter = filterOf(component, flags);
  const places = await placesOf(client, wanted);
  const reader = new LogReader(places, filter, () => systemClock.wallMs());
  for (const entry of lines === undefined ? reader.stored() : lastOf(reader.stored(), lines)) {
    if (signal.aborted) return;
    print(entry);
  }
  while (flags.follow === true && !signal.aborted) {
    for (const entry of reader.added()) print(entry);
    await pause(FOLLOW_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function placesOf(
  client: ClusterClient,
  { name, component, flags, directory }: WantedLogs,
): Promise<() => readonly LogPlace[]> {
  const { daemon } = flags;
  if (daemon !== undefined) {
    if (name !== undefined) throw usage('--daemon', daemon, 'a daemon or a topology, not both');
    return () => daemonNamed(directory, daemon);
  }
  if (name === undefined) {
    const expected = 'the name of a topology, or --daemon';
    throw new IsobarError('USAGE', 'isobar logs was told no topology', { expected });
  }
  const id = await topologyIdOf(client, name, component, directory);
  return () => workerLogs(directory, id);
}

/** Logs outlive daemons and topologies: where Nimbus does not know, the files do. */
async function topologyIdOf(
  client: ClusterClient,
  name: string,
  component: string | undefined,
  directory: string,
): Promise<string> {
  try {
    const { status } = await client.ask('describe', name);
    const components = status.components.map((one) => one.component);
    if (component !== undefined && !components.includes(component))
      throw componentNotFound(component, components);
    return status.id;
  } catch (error) {
    const found =
      hasCode(error, 'TOPOLOGY_NOT_ALIVE') || isDaemonAway(error)
        ? topologyWithLogs(directory, name)
        : undefined;
    if (found === undefined) throw error;
    return found;
  }
}

function daemonNamed(directory: string, id: string): readonly LogPlace[] {
  const places = daemonLogs(directory);
  const found = places.filter(({ name }) => name === id);
  if (found.length > 0) return found;
  const names = places.map(({ name }) => name);
  const closest = closestName(id, names);
  const hint = closest === undefined ? '' : `; did you mean "${closest}"?`;
  throw new IsobarError('USAGE', `--daemon: there is no daemon "${id}"${hint}`, {
    expected: names.length === 0 ? `a cluster in ${directory}` : `one of: ${names.join(', ')}`,
    where: '--daemon',
  });
}

function filterOf(component: string | undefined, { since, level }: LogsFlags): LogFilter {
  const sinceMs = since === undefined ? undefined : parseDurationMs(since);
  if (since !== undefined && sinceMs === undefined)
    throw usage('--since', since, 'a duration such as 30s, 10m or 2h');
  const least = ENTRY_LEVELS.find((one) => one === level);
  return {
    ...(component === undefined ? {} : { component }),
    ...(sinceMs === undefined ? {} : { sinceMs: systemClock.wallMs() - sinceMs }),
    ...(least === undefined ? {} : { level: least }),
  };
}

function readLines(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (text.trim() !== '' && Number.isInteger(count) && count >= 0) return count;
  throw usage('--lines', text, 'a whole number from 0');
}

function lastOf<T>(all: Iterable<T>, count: number): readonly T[] {
  let last: T[] = [];
  for (const one of all) {
    last.push(one);
    if (last.length > 2 * count + 1000) last = last.slice(-count);
  }
  return count === 0 ? [] : last.slice(-count);
}

function usage(where: string, found: string, expected: string): IsobarError {
  return new IsobarError('USAGE', `${where} ${found} is not understood`, { expected, found, where });
}
