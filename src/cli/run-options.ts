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
import { SettingFlags } from './setting-flags.js';

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
  const given = new SettingFlags();
  if (flags.workers !== undefined) given.add('topology.workers', flags.workers, '--workers');
  given.addPairs(flags.set);
  if (flags.json && flags.quiet) {
    throw new IsobarError('USAGE', '--json and --quiet contradict each other', { expected: 'one of them' });
  }
  if (flags.state === '') {
    throw new IsobarError('USAGE', '--state is empty', { expected: 'a directory', found: 'an empty text' });
  }
  const isCluster = (key: string): boolean => {
    const name = canonicalSettingName(key);
    const definition: SettingDefinition | undefined = name === undefined ? undefined : SETTINGS_TABLE[name];
    return definition?.scope === 'cluster';
  };
  const entries = Object.entries(given.raw);
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
