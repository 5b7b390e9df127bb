/**
 * Answers of a Storm UI as a draft. Supervisors come from `supervisor/summary`, topologies from their pages, edges from
 * `visualization` or, without groupings, from component pages; where executors run is read from component pages, and where these
 * are missing counted from the tasks that each worker has. Pure.
 */
import { ACKER, isSystemComponent, type RawSettings } from '../../base/index.js';
import {
  computeExecutors,
  numberTasks,
  type PlannableComponent,
  type RequestedResources,
  type RoundSupervisor,
  type TopologyFacts,
} from '../../scheduling/index.js';
import type { ClusterDraft, DraftWorker, TopologyDraft } from './cluster-draft.js';
import { GROUPINGS, LIMITS, parseShape, place, stormGrouping } from './cluster-shapes.js';
import { type InputFaults, Words } from './input-faults.js';
import {
  answerKind,
  type ComponentAnswer,
  componentAnswer,
  type SupervisorsAnswer,
  supervisorsAnswer,
  type TopologyAnswer,
  topologyAnswer,
  type VisualizationAnswer,
  visualizationAnswer,
} from './storm-shapes.js';

export interface StormAnswer {
  readonly value: unknown;
  /** File, and where in it. */
  readonly where: string;
  /** The path that it was asked with, where that is known. */
  readonly path: string;
}

const FIRST_PORT = 6700;
const ACKER_RESOURCES: RequestedResources = { cpuPercent: 10, onHeapMb: 128, offHeapMb: 0 };

/** The answers in a file: one, a list, or an object of answers by path; empty: it is something else. */
export function stormAnswersIn(value: unknown, file: string): readonly StormAnswer[] {
  if (answerKind(value) !== undefined) return [{ value, where: file, path: '' }];
  if (Array.isArray(value) && value.length > 0 && value.every((one) => answerKind(one) !== undefined))
    return value.map((one: unknown, index) => ({ value: one, where: place(file, [index]), path: '' }));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const entries = Object.entries(value);
  if (entries.length === 0 || !entries.every(([path]) => path.includes('/api/v1/'))) return [];
  return entries.map(([path, one]: [string, unknown]) => ({ value: one, where: `${file}: ${path}`, path }));
}

/** Everything that the answers of all files say together. */
export function readStormAnswers(answers: readonly StormAnswer[], faults: InputFaults): ClusterDraft {
  const reader = new StormReader(faults);
  for (const answer of answers) reader.add(answer);
  return reader.draft();
}

class StormReader {
  readonly #faults: InputFaults;
  readonly #notes = new Set<string>();
  readonly #supervisors = new Map<string, SupervisorsAnswer['supervisors'][number]>();
  readonly #topologies = new Map<string, { readonly answer: TopologyAnswer; readonly where: string }>();
  readonly #components = new Map<string, ComponentAnswer[]>();
  readonly #graphs: { readonly graph: VisualizationAnswer; readonly topologyId: string | undefined }[] = [];
  readonly #listed = new Set<string>();

  constructor(faults: InputFaults) {
    this.#faults = faults;
  }

  add({ value, where, path }: StormAnswer): void {
    switch (answerKind(value)) {
      case 'supervisors': {
        const answer = parseShape(supervisorsAnswer, value, where, this.#faults);
        for (const one of answer?.supervisors ?? []) this.#supervisors.set(one.id, one);
        return;
      }
      case 'topology': {
        const answer = parseShape(topologyAnswer, value, where, this.#faults);
        if (answer !== undefined) this.#topologies.set(answer.id, { answer, where });
        return;
      }
      case 'component': {
        const answer = parseShape(componentAnswer, value, where, this.#faults);
        if (answer === undefined) return;
        this.#components.set(answer.topologyId, [...(this.#components.get(answer.topologyId) ?? []), answer]);
        return;
      }
      case 'visualization': {
        const graph = parseShape(visualizationAnswer, value, where, this.#faults);
        const [, topologyId] = /\/topology\/([^/]+)\/visualization/.exec(path) ?? [];
        if (graph !== undefined)
          this.#graphs.push({
            graph,
            topologyId: topologyId === undefined ? undefined : decoded(topologyId),
          });
        return;
      }
      case 'topologies':
        for (const one of (value as { readonly topologies: readonly unknown[] }).topologies) {
          const { id } = (typeof one === 'object' && one !== null ? one : {}) as { readonly id?: unknown };
          if (typeof id === 'string') this.#listed.add(id);
        }
        return;
      case 'other':
        return;
      case undefined:
        this.#faults.add(where, 'an answer of a Storm UI', value);
    }
  }

  draft(): ClusterDraft {
    const missing = [...this.#listed].filter((id) => !this.#topologies.has(id));
    if (missing.length > 0) {
      this.#notes.add(
        `${missing.length} ${missing.length === 1 ? 'topology is' : 'topologies are'} listed without their page (/api/v1/topology/ID) and left out: ${missing.slice(0, 3).join(', ')}${missing.length > 3 ? ', …' : ''}.`,
      );
    }
    const topologies = [...this.#topologies.values()].map(({ answer, where }) =>
      this.#topology(answer, where),
    );
    return { settings: {}, supervisors: this.#machines(), topologies, notes: [...this.#notes] };
  }

  #machines(): RoundSupervisor[] {
    const used = new Map<string, Set<number>>();
    for (const { answer } of this.#topologies.values()) {
      for (const { supervisorId, port } of answer.workers ?? []) {
        const ports = used.get(supervisorId) ?? new Set();
        used.set(supervisorId, ports.add(port));
      }
    }
    const configured = this.#configuredPorts();
    let slots = 0;
    return [...this.#supervisors.values()].map((one) => {
      const { id, host, slotsTotal, totalMem = 0, totalCpu = 0, uptimeSeconds } = one;
      slots += slotsTotal;
      if (slotsTotal > LIMITS.slotsPerSupervisor || slots > LIMITS.slots)
        this.#faults.add(
          `supervisor ${id}: slotsTotal`,
          `at most ${LIMITS.slotsPerSupervisor} slots`,
          slotsTotal,
        );
      if (one.blacklisted === true)
        this.#notes.add(`Supervisor ${id} is blacklisted in Storm; here it takes part.`);
      const ports =
        configured?.length === slotsTotal
          ? configured
          : portsFor(used.get(id) ?? new Set(), Math.min(slotsTotal, LIMITS.slotsPerSupervisor));
      return {
        id,
        host,
        ports: [...ports],
        ...(totalMem > 0 || totalCpu > 0 ? { resources: { cpuPercent: totalCpu, memoryMb: totalMem } } : {}),
        ...(uptimeSeconds === undefined ? {} : { uptimeMs: uptimeSeconds * 1000 }),
      };
    });
  }

  #configuredPorts(): readonly number[] | undefined {
    for (const { answer } of this.#topologies.values()) {
      const ports = answer.configuration?.['supervisor.slots.ports'];
      if (Array.isArray(ports) && ports.every((port) => Number.isInteger(port))) return ports as number[];
    }
    return undefined;
  }

  #topology(answer: TopologyAnswer, where: string): TopologyDraft {
    const { id, name, owner, uptimeSeconds, spouts, bolts, configuration = {} } = answer;
    const edges = this.#edgesOf(answer);
    const component = (
      componentId: string,
      kind: 'spout' | 'bolt',
      asked: TopologyAnswer['bolts'][number] | TopologyAnswer['spouts'][number],
    ): PlannableComponent => ({
      id: componentId,
      kind,
      parallelism: asked.executors,
      tasks: asked.tasks,
      stateful: false,
      movable: true,
      subscriptions: edges.get(componentId) ?? [],
      resources: resourcesOf(asked),
    });
    const all = [
      ...spouts.map((one) => component(one.spoutId, 'spout', one)),
      ...bolts.map((one) => component(one.boltId, 'bolt', one)),
    ];
    const system = all.filter((one) => isSystemComponent(one.id));
    const acker = system.find((one) => one.id === ACKER);
    const others = system.filter((one) => one.id !== ACKER);
    if (others.length > 0)
      this.#notes.add(
        `Left out, since there are none here: ${[...new Set(others.map((one) => one.id))].join(', ')}.`,
      );
    const components = all.filter((one) => !isSystemComponent(one.id));
    for (const { id: own, parallelism, tasks } of components) {
      if (parallelism < 1 || (tasks ?? 0) < 1)
        this.#faults.add(
          `${where}: ${own}`,
          'at least one executor and task',
          new Words(`${parallelism} and ${String(tasks)}`),
        );
    }
    const ackers = acker?.tasks ?? configuredAckers(answer);
    const placement = this.#placement(answer, components, ackers);
    const facts: TopologyFacts = {
      name,
      ...(owner === undefined || owner === '' ? {} : { owner }),
      ...(uptimeSeconds === undefined ? {} : { uptimeMs: uptimeSeconds * 1000 }),
      ...numberOf(configuration, 'topology.priority', 'priority'),
      rules: { ...numberOf(configuration, 'topology.worker.max.heap.size.mb', 'workerMaxHeapMb') },
    };
    return {
      id,
      where,
      topology: { name, components, ackerResources: acker?.resources ?? ACKER_RESOURCES },
      settings: settingsOf(answer, ackers),
      facts,
      ...(placement.length === 0 ? {} : { placement }),
    };
  }

  /** From the graph that has all its components; component pages know no groupings. */
  #edgesOf({ id, spouts, bolts }: TopologyAnswer): ReadonlyMap<string, PlannableComponent['subscriptions']> {
    const own = new Set([...spouts.map((one) => one.spoutId), ...bolts.map((one) => one.boltId)]);
    const user = [...own].filter((one) => !isSystemComponent(one));
    const found =
      this.#graphs.find(({ topologyId }) => topologyId === id) ??
      this.#graphs.find(
        ({ graph, topologyId }) => topologyId === undefined && user.every((one) => Object.hasOwn(graph, one)),
      );
    if (found !== undefined) {
      return new Map(
        Object.entries(found.graph).map(([component, { ':inputs': inputs }]) => [
          component,
          inputs
            .filter((one) => own.has(one[':component']) && !isSystemComponent(one[':component']))
            .map((one) => ({ source: one[':component'], grouping: { kind: kindOf(one[':grouping']) } })),
        ]),
      );
    }
    const pages = this.#components.get(id) ?? [];
    this.#notes.add(
      pages.length === 0
        ? `The edges of ${id} are not known, and so no traffic cost: add /api/v1/topology/ID/visualization.`
        : `The groupings of ${id} are not known and counted as shuffle: add /api/v1/topology/ID/visualization.`,
    );
    return new Map(
      pages.map(({ id: component, inputStats = [] }) => [
        component,
        inputStats
          .filter((one) => own.has(one.component) && !isSystemComponent(one.component))
          .map((one) => ({ source: one.component, grouping: { kind: 'shuffle' as const } })),
      ]),
    );
  }

  #placement(
    { id, workers = [] }: TopologyAnswer,
    components: readonly PlannableComponent[],
    ackers: number,
  ): readonly DraftWorker[] {
    if (workers.length === 0) return [];
    const pages = this.#components.get(id) ?? [];
    const missing = components.filter((one) => !pages.some((page) => page.id === one.id));
    const counts = new Map([
      ...components.map((one) => [one.id, Math.min(one.parallelism, one.tasks ?? one.parallelism)] as const),
      [ACKER, ackers] as const,
    ]);
    const tasks = numberTasks([
      ...components.map((one) => [one.id, one.tasks ?? one.parallelism] as const),
      [ACKER, ackers] as const,
    ]);
    const waiting = new Map<string, [number, number][]>();
    for (const { component, range } of computeExecutors(tasks, counts)) {
      waiting.set(component, [...(waiting.get(component) ?? []), [range[0], range[1]]]);
    }
    if (missing.length > 0)
      this.#notes.add(
        `Which executors of ${id} are in which worker is counted from tasks per worker: no component page says more.`,
      );
    const hostOf = (supervisorId: string): string | undefined => this.#supervisors.get(supervisorId)?.host;
    return workers
      .map(({ supervisorId, port, componentNumTasks = {} }): DraftWorker => {
        const executors: [number, number][] = [];
        for (const [component, open] of waiting) {
          const page = pages.find((one) => one.id === component);
          if (page === undefined) executors.push(...taken(open, componentNumTasks[component] ?? 0));
          else {
            const here = page.executorStats.filter(
              (one) => one.port === port && one.host === hostOf(supervisorId),
            );
            const ids = new Set(here.map((one) => one.id));
            executors.push(...open.filter(([first, last]) => ids.has(`[${first}-${last}]`)));
          }
        }
        return { supervisor: supervisorId, port, executors };
      })
      .filter(({ executors }) => executors.length > 0);
  }
}

/** Executors from the front of `open` that have so many tasks together; removed from there. */
function taken(open: [number, number][], tasks: number): [number, number][] {
  const executors: [number, number][] = [];
  let left = tasks;
  for (let index = 0; index < open.length && left > 0; ) {
    const [first, last] = open[index]!;
    if (last - first + 1 > left) index++;
    else {
      left -= last - first + 1;
      executors.push(...open.splice(index, 1));
    }
  }
  return executors;
}

function portsFor(used: ReadonlySet<number>, count: number): readonly number[] {
  const ports = new Set([...used].slice(0, count));
  for (let port = FIRST_PORT; ports.size < count; port++) ports.add(port);
  return [...ports].sort((a, b) => a - b);
}

function resourcesOf({
  requestedCpu = 0,
  requestedMemOnHeap = 0,
  requestedMemOffHeap = 0,
}: Pick<
  TopologyAnswer['bolts'][number],
  'requestedCpu' | 'requestedMemOnHeap' | 'requestedMemOffHeap'
>): RequestedResources {
  return { cpuPercent: requestedCpu, onHeapMb: requestedMemOnHeap, offHeapMb: requestedMemOffHeap };
}

function configuredAckers({ configuration = {}, workersTotal }: TopologyAnswer): number {
  const ackers = configuration['topology.acker.executors'];
  return typeof ackers === 'number' && Number.isInteger(ackers) && ackers >= 0 ? ackers : workersTotal;
}

function settingsOf({ configuration = {}, workersTotal }: TopologyAnswer, ackers: number): RawSettings {
  const workers = configuration['topology.workers'];
  const wanted =
    typeof workers === 'number' && Number.isInteger(workers) && workers >= 1
      ? workers
      : Math.max(1, workersTotal);
  return { 'topology.workers': wanted, 'topology.ackers': ackers };
}

function numberOf<K extends string>(
  configuration: Readonly<Record<string, unknown>>,
  key: string,
  name: K,
): Partial<Record<K, number>> {
  const value = configuration[key];
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return {};
  const found: Partial<Record<K, number>> = {};
  found[name] = value;
  return found;
}

function kindOf(grouping: string): (typeof GROUPINGS)[number] {
  const name = stormGrouping(grouping);
  return GROUPINGS.find((one) => one === name) ?? 'shuffle';
}

function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
