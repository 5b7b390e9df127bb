/**
 * Steps 1 and 2 of the pipeline for a submitted topology: description and settings → workers, tasks and executors of
 * every component, `__acker` included. Stricter than Storm where Storm runs nothing in silence: a component without
 * tasks is an error here. Whatever is adjusted is reported as a sentence.
 */
import { ACKER, IsobarError, type Settings } from '../base/index.js';
import type { ComponentDescription, SubscriptionDescription } from '../topology/index.js';
import { ackerCount } from './ackers.js';
import type { ComponentTasks } from './assignment.js';
import { computeExecutors, type PlannedExecutor } from './executors.js';
import { numberTasks } from './numbering.js';
import { type ComponentCounts, exceededLimit, normaliseComponent } from './parallelism.js';
import type { ClusterComponent, RequestedResources } from './resources.js';
import { DEFAULT_SHARING_GROUP, slotCounts } from './slot-sharing/index.js';
import { requestAfter, requestOfSettings } from './placement-rules.js';

/** What of a topology's description decides its counts and its placement. */
export interface PlannableTopology {
  readonly name: string;
  readonly components: readonly PlannableComponent[];
  /** What one acker asks for; not given: what the settings say of every executor. */
  readonly ackerResources?: RequestedResources;
}

export interface PlannableComponent
  extends Pick<
    ComponentDescription,
    | 'id'
    | 'kind'
    | 'parallelism'
    | 'tasks'
    | 'movable'
    | 'stateful'
    | 'slotSharingGroup'
    | 'coLocationGroup'
    | 'load'
  > {
  readonly subscriptions: readonly (Pick<SubscriptionDescription, 'source'> & {
    readonly grouping: Pick<SubscriptionDescription['grouping'], 'kind'>;
  })[];
  /** Upper limit of its tasks; not given: `topology.max-task-parallelism`. */
  readonly maxTasks?: number;
  /** What one executor asks for; not given: what the settings say. */
  readonly resources?: RequestedResources;
}

/** The counts of a topology, ready to be placed. */
export interface TopologyPlan {
  /** Workers wanted. */
  readonly topologyWorkers: number;
  /** Numbering of all components that have tasks, in order of first task. */
  readonly tasks: readonly ComponentTasks[];
  /** In order of first task. */
  readonly executors: readonly PlannedExecutor[];
  /** Those that have executors, with what a strategy wants to know of them; in order of first task. */
  readonly components: readonly ClusterComponent[];
  /** Acker executors (and tasks); 0: acking is off. */
  readonly ackers: number;
  /** One sentence for each count that differs from what was asked for. */
  readonly adjustments: readonly string[];
}

/** What a rebalance has asked for; whatever is not given is as submitted. Tasks, those of `__acker` included, never change. */
export interface DesiredCounts {
  readonly workers?: number;
  /** Executors by component; there will be no more than tasks. */
  readonly executors: Readonly<Record<string, number>>;
  /** Of one executor, by component and by name as in {@link RESOURCE_NAMES}. */
  readonly resources?: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const MAX_PARALLELISM = 1_000_000;
/** Bounds the memory that one submission can take from a daemon. */
const MAX_TASKS_PER_TOPOLOGY = 10_000_000;

/**
 * Plans a topology.
 *
 * @throws PARALLELISM_ILLEGAL, TOO_MANY_WORKERS, TOO_MANY_EXECUTORS
 */
export function planTopology(
  description: PlannableTopology,
  settings: Settings,
  desired: DesiredCounts = AS_SUBMITTED,
): TopologyPlan {
  const adjustments: string[] = [];
  const components = description.components.map((component) => {
    checkCount(description.name, component, 'parallelism', component.parallelism);
    if (component.tasks !== null) checkCount(description.name, component, 'tasks', component.tasks);
    const submitted = normaliseComponent({
      id: component.id,
      hint: component.parallelism,
      tasks: component.tasks ?? settings['topology.tasks'],
      maxTasks: component.maxTasks ?? settings['topology.max-task-parallelism'],
    });
    if (submitted.tasks < 1) throw withoutTasks(description.name, component.id);
    const counts = withExecutors(submitted, executorsAsked(desired, component.id));
    adjustments.push(...adjustmentsOf(component, counts, settings));
    return counts;
  });
  const submittedWorkers = workersWanted(description, components, settings['topology.workers']);
  const workers = desired.workers ?? submittedWorkers;
  checkLimits(description.name, workers, components, settings);

  const ackers = ackerCount({ setting: settings['topology.ackers'], workers: submittedWorkers });
  const askedAckers = executorsAsked(desired, ACKER) ?? ackers;
  if (askedAckers > ackers) adjustments.push(fewerExecutors(ACKER, ackers, askedAckers));
  const tasks = numberTasks([...components.map(({ id, tasks }) => [id, tasks] as const), [ACKER, ackers]]);
  const executors = computeExecutors(
    tasks,
    new Map([...components.map(({ id, executors }) => [id, executors] as const), [ACKER, askedAckers]]),
  );
  if (workers > executors.length) {
    adjustments.push(
      `${desired.workers === undefined ? 'topology.workers is' : 'The workers wanted are'} ${workers}, but there are ${executors.length} executors: at most ${executors.length} workers will run.`,
    );
  }
  const clusterComponents = clusterComponentsOf(description, tasks, settings).map((component) => ({
    ...component,
    resources: requestAfter(component.resources, desired.resources?.[component.id]),
  }));
  return { topologyWorkers: workers, tasks, executors, components: clusterComponents, ackers, adjustments };
}

/** `max-parallelism` stands for the sum over slot sharing groups of their largest parallelism. */
function workersWanted(
  { components }: PlannableTopology,
  counts: readonly ComponentCounts[],
  setting: number | string,
): number {
  if (typeof setting === 'number') return setting;
  const vertices = components.map(({ id, slotSharingGroup = DEFAULT_SHARING_GROUP }, index) => ({
    id,
    parallelism: Math.max(1, counts[index]!.executors),
    slotSharingGroup,
    coLocationGroup: null,
  }));
  const slots = slotCounts({ vertices, edges: [] }, 'max-parallelism');
  return [...slots.values()].reduce((sum, count) => sum + count, 0);
}

/** Low-level facts of components for strategies. A spout may be moved only if its author says so. */
function clusterComponentsOf(
  { components, ackerResources }: PlannableTopology,
  tasks: readonly ComponentTasks[],
  settings: Settings,
): ClusterComponent[] {
  const byId = new Map(components.map((component) => [component.id, component]));
  return tasks.map(({ component: id }): ClusterComponent => {
    const component = byId.get(id);
    if (component === undefined)
      return { id, kind: 'system', resources: ackerResources ?? requestOfSettings(settings) };
    const { kind, movable, stateful, subscriptions, slotSharingGroup, coLocationGroup, load } = component;
    return {
      id,
      kind,
      resources: component.resources ?? requestOfSettings(settings, load),
      inputs: subscriptions.map(({ source, grouping }) => ({ from: source, grouping: grouping.kind })),
      isMovable: movable || (kind === 'bolt' && !stateful),
      ...(stateful ? { isStateful: true } : {}),
      ...(slotSharingGroup === undefined ? {} : { slotSharingGroup }),
      ...(coLocationGroup === undefined ? {} : { coLocationGroup }),
      ...(load === undefined ? {} : { load }),
    };
  });
}

const AS_SUBMITTED: DesiredCounts = { executors: {} };

function executorsAsked({ executors }: DesiredCounts, component: string): number | undefined {
  return Object.hasOwn(executors, component) ? executors[component] : undefined;
}

function withExecutors(counts: ComponentCounts, asked: number | undefined): ComponentCounts {
  if (asked === undefined) return counts;
  return { ...counts, storedExecutors: asked, executors: Math.min(asked, counts.tasks) };
}

function checkCount(topology: string, component: PlannableComponent, what: string, value: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= MAX_PARALLELISM) return;
  throw new IsobarError(
    'PARALLELISM_ILLEGAL',
    `Component "${component.id}" of topology "${topology}" has ${what} ${String(value)}; expected a whole number from 1 to ${MAX_PARALLELISM}.`,
    {
      expected: `a whole number from 1 to ${MAX_PARALLELISM}`,
      found: String(value),
      where: `${component.id}.${what}`,
    },
  );
}

function withoutTasks(topology: string, component: string): IsobarError {
  return new IsobarError(
    'PARALLELISM_ILLEGAL',
    `Component "${component}" of topology "${topology}" would have no task, because topology.tasks is 0; it would never run.`,
    { expected: 'at least 1 task', found: '0', where: 'topology.tasks' },
  );
}

function adjustmentsOf(component: PlannableComponent, counts: ComponentCounts, settings: Settings): string[] {
  const sentences: string[] = [];
  const asked = component.tasks ?? settings['topology.tasks'] ?? component.parallelism;
  if (counts.tasks < asked) {
    sentences.push(
      `Component "${component.id}" has ${plural(counts.tasks, 'task')} instead of ${asked}, because topology.max-task-parallelism is ${counts.tasks}.`,
    );
  }
  if (counts.executors < counts.storedExecutors) {
    sentences.push(fewerExecutors(component.id, counts.tasks, counts.storedExecutors));
  }
  return sentences;
}

function fewerExecutors(component: string, tasks: number, asked: number): string {
  return `Component "${component}" has ${plural(tasks, 'executor')} instead of ${asked}, because it has ${plural(tasks, 'task')}.`;
}

function checkLimits(
  topology: string,
  workers: number,
  components: readonly ComponentCounts[],
  settings: Settings,
): void {
  const executors = components.reduce((sum, { storedExecutors }) => sum + storedExecutors, 0);
  const exceeded = exceededLimit(
    { workers, executors },
    {
      maxWorkers: settings['nimbus.slots-per-topology'],
      maxExecutors: settings['nimbus.executors-per-topology'],
    },
  );
  if (exceeded !== undefined) {
    const [code, setting] =
      exceeded.what === 'workers'
        ? (['TOO_MANY_WORKERS', 'nimbus.slots-per-topology'] as const)
        : (['TOO_MANY_EXECUTORS', 'nimbus.executors-per-topology'] as const);
    throw new IsobarError(
      code,
      `Topology "${topology}" asks for ${plural(exceeded.asked, exceeded.what.slice(0, -1))}; ${setting} allows ${exceeded.limit}.`,
      { expected: `at most ${exceeded.limit}`, found: String(exceeded.asked), where: exceeded.what },
    );
  }
  const tasks = components.reduce((sum, component) => sum + component.tasks, 0);
  if (tasks > MAX_TASKS_PER_TOPOLOGY) {
    throw new IsobarError(
      'PARALLELISM_ILLEGAL',
      `Topology "${topology}" asks for ${tasks} tasks in all; at most ${MAX_TASKS_PER_TOPOLOGY} are possible.`,
      { expected: `at most ${MAX_TASKS_PER_TOPOLOGY} tasks`, found: String(tasks), where: 'tasks' },
    );
  }
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
