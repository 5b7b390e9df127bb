/** What the commands that talk to Nimbus were asked for, checked before anything is sent. Pure. */
import type { RebalanceRequest, SettingValue } from '../api/index.js';
import { IsobarError, parseDurationMs } from '../base/index.js';
import { eachRepeatedKey } from './repeated-keys.js';

/** What every such command takes. */
export interface ClusterFlags {
  readonly directory?: string;
  readonly json?: boolean;
}

export interface SubmitFlags extends ClusterFlags {
  readonly workers?: string;
  readonly set?: readonly string[];
  readonly check?: boolean;
  readonly inactive?: boolean;
}

export interface KillFlags extends ClusterFlags {
  readonly wait?: string;
}

export interface ConfigFlags extends ClusterFlags {
  readonly changed?: boolean;
  readonly match?: string;
}

export interface RebalanceFlags extends ClusterFlags {
  readonly wait?: string;
  readonly workers?: string;
  readonly executors?: readonly string[];
  readonly resources?: string;
  readonly fromScratch?: boolean;
  readonly preview?: boolean;
}

/** Nimbus takes no longer one. */
const MAX_WAIT_MS = 366 * 86_400_000;

/**
 * A wait as people write it: seconds, or a duration such as `500ms` or `2m`. undefined: it was not given.
 *
 * @throws USAGE
 */
export function readWaitMs(wait: string | undefined): number | undefined {
  if (wait === undefined) return undefined;
  const ms = /^\d+(?:\.\d+)?$/.test(wait) ? Number(wait) * 1000 : parseDurationMs(wait);
  if (ms !== undefined && ms >= 0 && ms <= MAX_WAIT_MS) return ms;
  throw usage('--wait', wait, 'seconds from 0, or a duration such as 500ms or 2m, a year at most');
}

/** Settings that `isobar config` was asked for. */
export function wantedSettings(
  settings: readonly SettingValue[],
  { changed, match }: ConfigFlags,
): readonly SettingValue[] {
  const part = match?.toLowerCase() ?? '';
  return settings.filter(
    ({ name, origin }) => name.toLowerCase().includes(part) && (changed !== true || origin !== 'default'),
  );
}

/** @param requestId names this request, however often it is sent. @throws USAGE */
export function readRebalance(flags: RebalanceFlags, requestId: string): RebalanceRequest {
  const waitMs = readWaitMs(flags.wait);
  const workers = flags.workers === undefined ? undefined : readCount('--workers', flags.workers, 1);
  const executors: Record<string, number> = {};
  for (const pair of flags.executors ?? []) {
    const at = pair.lastIndexOf('=');
    const component = pair.slice(0, at).trim();
    if (at < 1 || component === '') throw usage('--executors', pair, 'component=count, such as split=4');
    // As in Storm, the last one counts.
    executors[component] = readCount('--executors', pair.slice(at + 1), -Infinity);
  }
  const fromScratch = flags.fromScratch === true;
  return {
    executors,
    resources: readResources(flags.resources),
    waitMs: waitMs ?? null,
    fromScratch,
    preview: flags.preview === true,
    requestId,
    ...(workers === undefined ? {} : { workers }),
  };
}

/** A whole number; which of them will do for a component is what Nimbus says. */
function readCount(flag: string, text: string, least: number): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw usage(flag, text, least === 1 ? 'a whole number from 1' : 'a whole number');
}

function readResources(text: string | undefined): RebalanceRequest['resources'] {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usage('--resources', text, `JSON (${error instanceof Error ? error.message : String(error)})`);
  }
  eachRepeatedKey(text, ({ path }) => {
    throw usage('--resources', text, `each key once; ${path.join('.')} is there again`);
  });
  const isObject = (one: unknown): one is Readonly<Record<string, unknown>> =>
    typeof one === 'object' && one !== null && !Array.isArray(one);
  const isAmounts = (one: unknown): one is Readonly<Record<string, number>> =>
    isObject(one) && Object.values(one).every((amount) => typeof amount === 'number');
  if (isObject(value) && Object.values(value).every(isAmounts)) {
    // Checked just now.
    return value as RebalanceRequest['resources'];
  }
  throw usage('--resources', text, 'JSON such as {"split":{"cpu":50}}');
}

/** What a word of the command line should have been. */
export function usage(where: string, found: string, expected: string): IsobarError {
  return new IsobarError('USAGE', `${where} ${found} is not understood`, { expected, found, where });
}
