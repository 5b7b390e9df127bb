/**
 * What is checked, and decided, about a submission before anything of it is stored. Pure.
 */
import {
  canonicalSettingName,
  compileSettings,
  IsobarError,
  type RawSettings,
  SETTINGS_TABLE,
  type SettingDefinition,
  type SettingFault,
  type Settings,
} from '../base/index.js';
import {
  checkChosenStrategy,
  installedStrategies,
  planTopology,
  type TopologyPlan,
} from '../scheduling/index.js';
import { cycleComponents, type TopologyDescription, validateDescription } from '../topology/index.js';

export interface CheckedSubmission {
  readonly description: TopologyDescription;
  /** The file's settings overlaid with those given. */
  readonly raw: RawSettings;
  readonly settings: Settings;
  readonly plan: TopologyPlan;
}

/**
 * Checks a submission and plans it.
 *
 * A cycle with acking off is refused whether or not the topology is bounded: that cannot be known before it ends, and
 * then nothing could tell that the cycle has run dry.
 *
 * @throws DESCRIPTION_INVALID, SETTINGS_INVALID, PARALLELISM_ILLEGAL, TOO_MANY_WORKERS, TOO_MANY_EXECUTORS,
 *   CYCLE_NEEDS_ACKERS
 */
export function checkSubmission(value: unknown, given: RawSettings, cluster: Settings): CheckedSubmission {
  const description = validateDescription(value);
  const raw = overlaySettings(description.settings, given);
  refuseClusterSettings(raw);
  const settings = compileSettings(cluster, raw);
  checkChosenStrategy(settings['topology.scheduler-strategy'], installedStrategies(cluster));
  const plan = planTopology(description, settings);
  const cycle = [...cycleComponents(description).keys()];
  if (plan.ackers === 0 && cycle.length > 0) {
    throw new IsobarError(
      'CYCLE_NEEDS_ACKERS',
      `topology "${description.name}" has a cycle and acking is off`,
      {
        expected: 'topology.ackers of at least 1',
        found: '0',
        where: cycle.join(', '),
      },
    );
  }
  return { description, raw, settings, plan };
}

/** @throws BUNDLE_TOO_LARGE */
export function checkBundleSize(code: Uint8Array | string, maxBytes: number): void {
  const bytes = typeof code === 'string' ? Buffer.byteLength(code) : code.length;
  if (bytes <= maxBytes) return;
  throw new IsobarError('BUNDLE_TOO_LARGE', `the bundle has ${bytes} bytes`, {
    expected: `at most ${maxBytes} bytes (submit.max-bundle-bytes)`,
    found: `${bytes} bytes`,
    where: 'code',
  });
}

/** One layer out of two; a setting given under any of its names replaces it under all of them. */
export function overlaySettings(file: RawSettings, given: RawSettings): RawSettings {
  const replaced = new Set(Object.keys(given).map((key) => canonicalSettingName(key) ?? key));
  const kept = Object.entries(file).filter(([key]) => !replaced.has(canonicalSettingName(key) ?? key));
  return { ...Object.fromEntries(kept), ...given };
}

/** A setting of the daemons would have no effect in a topology; silence would hide that. @throws SETTINGS_INVALID */
function refuseClusterSettings(raw: RawSettings): void {
  const faults: SettingFault[] = Object.keys(raw).flatMap((key) => {
    const name = canonicalSettingName(key);
    const definition: SettingDefinition | undefined = name === undefined ? undefined : SETTINGS_TABLE[name];
    return definition?.scope === 'cluster'
      ? [{ name: key, message: `${key}: belongs to the daemons' configuration, a topology cannot set it` }]
      : [];
  });
  if (faults.length === 0) return;
  throw new IsobarError('SETTINGS_INVALID', faults.map(({ message }) => message).join('\n'), { faults });
}

const MAX_NAME_LENGTH = 40;

/**
 * Id of a topology: `name-counter-seconds`. Names may hold any letters; an id is made of letters, digits, `_` and `-`
 * only, so that it can be a file name and a path of the coordinator everywhere.
 */
export function topologyId(name: string, counter: number, epochSeconds: number): string {
  return `${idNameOf(name)}-${counter}-${epochSeconds}`;
}

/** What ids of topologies of a name begin with. */
export function idNameOf(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]+/g, '_').slice(0, MAX_NAME_LENGTH);
}
