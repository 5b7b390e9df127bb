/**
 * From a draft to the cluster that is planned: settings compiled, counts planned, what runs checked against both. Pure.
 */
import {
  canonicalSettingName,
  compileSettings,
  hasCode,
  type RawSettings,
  SETTINGS_TABLE,
  type SettingDefinition,
  type Settings,
  toIsobarError,
} from '../../base/index.js';
import {
  type Assignment,
  checkChosenStrategy,
  type ImaginedCluster,
  type ImaginedTopology,
  installedStrategies,
  planTopology,
  type SlotAssignment,
  type TopologyPlan,
  typicalLoad,
} from '../../scheduling/index.js';
import type { ClusterDraft, DraftWorker, TopologyDraft } from './cluster-draft.js';
import { type InputFaults, Words } from './input-faults.js';

/** Settings of `--set`, for all topologies and by the name of one. */
export interface GivenSettings {
  readonly all: RawSettings;
  readonly byTopology: ReadonlyMap<string, RawSettings>;
}

/** Rounds are planned from here where nobody says what time it is: later than any worker needs to start. */
const VIRTUAL_NOW_MS = 1e9;

/** The cluster as it is described, and the same with the given settings laid over it. */
export function toImagined(
  draft: ClusterDraft,
  given: GivenSettings,
  faults: InputFaults,
):
  | {
      readonly original: ImaginedCluster;
      readonly changed: ImaginedCluster;
      /** Topologies with what the given settings have made of their counts. */
      readonly drafts: readonly TopologyDraft[];
    }
  | undefined {
  const before = faults.count;
  const cluster = compiled('cluster settings', [draft.settings], faults);
  const { own, byTopology } = wellFormed(given, faults);
  const layers = cluster === undefined ? [own.cluster] : [draft.settings, own.cluster];
  const changed = Object.keys(own.cluster).length === 0 ? cluster : compiled('--set', layers, faults);
  const slots = new Map(draft.supervisors.map(({ id, ports }) => [id, ports]));
  const hosts = new Map(draft.supervisors.map(({ id, host }) => [id, host]));
  const taken = new Map<string, string>();
  const installed = changed === undefined ? new Map<string, string>() : installedStrategies(changed);
  const [originals, changes]: [ImaginedTopology[], ImaginedTopology[]] = [[], []];
  const drafts: TopologyDraft[] = [];
  for (const topology of draft.topologies) {
    const { id, facts, placement } = topology;
    if (cluster === undefined || changed === undefined) continue;
    const plan = planned(topology, cluster, {}, faults);
    if (plan === undefined) continue;
    checkPlacement(topology, plan.plan, slots, taken, faults);
    checkStarts(topology, draft.atMs ?? VIRTUAL_NOW_MS, faults);
    const stored =
      topology.stored ??
      (placement === undefined ? undefined : toAssignment(id, plan.plan, placement, hosts));
    const over = { ...own.topology, ...byTopology.get(facts.name ?? id), ...byTopology.get(id) };
    const isChanged = Object.keys(over).length > 0 || Object.keys(own.cluster).length > 0;
    const after = isChanged ? withSettings({ ...topology, ...plan }, over, stored) : { topology, over };
    const now = isChanged ? planned(after.topology, changed, after.over, faults) : plan;
    if (now === undefined) continue;
    checkStrategy(topology, now.settings, installed, faults);
    const names = (raw: RawSettings): string[] =>
      Object.keys(raw).map((key) => canonicalSettingName(key) ?? key);
    const base = [...names(draft.settings), ...names(topology.settings)];
    const common = { id, facts, stored };
    drafts.push(after.topology);
    originals.push({ ...common, ...plan, ...pending(topology), given: new Set(base) });
    const added = [...names(own.cluster), ...names(over)];
    changes.push({ ...common, ...now, ...pending(after.topology), given: new Set([...base, ...added]) });
  }
  if (faults.count > before || cluster === undefined || changed === undefined) return undefined;
  const nowMs = draft.atMs ?? VIRTUAL_NOW_MS;
  const { blacklistedHosts = [] } = draft;
  const blacklist = blacklistedHosts.length === 0 ? {} : { blacklistedHosts: new Set(blacklistedHosts) };
  const common = {
    nowMs,
    supervisors: draft.supervisors,
    silentSlots: new Set(draft.silentSlots),
    ...blacklist,
  };
  return {
    original: { ...common, settings: cluster, topologies: withMeasured(originals, draft.topologies) },
    changed: { ...common, settings: changed, topologies: withMeasured(changes, draft.topologies) },
    drafts,
  };
}

/** What was given for topologies is judged by itself and once, not with each topology; what is malformed is left out. */
function wellFormed(
  given: GivenSettings,
  faults: InputFaults,
): { readonly own: ReturnType<typeof splitByScope>; readonly byTopology: GivenSettings['byTopology'] } {
  const own = splitByScope(given.all);
  const isWellFormed = (where: string, raw: RawSettings): boolean =>
    compiled(where, [raw], faults) !== undefined;
  return {
    own: isWellFormed('--set', own.topology) ? own : { ...own, topology: {} },
    byTopology: new Map([...given.byTopology].filter(([name, raw]) => isWellFormed(`--set ${name}:…`, raw))),
  };
}

/** Measured loads, and what is typical over all topologies for those that have none. */
function withMeasured(
  topologies: readonly ImaginedTopology[],
  drafts: readonly TopologyDraft[],
): readonly ImaginedTopology[] {
  const byId = new Map(drafts.map(({ id, measured = [] }) => [id, new Map(measured)]));
  const measuredOf = (id: string): ReadonlyMap<number, number> => byId.get(id) ?? new Map<number, number>();
  if ([...byId.values()].every((loads) => loads.size === 0)) return topologies;
  const typical = typicalLoad(topologies.map(({ id, plan }) => ({ ...plan, byTask: measuredOf(id) })));
  return topologies.map((one) => ({ ...one, measured: { byTask: measuredOf(one.id), typical } }));
}

function pending({ rebalance }: TopologyDraft): Pick<ImaginedTopology, 'rebalance'> {
  return rebalance === undefined ? {} : { rebalance };
}

/** Another number of workers for what runs already is a rebalance: tasks stay as they are, and few things move. */
function withSettings(
  topology: TopologyDraft,
  over: RawSettings,
  stored: Assignment | undefined,
): { readonly topology: TopologyDraft; readonly over: RawSettings } {
  const key = Object.keys(over).find((name) => canonicalSettingName(name) === 'topology.workers');
  const workers = key === undefined ? Number.NaN : Number(over[key]);
  if (stored === undefined || key === undefined || !Number.isInteger(workers)) return { topology, over };
  const { [key]: _workers, ...rest } = over;
  compileSettings({ [key]: over[key] });
  const { desired, rebalance } = topology;
  const revision = Math.max(rebalance?.revision ?? 0, stored.revision ?? 0) + 1;
  return {
    topology: {
      ...topology,
      desired: { executors: desired?.executors ?? {}, workers },
      rebalance: { revision, placement: 'few-moves' },
    },
    over: rest,
  };
}

/** Settings of daemons and of topologies. */
export function splitByScope(raw: RawSettings): {
  readonly cluster: RawSettings;
  readonly topology: RawSettings;
} {
  const isCluster = (key: string): boolean => {
    const name = canonicalSettingName(key);
    const definition: SettingDefinition | undefined = name === undefined ? undefined : SETTINGS_TABLE[name];
    return definition?.scope === 'cluster';
  };
  const entries = Object.entries(raw);
  return {
    cluster: Object.fromEntries(entries.filter(([key]) => isCluster(key))),
    topology: Object.fromEntries(entries.filter(([key]) => !isCluster(key))),
  };
}

function compiled(where: string, layers: readonly RawSettings[], faults: InputFaults): Settings | undefined {
  try {
    return compileSettings(...layers);
  } catch (error) {
    if (!hasCode(error, 'SETTINGS_INVALID')) throw error;
    for (const line of toIsobarError(error).message.split('\n'))
      faults.add(where, 'settings of docs/settings.md', new Words(line));
    return undefined;
  }
}

function planned(
  { where, topology, settings: raw, desired }: TopologyDraft,
  cluster: Settings,
  over: RawSettings,
  faults: InputFaults,
): { readonly settings: Settings; readonly plan: TopologyPlan } | undefined {
  const settings = compiled(`${where}.settings`, [cluster, raw, over], faults);
  if (settings === undefined) return undefined;
  try {
    return { settings, plan: planTopology(topology, settings, desired) };
  } catch (error) {
    const { details, message } = toIsobarError(error);
    faults.add(where, details.expected ?? 'counts that can be planned', new Words(message));
    return undefined;
  }
}

function toAssignment(
  topologyId: string,
  plan: TopologyPlan,
  workers: readonly DraftWorker[],
  hosts: ReadonlyMap<string, string>,
): Assignment {
  const slots = workers.map(
    ({ supervisor, port, executors, startedMs = 0 }): SlotAssignment => ({
      supervisor,
      host: hosts.get(supervisor) ?? '',
      port,
      executors: [...executors].sort((a, b) => a[0] - b[0]),
      startedMs,
    }),
  );
  slots.sort((a, b) =>
    a.supervisor === b.supervisor ? a.port - b.port : a.supervisor < b.supervisor ? -1 : 1,
  );
  return { topologyId, version: 1, tasks: plan.tasks, slots };
}

/** What is placed must exist, once, in a slot that exists and nobody else has. */
function checkPlacement(
  { id, where, placement = [] }: TopologyDraft,
  { executors }: TopologyPlan,
  slots: ReadonlyMap<string, readonly number[]>,
  taken: Map<string, string>,
  faults: InputFaults,
): void {
  const ends = new Map(executors.map(({ range }) => [range[0], range[1]]));
  const seen = new Set<number>();
  const offered = new Map<string, ReadonlySet<number>>();
  for (const [index, { supervisor, port, executors: ranges }] of placement.entries()) {
    const at = `${where}.placement[${index}]`;
    const ports = slots.get(supervisor);
    if (ports === undefined) faults.add(`${at}.supervisor`, 'a supervisor of this cluster', supervisor);
    else if (!(offered.get(supervisor) ?? setIn(offered, supervisor, ports)).has(port))
      faults.add(`${at}.port`, `a port of ${supervisor}`, port);
    const key = `${supervisor}:${port}`;
    const holder = taken.get(key);
    if (holder !== undefined) faults.add(at, 'a slot of its own', new Words(`${key}, which ${holder} holds`));
    taken.set(key, id);
    if (ranges.length === 0) faults.add(`${at}.executors`, 'at least one executor', ranges);
    for (const [place, [first, last]] of ranges.entries()) {
      const found = new Words(`[${first}, ${last}]`);
      if (ends.get(first) !== last)
        faults.add(`${at}.executors[${place}]`, `an executor of ${id}: there are ${executors.length}`, found);
      else if (seen.has(first)) faults.add(`${at}.executors[${place}]`, 'each executor once', found);
      seen.add(first);
    }
  }
}

/** Nothing can have been started later than now. */
function checkStarts({ where, placement = [] }: TopologyDraft, nowMs: number, faults: InputFaults): void {
  for (const [index, { startedMs = 0 }] of placement.entries()) {
    if (startedMs > nowMs)
      faults.add(`${where}.placement[${index}].startedMs`, `a time up to ${nowMs} (atMs)`, startedMs);
  }
}

/** Which strategy it chooses must be there, as at its submission. */
function checkStrategy(
  { where, facts }: TopologyDraft,
  settings: Settings,
  installed: ReadonlyMap<string, string>,
  faults: InputFaults,
): void {
  const chosen = facts.rules?.strategy ?? settings['topology.scheduler-strategy'];
  try {
    checkChosenStrategy(chosen, installed);
  } catch (error) {
    const { details, message } = toIsobarError(error);
    faults.add(
      facts.rules?.strategy === undefined ? `${where}.settings` : `${where}.rules.strategy`,
      details.expected ?? 'a strategy of this cluster',
      new Words(message),
    );
  }
}

function setIn(
  sets: Map<string, ReadonlySet<number>>,
  key: string,
  values: readonly number[],
): ReadonlySet<number> {
  const set = new Set(values);
  sets.set(key, set);
  return set;
}
