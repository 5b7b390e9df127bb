/** What `isobar dev` was asked for, checked before anything is started. Pure. */
import { isAbsolute, resolve } from 'node:path';
import { compileSettings, IsobarError, parseByteCount } from '../base/index.js';
import { parseZooKeeperAddress } from '../coordination/index.js';
import type { AskedCluster, SupervisorSpec } from '../engines/index.js';
import { SettingFlags } from './setting-flags.js';

/** As the command line has them. */
export interface DevFlags {
  readonly directory?: string;
  readonly json?: boolean;
}

export interface DevStartFlags extends DevFlags {
  readonly supervisors?: string;
  readonly supervisor?: readonly string[];
  readonly coordinator?: string;
  readonly set?: readonly string[];
}

export interface DevStopFlags extends DevFlags {
  readonly keepWorkers?: boolean;
}

export interface SupervisorStartFlags extends DevFlags {
  readonly supervisor?: readonly string[];
}

export interface SupervisorStopFlags extends DevFlags {
  readonly crash?: boolean;
  readonly only?: boolean;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$/;
const MAX_SUPERVISORS = 64;
const MAX_PORT = 65_535;
const DEFAULT_RACK = 'default-rack';
const KEYS = ['name', 'host', 'rack', 'slots', 'port', 'cores', 'memory', 'directory'] as const;
type Key = (typeof KEYS)[number];

/** @throws USAGE, SETTINGS_INVALID */
export function readDevOptions(flags: DevStartFlags): AskedCluster {
  const settings = new SettingFlags();
  settings.addPairs(flags.set ?? []);
  compileSettings(settings.raw);
  const supervisors = readSupervisors(flags);
  return {
    ...(supervisors === undefined ? {} : { supervisors }),
    ...(flags.coordinator === undefined ? {} : { coordinator: readCoordinator(flags.coordinator) }),
    ...(flags.set === undefined ? {} : { settings: settings.raw }),
  };
}

/** One supervisor in the words of `--supervisor`. @throws USAGE */
export function readSupervisor(text: string, nameGiven?: string): SupervisorSpec {
  const parts = readParts(text);
  const name = nameGiven ?? parts.get('name');
  if (name === undefined) throw usage(text, 'a name, as in name=a,host=h1,rack=r1,slots=3', 'no name');
  if (!NAME.test(name)) throw usage(text, 'a name of up to 32 letters, digits, _, . and -', name);
  const count = (key: Key, most: number): number | undefined => {
    const value = parts.get(key);
    if (value === undefined) return undefined;
    if (!/^\d+$/.test(value) || Number(value) < 1 || Number(value) > most)
      throw usage(text, `${key} as a whole number from 1 to ${most}`, value);
    return Number(value);
  };
  const [slots, firstPort] = [count('slots', 10_000), count('port', MAX_PORT)];
  if ((firstPort ?? 1) + (slots ?? 1) - 1 > MAX_PORT) throw usage(text, `ports up to ${MAX_PORT}`, text);
  const cores = parts.get('cores');
  if (cores !== undefined && !(Number(cores) > 0 && Number(cores) <= 4096))
    throw usage(text, 'cores as a number above 0', cores);
  const memory = parts.get('memory');
  const memoryBytes = memory === undefined ? undefined : parseByteCount(memory);
  if (memory !== undefined && (memoryBytes === undefined || memoryBytes <= 0))
    throw usage(text, 'memory such as 4GB', memory);
  const directory = parts.get('directory');
  return {
    name,
    host: parts.get('host') ?? name,
    rack: parts.get('rack') ?? DEFAULT_RACK,
    ...(slots === undefined ? {} : { slots }),
    ...(firstPort === undefined ? {} : { firstPort }),
    ...(cores === undefined ? {} : { cores: Number(cores) }),
    ...(memoryBytes === undefined ? {} : { memoryBytes: Math.floor(memoryBytes) }),
    ...(directory === undefined ? {} : { directory: isAbsolute(directory) ? directory : resolve(directory) }),
  };
}

function readSupervisors({ supervisors, supervisor }: DevStartFlags): readonly SupervisorSpec[] | undefined {
  if (supervisors !== undefined && supervisor !== undefined) {
    throw new IsobarError('USAGE', '--supervisors and --supervisor contradict each other', {
      expected: 'a number, or a description of each',
    });
  }
  if (supervisor !== undefined) return checkTogether(supervisor.map((text) => readSupervisor(text)));
  if (supervisors === undefined) return undefined;
  const count = Number(supervisors);
  if (!/^\d+$/.test(supervisors) || count < 1 || count > MAX_SUPERVISORS) {
    throw new IsobarError('USAGE', `--supervisors ${supervisors} is not understood`, {
      expected: `a whole number from 1 to ${MAX_SUPERVISORS}`,
      found: supervisors,
      where: '--supervisors',
    });
  }
  return Array.from({ length: count }, (_, i) => readSupervisor(`name=s${i + 1}`));
}

function checkTogether(specs: readonly SupervisorSpec[]): readonly SupervisorSpec[] {
  if (specs.length > MAX_SUPERVISORS)
    throw usage(`(${specs.length} of them)`, `at most ${MAX_SUPERVISORS} supervisors`, String(specs.length));
  for (const [i, spec] of specs.entries()) {
    const others = specs.slice(0, i);
    // On a file system that does not tell letters apart they would share a directory.
    if (others.some(({ name }) => name.toLowerCase() === spec.name.toLowerCase()))
      throw usage(`name=${spec.name}`, 'names that differ', spec.name);
    if (spec.directory !== undefined && others.some(({ directory }) => directory === spec.directory))
      throw usage(`directory=${spec.directory}`, 'a directory of its own for each', spec.directory);
  }
  return specs;
}

function readParts(text: string): ReadonlyMap<Key, string> {
  const parts = new Map<Key, string>();
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const at = part.indexOf('=');
    const [name, value] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
    const key = KEYS.find((one) => one === name);
    if (key === undefined || value === '') throw usage(text, `parts such as ${KEYS.join('=…, ')}=…`, part);
    if (parts.has(key)) throw usage(text, `${key} once`, part);
    parts.set(key, value);
  }
  return parts;
}

function readCoordinator(text: string): string | null {
  if (text === 'embedded') return null;
  parseZooKeeperAddress(text);
  return text;
}

function usage(text: string, expected: string, found: string): IsobarError {
  return new IsobarError('USAGE', `--supervisor ${text} is not understood`, {
    expected,
    found,
    where: '--supervisor',
  });
}
