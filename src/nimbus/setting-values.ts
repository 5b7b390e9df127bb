/** Every setting with its value and where that comes from. Pure. */
import {
  canonicalSettingName,
  DEFAULT_SETTINGS,
  type RawSettings,
  type SettingDefinition,
  type SettingName,
  type Settings,
  SETTINGS_TABLE,
} from '../base/index.js';

/** The layer that a value was given in, weakest first. */
export type SettingOrigin =
  /** Nobody gave it. */
  | 'default'
  /** The daemons' configuration. */
  | 'cluster'
  /** The topology's file. */
  | 'file'
  /** Given when the topology was submitted. */
  | 'submission'
  /** A rebalance. */
  | 'rebalance';

export interface SettingValue {
  readonly name: SettingName;
  readonly value: number | string | boolean | null | readonly string[];
  /** Of a number: `ms`, `bytes`, or none. */
  readonly unit: 'ms' | 'bytes' | null;
  readonly origin: SettingOrigin;
  readonly scope: SettingDefinition['scope'];
  readonly what: string;
}

/** Layers of a topology over the cluster's settings. */
export interface TopologyLayers {
  readonly settings: Settings;
  /** What the file gives, and what was in force after the submission. */
  readonly file: RawSettings;
  readonly submitted: RawSettings;
  /** Workers that a rebalance has asked for. */
  readonly workers: number | undefined;
}

/** In order of name. Settings of the daemons are told for a topology too, since some of them bound it. */
export function settingValues(cluster: Settings, topology?: TopologyLayers): readonly SettingValue[] {
  const values: Settings = topology?.settings ?? cluster;
  // The table is a constant: its own keys are the names.
  const names = (Object.keys(SETTINGS_TABLE) as SettingName[]).sort();
  return names.map((name) => {
    const { kind, scope, what }: SettingDefinition = SETTINGS_TABLE[name];
    const isRebalanced = name === 'topology.workers' && topology?.workers !== undefined;
    const value = isRebalanced ? topology.workers : values[name];
    const isNumber = typeof value === 'number';
    return {
      name,
      value,
      unit: isNumber && kind === 'duration' ? 'ms' : isNumber && kind === 'bytes' ? 'bytes' : null,
      origin: isRebalanced ? 'rebalance' : originOf(name, cluster, topology),
      scope,
      what,
    };
  });
}

function originOf(name: SettingName, cluster: Settings, topology: TopologyLayers | undefined): SettingOrigin {
  if (topology !== undefined) {
    const given = layerValue(topology.submitted, name);
    const inFile = layerValue(topology.file, name);
    if (given !== undefined) return inFile !== undefined && inFile === given ? 'file' : 'submission';
  }
  return cluster[name] === DEFAULT_SETTINGS[name] ? 'default' : 'cluster';
}

/** What a layer gives for a setting, under any of its names, as a text that can be compared. */
function layerValue(layer: RawSettings, name: SettingName): string | undefined {
  for (const [key, value] of Object.entries(layer)) {
    if (canonicalSettingName(key) === name) return JSON.stringify([key, value]);
  }
  return undefined;
}
