/** What `isobar plan` was asked for, checked before anything is read. Pure. */
import { canonicalSettingName, closestName, parseDurationMs, type RawSettings } from '../../base/index.js';
import { usage } from '../cluster-options.js';
import { STRATEGY_NAMES } from '../../scheduling/index.js';
import { SettingFlags } from '../setting-flags.js';
import type { GivenSettings } from './imagine-cluster.js';

export interface PlanFlags {
  readonly directory?: string;
  readonly json?: boolean;
  readonly fromCluster?: boolean;
  readonly addSupervisor?: readonly string[];
  readonly remove?: readonly string[];
  readonly killWorker?: readonly string[];
  readonly set?: readonly string[];
  readonly strategy?: string;
  readonly compare?: string;
  readonly explain?: string;
  readonly timeline?: boolean;
  readonly offerEvery?: string;
  readonly fromScratch?: boolean;
  readonly rounds?: string;
  readonly save?: string;
  readonly all?: boolean;
  readonly check?: boolean;
}

export interface AddedSupervisors {
  readonly id?: string;
  readonly host?: string;
  readonly rack?: string;
  readonly slots: number;
  readonly count: number;
  readonly cpuPercent?: number;
  readonly memoryMb?: number;
}

export interface PlanRequest {
  readonly added: readonly AddedSupervisors[];
  readonly removed: readonly string[];
  readonly killed: readonly { readonly machine: string; readonly port: number }[];
  readonly settings: GivenSettings;
  /** undefined: the cluster's. */
  readonly strategy: string | undefined;
  /** Strategies side by side; empty: one plan. */
  readonly compared: readonly string[];
  readonly fromScratch: boolean;
  /** Time between two offered slots, ms; undefined: no timeline. */
  readonly offerEveryMs: number | undefined;
  readonly maxRounds: number;
}

const MAX_ROUNDS = 1000;
const DEFAULT_OFFER_EVERY_MS = 250;
const MAX_OFFER_EVERY_MS = 3_600_000;
const DEFAULT_ROUNDS = 100;

/** @throws USAGE */
export function readPlanFlags(flags: PlanFlags): PlanRequest {
  if (flags.compare !== undefined && flags.explain !== undefined)
    throw usage('--compare', 'and --explain together', 'one of them');
  if (flags.save !== undefined && (flags.compare !== undefined || readOfferEvery(flags) !== undefined))
    throw usage('--save', 'with --compare or --timeline', 'one plan');
  if (flags.compare !== undefined && flags.strategy !== undefined)
    throw usage('--compare', 'and --strategy together', 'one of them');
  const compared = (flags.compare ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (flags.compare !== undefined && compared.length < 2)
    throw usage('--compare', flags.compare, 'at least two strategies, such as balanced,even');
  return {
    added: (flags.addSupervisor ?? []).map(readAdded),
    removed: flags.remove ?? [],
    killed: (flags.killWorker ?? []).map(readWorker),
    settings: readSettings(flags.set ?? []),
    strategy: flags.strategy,
    compared: [...new Set(compared)],
    fromScratch: flags.fromScratch === true,
    offerEveryMs: readOfferEvery(flags),
    maxRounds:
      flags.rounds === undefined ? DEFAULT_ROUNDS : readWhole('--rounds', '', flags.rounds, 1, MAX_ROUNDS),
  };
}

/** @throws USAGE */
function readOfferEvery({ timeline, offerEvery, compare, explain }: PlanFlags): number | undefined {
  if (timeline !== true && offerEvery === undefined) return undefined;
  if (compare !== undefined || explain !== undefined)
    throw usage('--timeline', 'with --compare or --explain', 'one of them');
  if (offerEvery === undefined) return DEFAULT_OFFER_EVERY_MS;
  const ms = /^\d+$/.test(offerEvery) ? Number(offerEvery) : parseDurationMs(offerEvery);
  if (ms !== undefined && Number.isFinite(ms) && ms >= 0 && ms <= MAX_OFFER_EVERY_MS) return ms;
  throw usage('--offer-every', offerEvery, 'milliseconds from 0, or a duration such as 250ms, up to 1h');
}

/** Refuses strategies that neither come with Isobar nor are installed in the cluster. @throws USAGE with the closest name */
export function checkStrategies(
  { strategy, compared }: Pick<PlanRequest, 'strategy' | 'compared'>,
  installed: Iterable<string>,
): void {
  const known = [...STRATEGY_NAMES, ...installed];
  const check = (name: string, flag: string): void => {
    if (known.includes(name)) return;
    const closest = closestName(name, known);
    const expected = closest === undefined ? `one of ${known.join(', ')}` : `did you mean "${closest}"?`;
    throw usage(flag, name, expected);
  };
  for (const name of compared) check(name, '--compare');
  if (strategy !== undefined) check(strategy, '--strategy');
}

/** `rack=r1,slots=4,count=2`. */
function readAdded(text: string): AddedSupervisors {
  const flag = '--add-supervisor';
  const values = new Map<string, string>();
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=');
    const given = pair.slice(0, at).trim();
    // As `isobar dev --supervisor` calls it.
    const key = given === 'name' ? 'id' : given;
    if (at < 1) throw usage(flag, pair, 'key=value, such as rack=r1,slots=4');
    if (!ADDED_KEYS.includes(key)) {
      const closest = closestName(key, ADDED_KEYS);
      throw usage(
        flag,
        key,
        closest === undefined ? `one of ${ADDED_KEYS.join(', ')}` : `did you mean "${closest}"?`,
      );
    }
    if (values.has(key)) throw usage(flag, `${key} twice`, 'each key once');
    const value = pair.slice(at + 1).trim();
    if (value === '' || value.length > 200) throw usage(flag, pair, `a value for ${key}`);
    values.set(key, value);
  }
  const number = (key: string, minimum: number, maximum: number): number | undefined => {
    const value = values.get(key);
    return value === undefined ? undefined : readWhole(flag, key, value, minimum, maximum);
  };
  const [id, host, rack] = [values.get('id'), values.get('host'), values.get('rack')];
  const [cpuPercent, memoryMb] = [number('cpu', 1, 1e9), number('memory', 1, 1e12)];
  return {
    slots: number('slots', 1, 10_000) ?? 4,
    count: number('count', 1, 100_000) ?? 1,
    ...(id === undefined ? {} : { id }),
    ...(host === undefined ? {} : { host }),
    ...(rack === undefined ? {} : { rack }),
    ...(cpuPercent === undefined ? {} : { cpuPercent }),
    ...(memoryMb === undefined ? {} : { memoryMb }),
  };
}

const ADDED_KEYS = ['id', 'host', 'rack', 'slots', 'count', 'cpu', 'memory'];

function readWorker(text: string): { readonly machine: string; readonly port: number } {
  const at = text.lastIndexOf(':');
  if (at < 1) throw usage('--kill-worker', text, 'HOST:PORT, such as m1:6700');
  const port = readWhole('--kill-worker', 'port', text.slice(at + 1), 1, 65_535);
  return { machine: text.slice(0, at), port };
}

/** `key=value` for all, `NAME:key=value` for one topology. */
function readSettings(pairs: readonly string[]): GivenSettings {
  const all = new SettingFlags();
  const byTopology = new Map<string, SettingFlags>();
  for (const pair of pairs) {
    const [, name, rest] = /^([^=:]+):([^=]+=.*)$/s.exec(pair) ?? [];
    if (name === undefined || rest === undefined) {
      all.addPairs([pair]);
      continue;
    }
    const own = byTopology.get(name) ?? new SettingFlags();
    byTopology.set(name, own);
    own.addPairs([rest]);
  }
  const raw = new Map<string, RawSettings>([...byTopology].map(([name, flags]) => [name, flags.raw]));
  for (const key of Object.keys(all.raw)) {
    if (canonicalSettingName(key) === 'scheduling.strategy')
      throw usage('--set', key, '--strategy NAME for the strategy of the plan');
  }
  return { all: all.raw, byTopology: raw };
}

function readWhole(flag: string, what: string, text: string, minimum: number, maximum: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= minimum && value <= maximum) return value;
  throw usage(flag, `${what} ${text}`.trim(), `a whole number from ${minimum} to ${maximum}`);
}
