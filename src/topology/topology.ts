/** `topology(…)` and what the command line and workers do with a file's default export. */
import { IsobarError, toIsobarError, type RawSettings, type SettingName } from '../base/index.js';
import { GraphBuilder } from './builder.js';
import { deepFreeze } from './canonical.js';
import { isDefinition, isPromiseLike, isRecord } from './definition.js';
import type { TopologyDescription } from './description.js';
import { show, showThrown, throwFaults } from './faults.js';
import { graphWarnings } from './graph.js';
import type { TopologyBuilder } from './handles.js';
import { topologyNameFault } from './names.js';
import type { BuiltTopology } from './runtime.js';
import { readSettings } from './settings-data.js';

/** Marks topologies; the same symbol in every copy of this module. */
const TOPOLOGY = Symbol.for('isobar.topology');

/** What a topology's file exports as its default. */
export interface TopologyDefinition {
  readonly [TOPOLOGY]: 1;
  readonly name: string;
  /** Evaluates the builder anew. */
  build(): BuiltTopology;
}

/** Settings of a topology under their own names or under Storm's or Flink's; durations as `'10s'`, sizes as `'1MB'`. */
export type TopologySettings = {
  readonly [K in SettingName]?: string | number | boolean | null | readonly string[] | undefined;
} & RawSettings;

/**
 * Defines a topology. `build` gets the builder and adds components; it is called on the machine that submits and again in
 * each worker, and must give the same graph each time: no clock, no chance, no environment, nothing to wait for.
 *
 * @throws TOPOLOGY_NAME_ILLEGAL, DEFINITION_ILLEGAL
 */
export function topology(name: string, build: (b: TopologyBuilder) => void): TopologyDefinition;
export function topology(
  name: string,
  settings: TopologySettings,
  build: (b: TopologyBuilder) => void,
): TopologyDefinition;
export function topology(
  name: string,
  settingsOrBuild: TopologySettings | ((b: TopologyBuilder) => void),
  buildAfterSettings?: (b: TopologyBuilder) => void,
): TopologyDefinition {
  const [settings, build]: readonly unknown[] =
    typeof settingsOrBuild === 'function' ? [{}, settingsOrBuild] : [settingsOrBuild, buildAfterSettings];
  const fault = topologyNameFault(name);
  if (fault !== undefined) throwFaults([{ ...fault, where: 'topology(…)' }]);
  if (typeof build !== 'function') {
    throw new IsobarError('DEFINITION_ILLEGAL', `topology ${show(name)} has no function that builds it`, {
      expected: "topology('name', (b) => { … }) or topology('name', settings, (b) => { … })",
      found: show(build),
      where: `topology ${show(name)}`,
    });
  }
  if (typeof settingsOrBuild === 'function' && buildAfterSettings !== undefined) {
    throw new IsobarError('DEFINITION_ILLEGAL', `topology ${show(name)} has something behind its function`, {
      expected: "topology('name', settings, (b) => { … })",
      found: `${show(buildAfterSettings)} as third argument`,
      where: `topology ${show(name)}`,
    });
  }
  return Object.freeze({
    [TOPOLOGY]: 1 as const,
    name,
    build: () => evaluate(name, settings, build as (b: TopologyBuilder) => unknown),
  });
}

/**
 * Builds what a file exports as its default.
 *
 * @throws NO_DEFAULT_EXPORT, NOT_A_TOPOLOGY, BUILDER_THREW (with the cause), or the code of the first broken rule with all of
 * them in `details.faults`
 */
export function buildTopology(value: unknown): BuiltTopology {
  if (value === undefined) {
    throw new IsobarError('NO_DEFAULT_EXPORT', 'the file has no default export', {
      expected: 'export default topology(…)',
      found: 'no default export',
      where: 'default export',
    });
  }
  if (!isTopology(value)) {
    throw new IsobarError('NOT_A_TOPOLOGY', 'the default export is not a topology', {
      expected: 'the result of topology(…)',
      found: describeExport(value),
      where: 'default export',
    });
  }
  try {
    return value.build();
  } catch (error) {
    // An error of another copy of this package (the file may bring its own) keeps its code.
    const adopted = toIsobarError(error);
    throw adopted.code === 'INTERNAL' ? error : adopted;
  }
}

/** Is this the result of `topology(…)`, be it of another copy of this module? */
export function isTopology(value: unknown): value is TopologyDefinition {
  try {
    return (
      isRecord(value) && TOPOLOGY in value && value[TOPOLOGY] === 1 && typeof value['build'] === 'function'
    );
  } catch {
    // A proxy may throw whatever it is asked.
    return false;
  }
}

function describeExport(value: unknown): string {
  try {
    return kindOfExport(value);
  } catch {
    return 'an object that cannot be looked at';
  }
}

function kindOfExport(value: unknown): string {
  if (isDefinition(value)) return `a ${value.shape.kind} definition; put it into a topology`;
  if (isPromiseLike(value)) return 'a promise; await it before exporting';
  if (typeof value === 'function') return 'a function; export what topology(…) returns';
  return show(value);
}

function evaluate(name: string, rawSettings: unknown, build: (b: TopologyBuilder) => unknown): BuiltTopology {
  const builder = new GraphBuilder();
  const settings = readSettings(rawSettings, builder.faults);
  try {
    const returned = build(builder.door);
    if (isPromiseLike(returned)) {
      // What it rejects with belongs to a graph that is refused already.
      returned.then(undefined, () => undefined);
      builder.faults.push({
        code: 'DEFINITION_ILLEGAL',
        message: 'the function that builds the topology returned a promise',
        expected: 'a function that builds at once; wait at the top of the file instead',
        found: 'a promise',
        where: `topology ${show(name)}`,
      });
    }
  } catch (thrown) {
    throw builderThrew(name, thrown, builder);
  } finally {
    builder.close();
  }
  throwFaults(builder.check(name));
  const { components } = builder;
  const description: TopologyDescription = deepFreeze({
    format: 1,
    name,
    settings,
    components,
    warnings: graphWarnings({ components }),
  });
  return { description, components: builder.runtimes, customGroupings: builder.customGroupings };
}

function builderThrew(name: string, thrown: unknown, builder: GraphBuilder): IsobarError {
  const text = showThrown(thrown);
  return new IsobarError(
    'BUILDER_THREW',
    `the function that builds topology ${show(name)} threw: ${text}`,
    {
      expected: 'a function that returns',
      found: text,
      where: `topology ${show(name)}`,
      // Faults found until then are often the reason.
      ...(builder.faults.length === 0 ? {} : { faults: builder.faults }),
    },
    thrown,
  );
}
