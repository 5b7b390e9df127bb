/**
 * Builds tasks from the rebuilt topology: codecs, edges, task runners with their user code. One factory per thread.
 */
import { readFile, rm } from 'node:fs/promises';
import { deserialize } from 'node:v8';
import type { Logger } from '../base/index.js';
import { createRowCodec, type RowCodec } from '../messaging/index.js';
import type { ComponentTasks } from '../scheduling/index.js';
import {
  cycleComponents,
  graphStages,
  listSubscriptions,
  type RuntimeBolt,
  type RuntimeSpout,
  type TaskContext,
} from '../topology/index.js';
import { DeadLetterWriter } from './acking/dead-letters.js';
import type { BoltExecutor, BoltWiring } from './bolt-executor.js';
import { BoltTaskRunner, reportUserError } from './bolt-task.js';
import { openCounters } from './counters.js';
import { SharedGate } from './link.js';
import { createOutputs, type Edge } from './outputs.js';
import { orderKeys, RowViews, takingOnly } from './row-views.js';
import { compileFieldHash } from './routing/field-hash.js';
import { SpoutTaskRunner } from './spout-task.js';
import { SpoutSource } from './spout-source.js';
import { componentOf } from './task-book.js';
import type { ThreadContext } from './thread-context.js';
import type { TaskStart } from './thread-messages.js';
import { inCall } from './user-calls.js';

export interface ExecutorFactory {
  readonly context: ThreadContext;
  /** By subscription: codec of what its receiver is given. */
  readonly codecs: readonly RowCodec[];
  /** By subscription. */
  readonly edges: readonly Edge[];
  edgesFrom(component: string): readonly Edge[];
  edgesTo(component: string): readonly Edge[];
  /** Bolt executors of this thread, by task number. */
  readonly boltOfTask: (BoltExecutor | undefined)[];
  /** User counters by component. */
  readonly userCounters: Map<string, Map<string, number>>;
  readonly abort: AbortController;
  /** Highest number of any task, system tasks included. */
  readonly lastTask: number;
  tasksOf(component: string): ComponentTasks | undefined;
  /** Component of a task; empty for system tasks. */
  componentOf(task: number): string;
  /** Larger for components nearer to the sinks. */
  depthOf(component: string): number;
  /** Takes a stopped task out of all tables. */
  forget(task: number): void;
  readonly streamCodecs: ReadonlyMap<string, readonly { readonly name: string; readonly codec: RowCodec }[]>;
  readonly logger: Logger;
}

/** A task that has been created and is in no executor yet. */
export type CreatedTask =
  | { readonly kind: 'bolt'; readonly task: BoltTaskRunner }
  | { readonly kind: 'spout'; readonly task: SpoutTaskRunner };

export function createFactory(
  context: ThreadContext,
  tasks: readonly ComponentTasks[],
  logger: Logger,
): ExecutorFactory {
  const { topology } = context.options;
  const { description } = topology;
  const streamCodecs = new Map(
    description.components.map((component) => [
      component.id,
      component.streams.map((stream) => ({ name: stream.name, codec: createRowCodec(stream.fields) })),
    ]),
  );
  const tasksByComponent = new Map(tasks.map((entry) => [entry.component, entry]));
  const cycles = cycleComponents(description);
  const views = new RowViews();
  const edges = listSubscriptions(description).map((subscription): Edge => {
    const targetTasks = tasksByComponent.get(subscription.target);
    const stream = streamCodecs
      .get(subscription.source)!
      .find(({ name }) => name === subscription.stream)!.codec;
    const view = views.of(subscription, context.component(subscription.target), stream);
    const inCycle =
      cycles.has(subscription.target) && cycles.get(subscription.target) === cycles.get(subscription.source);
    return {
      subscription: subscription.index,
      input: subscription.input,
      source: subscription.source,
      stream: subscription.stream,
      target: subscription.target,
      targetComponent: context.componentIndex.get(subscription.target)!,
      inCycle,
      cycle: inCycle ? cycles.get(subscription.target)! : -1,
      creditClass:
        context.componentIndex.get(subscription.target)! + (inCycle ? description.components.length : 0),
      grouping: subscription.grouping,
      codec: view.codec,
      narrow: view.narrow,
      customGrouping: topology.customGroupings.get(`${subscription.target}#${subscription.place}`),
      firstTask: targetTasks?.first ?? 0,
      taskCount: targetTasks === undefined ? 0 : targetTasks.last - targetTasks.first + 1,
    };
  });
  const depth = new Map<string, number>();
  graphStages(description).forEach((stage, index) => {
    for (const component of stage) depth.set(component, index);
  });
  // Tables by task number without holes: the data path reads them for every row.
  const lastTask = tasks.reduce((last, entry) => Math.max(last, entry.last), 0);
  for (let task = context.localTargets.length; task <= lastTask; task++) {
    context.localTargets.push(undefined);
    context.localRoots.push(undefined);
  }
  const edgesBySource = new Map<string, Edge[]>(description.components.map(({ id }) => [id, []]));
  const edgesByTarget = new Map<string, Edge[]>(description.components.map(({ id }) => [id, []]));
  for (const edge of edges) {
    edgesBySource.get(edge.source)!.push(edge);
    edgesByTarget.get(edge.target)!.push(edge);
  }
  const factory: ExecutorFactory = {
    context,
    codecs: edges.map((edge) => edge.codec),
    edges,
    boltOfTask: new Array<BoltExecutor | undefined>(lastTask + 1).fill(undefined),
    userCounters: new Map(),
    abort: new AbortController(),
    lastTask,
    tasksOf: (component) => tasksByComponent.get(component),
    edgesFrom: (component) => edgesBySource.get(component) ?? [],
    edgesTo: (component) => edgesByTarget.get(component) ?? [],
    componentOf: (task) => componentOf(tasks, task) ?? '',
    depthOf: (component) => depth.get(component) ?? 0,
    forget(task) {
      factory.boltOfTask[task] = undefined;
      context.setTarget(task, undefined);
      context.localRoots[task] = undefined;
      if (context.aloneTask === task) context.aloneTask = 0;
    },
    streamCodecs,
    logger,
  };
  return factory;
}

/** What all executors of a bolt have in common. */
export function wireBolt(factory: ExecutorFactory, component: string): BoltWiring {
  const edgesIn = factory.edgesTo(component);
  const isCycleEdge: boolean[] = [];
  const keyHashes: ((row: Readonly<Record<string, unknown>>) => number)[] = [];
  const inputs: string[] = [];
  let expectedEndMarks = 0;
  for (const edge of edgesIn) {
    isCycleEdge[edge.subscription] = edge.inCycle;
    inputs[edge.subscription] = edge.input;
    const fields = orderKeys(factory.context.component(component), edge.grouping);
    if (fields.length > 0) {
      keyHashes[edge.subscription] = compileFieldHash(
        edge.codec.fields.filter((field) => fields.includes(field.name)),
      );
    }
    const senders = factory.tasksOf(edge.source);
    if (senders !== undefined) expectedEndMarks += senders.last - senders.first + 1;
  }
  return {
    component: factory.context.component(component),
    context: factory.context,
    gate: new SharedGate(),
    cycleGate: new SharedGate(),
    cycle: edgesIn.find(({ inCycle }) => inCycle)?.cycle ?? -1,
    isCycleEdge,
    keyHashes,
    inputs,
    expectedEndMarks,
  };
}

/** Builds one task and opens it. Rejects with what user code threw. */
export async function createTask(factory: ExecutorFactory, start: TaskStart): Promise<CreatedTask> {
  const definition = factory.context.options.topology.components.get(start.component)!;
  return definition.kind === 'bolt'
    ? { kind: 'bolt', task: await createBoltTask(factory, definition, start) }
    : { kind: 'spout', task: createSpoutTask(factory, definition, start) };
}

async function createBoltTask(
  factory: ExecutorFactory,
  definition: RuntimeBolt,
  { task: number, component, counters, generation, saved }: TaskStart,
): Promise<BoltTaskRunner> {
  const { context } = factory;
  const own = taskContext(factory, component, number, generation);
  const state = await readSaved(saved);
  const task = await inCall(context.options.progress, number, 'prepare', () => definition.create(own, state));
  const handlers: BoltTaskRunner['handlers'][number][] = [];
  for (const edge of factory.edgesTo(component))
    handlers[edge.subscription] = takingOnly(edge, context.component(component), task.process[edge.input]!);
  return new BoltTaskRunner({
    number,
    component,
    context,
    streams: outputsOf(factory, component, number),
    block: openCounters(counters),
    generation,
    task,
    handlers,
    description: context.component(component),
  });
}

async function readSaved(saved: TaskStart['saved']): Promise<unknown> {
  if (saved === null) return undefined;
  if (saved.kind === 'bytes') return deserialize(saved.bytes);
  const bytes = await readFile(saved.path);
  // A copy made for this start; another start gets another.
  await rm(saved.path, { force: true });
  return deserialize(bytes);
}

function createSpoutTask(
  factory: ExecutorFactory,
  definition: RuntimeSpout,
  { task: number, component, counters, generation, crashes, position }: TaskStart,
): SpoutTaskRunner {
  const { context } = factory;
  const { settings, clock, topologyId, deadLetterDirectory } = context.options;
  const task = new SpoutTaskRunner({
    number,
    component,
    context,
    streams: outputsOf(factory, component, number),
    block: openCounters(counters),
    generation,
    crashes,
    movable: context.component(component).movable,
    componentOf: (other) => factory.componentOf(other),
    deadLetters: new DeadLetterWriter({
      directory: deadLetterDirectory,
      topologyId,
      component,
      task: number,
    }),
  });
  task.source = new SpoutSource({
    spout: definition,
    context: taskContext(factory, component, number, generation),
    from: position?.position,
    clock,
    settings,
    out: task,
    onError: (error, call) => reportUserError(task, error, call),
    inCall: (call, run) => inCall(context.options.progress, number, call, run),
    wake: context.options.wake,
  });
  return task;
}

function outputsOf(
  factory: ExecutorFactory,
  component: string,
  task: number,
): ReturnType<typeof createOutputs> {
  const { random, progress } = factory.context.options;
  return createOutputs(
    factory.streamCodecs.get(component)!,
    factory.edgesFrom(component),
    taskIndex(factory, component, task),
    random,
    (run) => inCall(progress, task, 'a custom grouping', run),
  );
}

function taskIndex(factory: ExecutorFactory, component: string, task: number): number {
  return task - (factory.tasksOf(component)?.first ?? task);
}

function taskContext(
  factory: ExecutorFactory,
  component: string,
  task: number,
  generation: number,
): TaskContext {
  const { options } = factory.context;
  const tasks = factory.tasksOf(component);
  return {
    topology: options.topology.description.name,
    component,
    task,
    index: taskIndex(factory, component, task),
    count: tasks === undefined ? 1 : tasks.last - tasks.first + 1,
    generation,
    settings: options.settings,
    logger: factory.logger.child({ component, task }),
    metrics: {
      count(name, by = 1) {
        let counters = factory.userCounters.get(component);
        if (counters === undefined) {
          counters = new Map();
          factory.userCounters.set(component, counters);
        }
        counters.set(name, (counters.get(name) ?? 0) + by);
      },
    },
    clock: options.clock,
    signal: factory.abort.signal,
  };
}
