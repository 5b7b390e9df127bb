/** A cluster file as a draft: supervisors counted out, components with their defaults, references checked. Pure. */
import { closestName, isSystemComponent, type RawSettings, toIsobarError } from '../../base/index.js';
import type {
  PlacementRules,
  PlannableComponent,
  PlannableTopology,
  RequestedResources,
  RoundSupervisor,
  TopologyFacts,
} from '../../scheduling/index.js';
import { validateDescription } from '../../topology/index.js';
import type { ClusterDraft, TopologyDraft } from './cluster-draft.js';
import {
  type ComponentEntry,
  clusterShape,
  LIMITS,
  parseShape,
  place,
  soundComponent,
  soundSupervisor,
  type SupervisorEntry,
  type TopologyEntry,
} from './cluster-shapes.js';
import { type InputFaults, Words } from './input-faults.js';

const FIRST_PORT = 6700;
const NO_RESOURCES = { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 };
/** What Storm takes for one acker. */
const ACKER: RequestedResources = { cpuPercent: 10, onHeapMb: 128, offHeapMb: 0 };

/** Undefined if it has faults of shape, which have been added. */
export function readClusterFile(value: unknown, file: string, faults: InputFaults): ClusterDraft | undefined {
  const parsed = parseShape(clusterShape, value, file, faults);
  if (parsed === undefined) {
    checkSoundEntries(value, file, faults);
    return undefined;
  }
  const notes: string[] = [];
  const topologies = (parsed.topologies ?? []).flatMap((entry, index) => {
    const draft = topologyDraft(entry, place(file, ['topologies', index]), faults, notes);
    return draft === undefined ? [] : [draft];
  });
  const { settings = {}, atMs } = parsed;
  const offersAtMs = new Map<string, number>();
  const supervisors = readSupervisors(parsed, file, faults, offersAtMs);
  return {
    settings: settings,
    supervisors,
    offersAtMs,
    topologies,
    notes: [...new Set(notes)],
    ...(atMs === undefined ? {} : { atMs }),
  };
}

function readSupervisors(
  { supervisors = [] }: { readonly supervisors?: readonly (SupervisorEntry | undefined)[] },
  file: string,
  faults: InputFaults,
  offersAtMs: Map<string, number>,
): RoundSupervisor[] {
  const all: RoundSupervisor[] = [];
  const ids = new Set<string>();
  const perRack = new Map<string, number>();
  let slots = 0;
  for (const [index, entry] of supervisors.entries()) {
    if (entry === undefined) continue;
    const where = place(file, ['supervisors', index]);
    const { count = 1, rack = '' } = entry;
    const ports = portsOf(entry, where, faults);
    slots += ports.length * count;
    const [machines, field] = [all.length + count, `${where}.count`];
    if (machines > LIMITS.supervisors)
      faults.add(field, `at most ${LIMITS.supervisors} supervisors in all`, machines);
    if (slots > LIMITS.slots) faults.add(field, `at most ${LIMITS.slots} slots in all`, slots);
    if (machines > LIMITS.supervisors || slots > LIMITS.slots) return all;
    for (let place = 0; place < count; place++) {
      const number = (perRack.get(rack) ?? 0) + 1;
      perRack.set(rack, number);
      const id = nameOf(entry, place, number);
      if (ids.has(id)) faults.add(`${where}.id`, 'an id of its own', id);
      ids.add(id);
      if (entry.offersAtMs !== undefined) offersAtMs.set(id, entry.offersAtMs);
      all.push(supervisorOf(entry, id, ports));
    }
  }
  return all;
}

/** Supervisors of an entry with a count are numbered, within their rack where they have no name. */
function nameOf({ id, rack, count = 1 }: SupervisorEntry, index: number, numberInRack: number): string {
  if (id !== undefined)
    return count === 1 ? id : `${id}-${String(index + 1).padStart(String(count).length, '0')}`;
  return `${rack ?? 'machine'}-${String(numberInRack).padStart(3, '0')}`;
}

export function supervisorOf(
  { host, rack, cpuPercent, memoryMb, generic, count = 1 }: SupervisorEntry,
  id: string,
  ports: readonly number[],
): RoundSupervisor {
  const hasResources = cpuPercent !== undefined || memoryMb !== undefined || generic !== undefined;
  return {
    id,
    host: host === undefined || count > 1 ? id : host,
    ports,
    ...(rack === undefined ? {} : { rack }),
    ...(hasResources
      ? {
          resources: {
            cpuPercent: cpuPercent ?? 0,
            memoryMb: memoryMb ?? 0,
            ...(generic === undefined ? {} : { generic }),
          },
        }
      : {}),
  };
}

export function portsOf(
  { slots, ports }: SupervisorEntry,
  where: string,
  faults: InputFaults,
): readonly number[] {
  if ((slots === undefined) === (ports === undefined)) {
    faults.add(where, 'either slots or ports', new Words(slots === undefined ? 'neither' : 'both'));
    return [];
  }
  if (ports === undefined) return Array.from({ length: slots ?? 0 }, (_, index) => FIRST_PORT + index);
  if (new Set(ports).size < ports.length) faults.add(`${where}.ports`, 'each port once', ports);
  return ports;
}

function topologyDraft(
  entry: TopologyEntry,
  where: string,
  faults: InputFaults,
  notes: string[],
): TopologyDraft | undefined {
  const topology = plannable(entry, where, faults);
  if (topology === undefined) return undefined;
  if ((entry.eventLoggers ?? 0) > 0) notes.push('Event loggers are left out: there are none here.');
  const { id, desired, placement, measured } = entry;
  return {
    id,
    where,
    topology: topology.topology,
    // Those of a description are complete where an entry does not say otherwise.
    settings: { ...settingsOf(entry), ...(entry.settings ?? topology.settings) },
    facts: factsOf(entry, topology.topology.name),
    ...(desired === undefined
      ? {}
      : {
          desired: {
            executors: desired.executors ?? {},
            ...(desired.workers === undefined ? {} : { workers: desired.workers }),
          },
        }),
    ...(placement === undefined ? {} : { placement: placement }),
    ...(measured === undefined ? {} : { measured }),
  };
}

/** Fields of a recorded cluster that are settings here. */
function settingsOf({ workers, ackers, maxTaskParallelism }: TopologyEntry): RawSettings {
  return {
    ...(workers === undefined ? {} : { 'topology.workers': workers }),
    ...(ackers === undefined ? {} : { 'topology.ackers': ackers }),
    ...(maxTaskParallelism === undefined ? {} : { 'topology.max-task-parallelism': maxTaskParallelism }),
  };
}

function factsOf(
  { owner, priority, workerMaxHeapMb, rules = {}, uptimeMs }: TopologyEntry,
  name: string,
): TopologyFacts {
  const { incompatible, maxPerSupervisor, ...plain } = rules;
  const placementRules: PlacementRules = {
    ...plain,
    ...(workerMaxHeapMb === undefined ? {} : { workerMaxHeapMb }),
    ...(incompatible === undefined && maxPerSupervisor === undefined
      ? {}
      : {
          constraints: {
            incompatible: incompatible ?? [],
            maxPerSupervisor: new Map(Object.entries(maxPerSupervisor ?? {})),
          },
        }),
  };
  return {
    name,
    rules: placementRules,
    ...(owner === undefined ? {} : { owner }),
    ...(priority === undefined ? {} : { priority }),
    ...(uptimeMs === undefined ? {} : { uptimeMs }),
  };
}

function plannable(
  entry: TopologyEntry,
  where: string,
  faults: InputFaults,
): { readonly topology: PlannableTopology; readonly settings: RawSettings } | undefined {
  const { id, name = id, components, description, defaults = {}, ackerResources } = entry;
  if ((components === undefined) === (description === undefined)) {
    const found = new Words(components === undefined ? 'neither' : 'both');
    faults.add(where, 'either components or a description', found);
    return undefined;
  }
  if (components === undefined) {
    try {
      const topology = validateDescription(description);
      return { topology, settings: topology.settings };
    } catch (error) {
      faults.add(
        `${where}.description`,
        'a topology as it was submitted',
        new Words(toIsobarError(error).message),
      );
      return undefined;
    }
  }
  checkComponents(components, where, faults);
  const own = components.map((component) => toComponent(component, defaults));
  const isSaid = ackerResources !== undefined || own.some(({ resources }) => resources !== undefined);
  const topology = {
    name,
    components: own,
    ...(isSaid ? { ackerResources: { ...ACKER, ...ackerResources } } : {}),
  };
  return { topology, settings: {} };
}

function toComponent(
  component: ComponentEntry,
  defaults: NonNullable<TopologyEntry['defaults']>,
): PlannableComponent {
  const { id, kind, parallelism, tasks = null, maxTaskParallelism, generic, inputs = [] } = component;
  const { load, slotSharingGroup, coLocationGroup, stateful = false, movable = false } = component;
  const asked = { ...defaults, ...given(component) };
  // Without a word about resources the settings say what an executor asks for.
  const isSaid = Object.keys(asked).length > 0 || generic !== undefined;
  const resources: RequestedResources = {
    ...NO_RESOURCES,
    ...asked,
    ...(generic === undefined ? {} : { generic }),
  };
  return {
    id,
    kind,
    parallelism,
    tasks,
    stateful,
    movable,
    subscriptions: inputs.map(({ from, grouping }) => ({ source: from, grouping: { kind: grouping } })),
    ...(isSaid ? { resources } : {}),
    ...(maxTaskParallelism == null ? {} : { maxTasks: maxTaskParallelism }),
    ...(load === undefined ? {} : { load }),
    ...(slotSharingGroup === undefined ? {} : { slotSharingGroup }),
    ...(coLocationGroup === undefined ? {} : { coLocationGroup }),
  };
}

function given({
  cpuPercent,
  onHeapMb,
  offHeapMb,
}: ComponentEntry): Partial<Record<keyof typeof NO_RESOURCES, number>> {
  return {
    ...(cpuPercent === undefined ? {} : { cpuPercent }),
    ...(onHeapMb === undefined ? {} : { onHeapMb }),
    ...(offHeapMb === undefined ? {} : { offHeapMb }),
  };
}

/** `known`: ids of all components, where only sound ones are looked at. */
function checkComponents(
  components: readonly (ComponentEntry | undefined)[],
  where: string,
  faults: InputFaults,
  known?: ReadonlySet<string>,
): void {
  const ids = new Set<string>();
  const coLocated = new Map<string, ComponentEntry>();
  if (components.length === 0) faults.add(`${where}.components`, 'at least one component', components);
  for (const [index, component] of components.entries()) {
    if (component === undefined) continue;
    const at = `${where}.components[${index}]`;
    const { id, coLocationGroup: group } = component;
    if (ids.has(id)) faults.add(`${at}.id`, 'an id of its own', id);
    if (isSystemComponent(id)) faults.add(`${at}.id`, 'an id that does not start with __', id);
    ids.add(id);
    const other = group === undefined ? undefined : coLocated.get(group);
    if (group !== undefined && other === undefined) coLocated.set(group, component);
    if (other === undefined) continue;
    if (other.parallelism !== component.parallelism)
      faults.add(
        `${at}.parallelism`,
        `${other.parallelism}, as "${other.id}", with which it is co-located`,
        component.parallelism,
      );
    if (other.slotSharingGroup !== component.slotSharingGroup)
      faults.add(
        `${at}.slotSharingGroup`,
        `the group of "${other.id}", with which it is co-located`,
        component.slotSharingGroup,
      );
  }
  const all = known ?? ids;
  for (const [index, component] of components.entries()) {
    for (const [number, { from }] of (component?.inputs ?? []).entries()) {
      if (all.has(from)) continue;
      const closest = closestName(from, [...all]);
      const expected = closest === undefined ? 'a component of this topology' : `did you mean "${closest}"?`;
      faults.add(`${where}.components[${index}].inputs[${number}].from`, expected, from);
    }
  }
}

/** What can be told of a file with faults of shape, so that they are not all that is said: its sound entries, compared with each other. */
function checkSoundEntries(value: unknown, file: string, faults: InputFaults): void {
  readSupervisors(
    { supervisors: listIn(value, 'supervisors').map(soundSupervisor) },
    file,
    faults,
    new Map(),
  );
  const ids = new Set<string>();
  for (const [index, topology] of listIn(value, 'topologies').entries()) {
    const where = place(file, ['topologies', index]);
    const id = fieldOf(topology, 'id');
    if (typeof id === 'string' && ids.has(id)) faults.add(`${where}.id`, 'an id of its own', id);
    if (typeof id === 'string') ids.add(id);
    const components = listIn(topology, 'components');
    const known = components.map((component) => fieldOf(component, 'id'));
    const names = new Set(known.filter((one) => typeof one === 'string'));
    if (components.length > 0) checkComponents(components.map(soundComponent), where, faults, names);
  }
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = fieldOf(value, name);
  return Array.isArray(list) ? list.slice(0, LIMITS.supervisors) : [];
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name]; // an object that has it
}
