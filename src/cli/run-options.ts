/** What `isobar run` was asked for, checked before anything is started. Pure. */
import {
  canonicalSettingName,
  compileSettings,
  IsobarError,
  type RawSettings,
  type Settings,
  SETTINGS_TABLE,
  type SettingDefinition,
} from '../base/index.js';

/** As the command line has them. */
export interface RunFlags {
  readonly workers?: string;
  readonly set: readonly string[];
  readonly watch: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly check: boolean;
  readonly keep: boolean;
  readonly state?: string;
}

export interface RunOptions {
  readonly file: string;
  /** For the topology: laid over what its file says. */
  readonly topologySettings: RawSettings;
  /** For the daemons. */
  readonly clusterSettings: RawSettings;
  /** All of the above over the defaults, without what the file says. */
  readonly settings: Settings;
  readonly watch: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly check: boolean;
  readonly keep: boolean;
  readonly stateDirectory?: string;
}

/** Slots cost nothing while they are empty, and the file may ask for more workers than one. */
const RUN_SLOTS = 32;

/**
 * Reads the flags of `isobar run`.
 *
 * @throws USAGE, SETTINGS_INVALID
 */
export function readRunOptions(file: string, flags: RunFlags): RunOptions {
  const given = new Map<string, string>();
  const add = (key: string, value: string, flag: string): void => {
    const name = canonicalSettingName(key) ?? key;
    if (given.has(name)) {
      throw new IsobarError('USAGE', `setting ${name} is given twice`, {
        expected: 'one value',
        where: flag,
      });
    }
    given.set(name, value);
    raw[key] = value;
  };
  const raw: Record<string, string> = {};
  if (flags.workers !== undefined) add('topology.workers', flags.workers, '--workers');
  for (const pair of flags.set) {
    const at = pair.indexOf('=');
    if (at < 1) {
      throw new IsobarError('USAGE', `--set ${pair} is not understood`, {
        expected: 'key=value, such as topology.workers=2',
        found: pair,
        where: '--set',
      });
    }
    add(pair.slice(0, at).trim(), pair.slice(at + 1).trim(), `--set ${pair}`);
  }
  if (flags.json && flags.quiet) {
    throw new IsobarError('USAGE', '--json and --quiet contradict each other', { expected: 'one of them' });
  }
  const isCluster = (key: string): boolean => {
    const name = canonicalSettingName(key);
    const definition: SettingDefinition | undefined = name === undefined ? undefined : SETTINGS_TABLE[name];
    return definition?.scope === 'cluster';
  };
  const entries = Object.entries(raw);
  const slots = given.has('supervisor.slots') ? {} : { 'supervisor.slots': RUN_SLOTS };
  const clusterSettings = { ...slots, ...Object.fromEntries(entries.filter(([key]) => isCluster(key))) };
  const topologySettings = Object.fromEntries(entries.filter(([key]) => !isCluster(key)));
  return {
    file,
    topologySettings,
    clusterSettings,
    settings: compileSettings(clusterSettings, topologySettings),
    watch: flags.watch,
    json: flags.json,
    quiet: flags.quiet,
    check: flags.check,
    keep: flags.keep,
    ...(flags.state === undefined ? {} : { stateDirectory: flags.state }),
  };
}
