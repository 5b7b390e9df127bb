/**
 * Compiles raw settings (from the file, `--set`, a cluster's configuration) into one frozen record of numbers with
 * known units. All faults are reported at once; nothing is adjusted in silence.
 */
import { closestName } from './closest-name.js';
import { IsobarError } from './errors.js';
import { SETTINGS_TABLE, type SettingDefinition } from './settings-table.js';

type Table = typeof SETTINGS_TABLE;
export type SettingName = keyof Table;
type ScalarOf<D extends SettingDefinition> = D['kind'] extends 'duration' | 'integer' | 'number' | 'bytes'
  ? number
  : D['kind'] extends 'boolean'
    ? boolean
    : D['kind'] extends 'count-or-auto'
      ? number | string
      : D['kind'] extends 'strings'
        ? readonly string[]
        : string;

/** Every setting under its own name, in the unit of its kind (durations in ms, sizes in bytes). */
export type Settings = {
  readonly [K in SettingName]: Table[K] extends { nullable: true }
    ? ScalarOf<Table[K]> | null
    : ScalarOf<Table[K]>;
};

/** What people write: own names or aliases, plain values or `"10s"`. */
export type RawSettings = Readonly<Record<string, unknown>>;

export interface SettingFault {
  readonly name: string;
  readonly message: string;
}

const DEFINITIONS: ReadonlyMap<string, SettingDefinition> = new Map(Object.entries(SETTINGS_TABLE));
interface Alias {
  readonly name: string;
  readonly unit: string;
  readonly system: 'Storm' | 'Flink';
  readonly values: Readonly<Record<string, string>>;
}

function aliasOf({
  unit,
  values = {},
}: NonNullable<SettingDefinition['flink']>[number]): Omit<Alias, 'name' | 'system'> {
  return { unit, values };
}

const ALIASES: ReadonlyMap<string, Alias> = new Map<string, Alias>(
  [...DEFINITIONS].flatMap(([name, definition]) => [
    ...(definition.storm ?? []).map(
      (alias) => [alias.name, { name, ...aliasOf(alias), system: 'Storm' }] as const,
    ),
    ...(definition.flink ?? []).map(
      (alias) => [alias.name, { name, ...aliasOf(alias), system: 'Flink' }] as const,
    ),
  ]),
);
const DURATION_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const BYTE_UNITS: Readonly<Record<string, number>> = { B: 1, KB: 1024, MB: 1_048_576, GB: 1_073_741_824 };

export const DEFAULT_SETTINGS: Settings = Object.freeze(
  Object.fromEntries([...DEFINITIONS].map(([name, definition]) => [name, definition.default])),
) as Settings;

/**
 * Compiles layers of raw settings, weakest first, over the defaults.
 *
 * @throws SETTINGS_INVALID with every fault in `details.faults`.
 */
export function compileSettings(...layers: readonly RawSettings[]): Settings {
  const values: Record<string, unknown> = { ...DEFAULT_SETTINGS };
  const faults: SettingFault[] = [];
  for (const layer of layers) {
    const givenBy = new Map<string, string>();
    for (const [key, raw] of Object.entries(layer)) {
      if (raw === undefined) continue;
      const alias = DEFINITIONS.has(key) ? undefined : ALIASES.get(key);
      const name = alias?.name ?? key;
      const definition = DEFINITIONS.get(name);
      if (definition === undefined) {
        const known = [...DEFINITIONS.keys(), ...ALIASES.keys()];
        const like = closestName(key, known);
        const hint = like === undefined ? '`isobar config` lists them all' : `did you mean "${like}"?`;
        faults.push({ name: key, message: `unknown setting "${key}"; ${hint}` });
        continue;
      }
      const before = givenBy.get(name);
      if (before !== undefined) {
        faults.push({
          name: key,
          message: `"${before}" and "${key}" are the same setting; give one of them`,
        });
        continue;
      }
      givenBy.set(name, key);
      const parsed = parseSetting(
        definition,
        alias === undefined ? raw : translated(definition, raw, alias),
        alias?.unit,
      );
      if ('fault' in parsed)
        faults.push({ name: key, message: `${key}: ${aliasFault(definition, alias, raw) ?? parsed.fault}` });
      else values[name] = parsed.value;
    }
  }
  const compiled = values as unknown as Settings;
  faults.push(...contradictions(compiled));
  if (faults.length > 0) {
    throw new IsobarError('SETTINGS_INVALID', faults.map((fault) => fault.message).join('\n'), { faults });
  }
  return Object.freeze(compiled);
}

/** The canonical name of a setting given by its own name or an alias; undefined if unknown. */
export function canonicalSettingName(key: string): SettingName | undefined {
  const name = DEFINITIONS.has(key) ? key : ALIASES.get(key)?.name;
  return name as SettingName | undefined;
}

/** A sentence on settings that are given by the names that other systems have for them: what each is taken as. None: no list. */
export function aliasNotes(...layers: readonly RawSettings[]): readonly string[] {
  const taken = layers.flatMap((layer) =>
    Object.entries(layer).flatMap(([key, raw]): readonly string[] => {
      const alias = DEFINITIONS.has(key) ? undefined : ALIASES.get(key);
      const definition = alias === undefined ? undefined : DEFINITIONS.get(alias.name);
      if (alias === undefined || definition === undefined || raw === undefined) return [];
      const value = definition.kind === 'choice' ? ` "${String(translated(definition, raw, alias))}"` : '';
      return [`${alias.system}'s "${key}" as ${alias.name}${value}`];
    }),
  );
  return taken.length === 0
    ? []
    : [`Settings are taken from other names: ${[...new Set(taken)].join(', ')}.`];
}

/** Parses a duration as people write it (`"10s"`, `"250ms"`, a number of ms) into ms; undefined if it is none. */
export function parseDurationMs(raw: unknown): number | undefined {
  return parseWithUnit(raw, DURATION_UNITS, null);
}

/** Parses a size as people write it (`"64KB"`, `"1.5GB"`, a number of bytes) into bytes; undefined if it is none. */
export function parseByteCount(raw: unknown): number | undefined {
  return parseWithUnit(raw, BYTE_UNITS, null);
}

/** A value as this product names it: other systems write choices in capitals with underscores. */
function translated({ kind }: SettingDefinition, raw: unknown, { values }: Alias): unknown {
  if (kind !== 'choice' || (typeof raw !== 'string' && typeof raw !== 'boolean')) return raw;
  const text = String(raw);
  return values[text] ?? text.toLowerCase().replaceAll('_', '-');
}

/** What is expected of a choice that is given by another system's name, in that system's words; undefined: it is no choice. */
function aliasFault(
  { kind, choices = [] }: SettingDefinition,
  alias: Alias | undefined,
  raw: unknown,
): string | undefined {
  if (alias === undefined || kind !== 'choice') return undefined;
  const own = Object.keys(alias.values);
  const names = own.length > 0 ? own : choices.map((choice) => choice.toUpperCase().replaceAll('-', '_'));
  return `expected one of ${names.join(', ')}, found ${show(raw)}`;
}

function parseSetting(
  definition: SettingDefinition,
  raw: unknown,
  aliasUnit: string | undefined,
): { value: unknown } | { fault: string } {
  if (raw === null || raw === 'null') {
    return definition.nullable === true ? { value: null } : { fault: 'expected a value, found null' };
  }
  switch (definition.kind) {
    case 'boolean': {
      if (raw === true || raw === 'true') return { value: true };
      if (raw === false || raw === 'false') return { value: false };
      return { fault: `expected true or false, found ${show(raw)}` };
    }
    case 'string':
      return typeof raw === 'string' && raw.length > 0
        ? { value: raw }
        : { fault: `expected a text, found ${show(raw)}` };
    case 'choice':
      return typeof raw === 'string' && definition.choices!.includes(raw)
        ? { value: raw }
        : { fault: `expected one of ${definition.choices!.join(', ')}, found ${show(raw)}` };
    case 'strings':
      return strings(definition, raw);
    case 'count-or-auto':
      if (typeof raw === 'string' && definition.choices!.includes(raw)) return { value: raw };
      return bounded(
        definition,
        toNumber(raw),
        raw,
        `a whole number or one of ${definition.choices!.join(', ')}`,
        true,
      );
    case 'integer':
      return bounded(definition, toNumber(raw), raw, 'a whole number', true);
    case 'number':
      return bounded(definition, toNumber(raw), raw, 'a number', false);
    case 'duration': {
      const factor = aliasUnit === undefined ? null : aliasUnit === 's' ? 1000 : 1;
      return bounded(
        definition,
        parseWithUnit(raw, DURATION_UNITS, factor),
        raw,
        'a duration such as "10s" or "250ms"',
        false,
        'ms',
      );
    }
    case 'bytes': {
      const factor = aliasUnit === 'MB' ? 1_048_576 : 1;
      return bounded(
        definition,
        parseWithUnit(raw, BYTE_UNITS, factor),
        raw,
        'a size such as "1MB"',
        true,
        'bytes',
      );
    }
  }
}

/** A list of texts; one text with commas; or, as other systems write it, numbers by name, which become `name=number`. */
function strings(
  { choices }: SettingDefinition,
  raw: unknown,
): { value: readonly string[] } | { fault: string } {
  const items = listOf(raw);
  if (items === undefined) return { fault: `expected a list of texts, found ${show(raw)}` };
  const unknown = choices === undefined ? undefined : items.find((item) => !choices.includes(item));
  return unknown === undefined
    ? { value: items }
    : { fault: `expected a list of ${choices!.join(', ')}, found ${show(unknown)}` };
}

function listOf(raw: unknown): readonly string[] | undefined {
  if (typeof raw === 'string')
    return raw
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  if (Array.isArray(raw)) return raw.every((item) => typeof item === 'string') ? raw : undefined;
  if (typeof raw !== 'object' || raw === null) return undefined;
  const entries = Object.entries(raw);
  return entries.every(([, value]) => typeof value === 'number')
    ? entries.map(([key, value]) => `${key}=${String(value)}`)
    : undefined;
}

function bounded(
  definition: SettingDefinition,
  value: number | undefined,
  raw: unknown,
  expected: string,
  whole: boolean,
  unit = '',
): { value: number } | { fault: string } {
  if (value === undefined || (whole && !Number.isInteger(value)))
    return { fault: `expected ${expected}, found ${show(raw)}` };
  const { minimum = -Infinity, maximum = Infinity } = definition;
  if (value < minimum || value > maximum) {
    return {
      fault: `expected ${expected} from ${minimum} to ${maximum}${unit === '' ? '' : ` ${unit}`}, found ${show(raw)}`,
    };
  }
  return { value };
}

function toNumber(raw: unknown): number | undefined {
  if (typeof raw === 'number') return Number.isFinite(raw) ? raw : undefined;
  if (typeof raw === 'string' && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(raw.trim())) return Number(raw);
  return undefined;
}

function parseWithUnit(
  raw: unknown,
  units: Readonly<Record<string, number>>,
  plainFactor: number | null,
): number | undefined {
  const plain = toNumber(raw);
  // A text without a unit could be seconds as well as milliseconds; a number is what a program has compiled.
  if (plain !== undefined)
    return typeof raw === 'number' || plainFactor !== null ? plain * (plainFactor ?? 1) : undefined;
  if (typeof raw !== 'string') return undefined;
  const match = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$/.exec(raw);
  const factor = match === null ? undefined : units[match[2]!];
  return factor === undefined ? undefined : Number(match![1]) * factor;
}

function contradictions(settings: Settings): SettingFault[] {
  const faults: SettingFault[] = [];
  const smaller = (low: SettingName, high: SettingName): void => {
    const [a, b] = [settings[low], settings[high]];
    if (typeof a === 'number' && typeof b === 'number' && a > b) {
      faults.push({ name: low, message: `${low} (${a}) must not be greater than ${high} (${b})` });
    }
  };
  smaller('worker.restart-backoff', 'worker.restart-backoff-max');
  smaller('worker.stuck-warning', 'worker.stuck-timeout');
  smaller('topology.max-spout-pending', 'spout.pending-limit');
  const strategy = settings['scheduling.strategy'];
  const modules = settings['scheduling.strategy-modules'].map((entry) => entry.split('=', 1)[0]!);
  const strategies = [...SETTINGS_TABLE['scheduling.strategy'].choices, ...modules];
  if (!strategies.includes(strategy)) {
    const message = `scheduling.strategy: expected one of ${strategies.join(', ')}, found ${show(strategy)}`;
    faults.push({ name: 'scheduling.strategy', message });
  }
  return faults;
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value);
  return Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`;
}
