/** A planned cluster as a cluster file, so that the next plan can start where this one ended. Pure. */
import { DEFAULT_SETTINGS, type RawSettings, type Settings } from '../../base/index.js';
import type {
  ClusterPlan,
  ImaginedCluster,
  PlannableComponent,
  RoundSupervisor,
  TopologyFacts,
} from '../../scheduling/index.js';
import type { TopologyDraft } from './cluster-draft.js';
import type { ClusterFile, ComponentEntry, SupervisorEntry, TopologyEntry } from './cluster-shapes.js';
import { splitByScope } from './imagine-cluster.js';

/** @param drafts of the topologies of the plan. Machines that are gone are left out. */
export function clusterFileOf(
  plan: ClusterPlan,
  cluster: ImaginedCluster,
  drafts: readonly TopologyDraft[],
): ClusterFile {
  const byId = new Map(drafts.map((draft) => [draft.id, draft]));
  return {
    format: 1,
    settings: splitByScope(givenSettings(cluster.settings, DEFAULT_SETTINGS)).cluster,
    supervisors: cluster.supervisors.filter(({ gone }) => gone !== true).map(supervisorEntry),
    topologies: plan.topologies.flatMap(({ id, settings, planned }): TopologyEntry[] => {
      const draft = byId.get(id);
      if (draft === undefined) return [];
      const { topology, facts, desired, measured } = draft;
      return [
        {
          id,
          ...factEntries(facts),
          components: topology.components.map(componentEntry),
          ...(topology.ackerResources === undefined
            ? {}
            : { ackerResources: plainResources(topology.ackerResources) }),
          settings: splitByScope(givenSettings(settings, DEFAULT_SETTINGS)).topology,
          ...(desired === undefined ? {} : { desired: { ...desired } }),
          ...(measured === undefined
            ? {}
            : { measured: measured.map(([task, load]): [number, number] => [task, load]) }),
          placement: (planned?.slots ?? []).map(({ supervisor, port, executors }) => ({
            supervisor,
            port,
            executors: executors.map(([first, last]): [number, number] => [first, last]),
          })),
        },
      ];
    }),
  };
}

function givenSettings(settings: Settings, defaults: Settings): RawSettings {
  return Object.fromEntries(
    Object.entries(settings).filter(([name, value]) => !Object.is(value, defaults[name as keyof Settings])), // keys of the table
  );
}

function supervisorEntry({ id, host, rack, ports, resources }: RoundSupervisor): SupervisorEntry {
  const { cpuPercent = 0, memoryMb = 0, generic } = resources ?? {};
  return {
    id,
    host,
    ...(rack === undefined || rack === '' ? {} : { rack }),
    ports: [...ports],
    ...(cpuPercent > 0 ? { cpuPercent } : {}),
    ...(memoryMb > 0 ? { memoryMb } : {}),
    ...(generic === undefined ? {} : { generic: { ...generic } }),
  };
}

function factEntries({
  name,
  owner,
  priority,
  uptimeMs,
  rules = {},
}: TopologyFacts): Pick<
  TopologyEntry,
  'name' | 'owner' | 'priority' | 'uptimeMs' | 'workerMaxHeapMb' | 'rules'
> {
  const { workerMaxHeapMb, constraints, favouredHosts, unfavouredHosts, spreadComponents, ...plain } = rules;
  return {
    ...(name === undefined ? {} : { name }),
    ...(owner === undefined ? {} : { owner }),
    ...(priority === undefined ? {} : { priority }),
    ...(uptimeMs === undefined ? {} : { uptimeMs }),
    ...(workerMaxHeapMb === undefined ? {} : { workerMaxHeapMb }),
    rules: {
      ...plain,
      ...(favouredHosts === undefined ? {} : { favouredHosts: [...favouredHosts] }),
      ...(unfavouredHosts === undefined ? {} : { unfavouredHosts: [...unfavouredHosts] }),
      ...(spreadComponents === undefined ? {} : { spreadComponents: [...spreadComponents] }),
      ...(constraints === undefined
        ? {}
        : {
            incompatible: constraints.incompatible.map(([a, b]): [string, string] => [a, b]),
            maxPerSupervisor: Object.fromEntries(constraints.maxPerSupervisor),
          }),
    },
  };
}

function componentEntry(component: PlannableComponent): ComponentEntry {
  const { id, kind, parallelism, tasks, maxTasks, subscriptions, resources, load } = component;
  const { slotSharingGroup, coLocationGroup, stateful, movable } = component;
  return {
    id,
    kind,
    parallelism,
    tasks,
    stateful,
    movable,
    inputs: subscriptions.map(({ source, grouping }) => ({ from: source, grouping: grouping.kind })),
    ...(maxTasks === undefined ? {} : { maxTaskParallelism: maxTasks }),
    ...(resources === undefined ? {} : plainResources(resources)),
    ...(resources?.generic === undefined ? {} : { generic: { ...resources.generic } }),
    ...(load === undefined ? {} : { load }),
    ...(slotSharingGroup === undefined ? {} : { slotSharingGroup }),
    ...(coLocationGroup === undefined ? {} : { coLocationGroup }),
  };
}

function plainResources({
  cpuPercent,
  onHeapMb,
  offHeapMb,
}: NonNullable<PlannableComponent['resources']>): Pick<
  ComponentEntry,
  'cpuPercent' | 'onHeapMb' | 'offHeapMb'
> {
  return { cpuPercent, onHeapMb, offHeapMb };
}
