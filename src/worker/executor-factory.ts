/**
 * Builds executors from the rebuilt topology: codecs, edges, task runners with their user code. One factory per thread.
 */
import type { Logger } from '../base/index.js';
import { createRowCodec, type RowCodec } from '../messaging/index.js';
import type { ComponentTasks } from '../scheduling/index.js';
import { cycleComponents, graphStages, listSubscriptions, type TaskContext } from '../topology/index.js';
import { DeadLetterWriter } from './acking/dead-letters.js';
import { BoltExecutor } from './bolt-executor.js';
import { BoltTaskRunner, reportUserError } from './bolt-task.js';
import { C_GENERATION, COUNTER_FIELDS, openCounters } from './counters.js';
import { createOutputs, type Edge } from './outputs.js';
import { orderKeys, RowViews, takingOnly } from './row-views.js';
import { compileFieldHash } from './routing/field-hash.js';
import { SpoutExecutor, SpoutTaskRunner } from './spout-executor.js';
import { SpoutSource } from './spout-source.js';
import type { ThreadContext } from './thread-context.js';
import type { ExecutorStart } from './thread-messages.js';

export interface ExecutorFactory {
  readonly context: ThreadContext;
  /** By subscription: codec of what its receiver is given. */
  readonly codecs: readonly RowCodec[];
  /** By subscription. */
  readonly edges: readonly Edge[];
  /** Bolt executors of this thread, by task number. */
  readonly boltOfTask: (BoltExecutor | undefined)[];
  /** User counters by component. */
  readonly userCounters: Map<string, Map<string, number>>;
  readonly abort: AbortController;
  tasksOf(component: string): ComponentTasks | undefined;
  /** Component of a task; empty for system tasks. */
  componentOf(task: number): string;
  /** Larger for components nearer to the sinks. */
  depthOf(component: string): number;
  /** Takes the tasks of a stopped executor out of all tables. */
  forget(executor: BoltExecutor | SpoutExecutor): void;
  readonly streamCodecs: ReadonlyMap<string, readonly { readonly name: string; readonly codec: RowCodec }[]>;
  readonly logger: Logger;
}

export type StartedExecutor =
  | { readonly kind: 'bolt'; readonly executor: BoltExecutor }
  | { readonly kind: 'spout'; readonly executor: SpoutExecutor };

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
  const factory: ExecutorFactory = {
    context,
    codecs: edges.map((edge) => edge.codec),
    edges,
    boltOfTask: [],
    userCounters: new Map(),
    abort: new AbortController(),
    tasksOf: (component) => tasksByComponent.get(component),
    componentOf: (task) => tasks.find(({ first, last }) => first <= task && task <= last)?.component ?? '',
    depthOf: (component) => depth.get(component) ?? 0,
    forget(executor) {
      for (const task of executor.tasks) {
        factory.boltOfTask[task.number] = undefined;
        context.localTargets[task.number] = undefined;
        context.localRoots[task.number] = undefined;
        if (context.aloneTask === task.number) context.aloneTask = 0;
      }
    },
    streamCodecs,
    logger,
  };
  return factory;
}

/** Builds one executor and opens its tasks. Rejects with what user code threw. */
export async function createExecutor(
  factory: ExecutorFactory,
  start: ExecutorStart,
): Promise<StartedExecutor> {
  const definition = factory.context.options.topology.components.get(start.component)!;
  return definition.kind === 'bolt' ? createBolt(factory, start) : createSpout(factory, start);
}

async function createBolt(factory: ExecutorFactory, start: ExecutorStart): Promise<StartedExecutor> {
  const { context } = factory;
  const [first, last] = start.range;
  const component = context.component(start.component);
  const definition = context.options.topology.components.get(start.component)!;
  if (definition.kind !== 'bolt') throw new TypeError(`"${start.component}" is not a bolt`);
  const block = openCounters(start.counters, last - first + 1);
  const edgesOut = factory.edges.filter((edge) => edge.source === start.component);
  const edgesIn = factory.edges.filter((edge) => edge.target === start.component);
  const tasks: BoltTaskRunner[] = [];
  for (let number = first; number <= last; number++) {
    const task = await definition.create(taskContext(factory, start.component, number), undefined);
    const handlers: BoltTaskRunner['handlers'][number][] = [];
    for (const edge of edgesIn) {
      handlers[edge.subscription] = takingOnly(edge, component, task.process[edge.input]!);
    }
    const counterBase = (number - first) * COUNTER_FIELDS;
    block.counters[counterBase + C_GENERATION] = context.options.generation;
    tasks.push(
      new BoltTaskRunner({
        number,
        component: start.component,
        context,
        streams: createOutputs(
          factory.streamCodecs.get(start.component)!,
          edgesOut,
          taskIndex(factory, start.component, number),
          context.options.random,
        ),
        counters: block.counters,
        counterBase,
        task,
        handlers,
      }),
    );
  }
  const isCycleEdge: boolean[] = [];
  const keyHashes: ((row: Readonly<Record<string, unknown>>) => number)[] = [];
  for (const edge of edgesIn) {
    isCycleEdge[edge.subscription] = edge.inCycle;
    const fields = orderKeys(component, edge.grouping);
    if (fields.length > 0) {
      keyHashes[edge.subscription] = compileFieldHash(
        edge.codec.fields.filter((field) => fields.includes(field.name)),
      );
    }
  }
  let expectedEndMarks = 0;
  for (const edge of edgesIn) {
    const senders = factory.tasksOf(edge.source);
    if (senders !== undefined) expectedEndMarks += senders.last - senders.first + 1;
  }
  const executor = new BoltExecutor({
    component,
    context,
    firstTask: first,
    tasks,
    block,
    isCycleEdge,
    keyHashes,
    expectedEndMarks,
  });
  for (const task of tasks) {
    factory.boltOfTask[task.number] = executor;
    context.localTargets[task.number] = executor;
    context.localRoots[task.number] = task;
  }
  return { kind: 'bolt', executor };
}

async function createSpout(factory: ExecutorFactory, start: ExecutorStart): Promise<StartedExecutor> {
  const { context } = factory;
  const { settings, clock, topologyId, deadLetterDirectory } = context.options;
  const [first, last] = start.range;
  const definition = context.options.topology.components.get(start.component)!;
  if (definition.kind !== 'spout') throw new TypeError(`"${start.component}" is not a spout`);
  const block = openCounters(start.counters, last - first + 1);
  const edgesOut = factory.edges.filter((edge) => edge.source === start.component);
  const tasks: SpoutTaskRunner[] = [];
  for (let number = first; number <= last; number++) {
    const counterBase = (number - first) * COUNTER_FIELDS;
    block.counters[counterBase + C_GENERATION] = context.options.generation;
    const task = new SpoutTaskRunner({
      number,
      component: start.component,
      context,
      streams: createOutputs(
        factory.streamCodecs.get(start.component)!,
        edgesOut,
        taskIndex(factory, start.component, number),
        context.options.random,
      ),
      counters: block.counters,
      counterBase,
      completeSketch: block.completeSketch,
      crashes: start.crashes.find(([task]) => task === number)?.[1] ?? 0,
      deadLetters: new DeadLetterWriter({
        directory: deadLetterDirectory,
        topologyId,
        component: start.component,
        task: number,
      }),
    });
    const stored = start.positions.find((position) => position.task === number);
    task.source = new SpoutSource({
      spout: definition,
      context: taskContext(factory, start.component, number),
      from: stored?.position,
      clock,
      settings,
      out: task,
      onError: (error, call) => reportUserError(task, error, call),
      wake: context.options.wake,
    });
    context.localRoots[number] = task;
    tasks.push(task);
  }
  return { kind: 'spout', executor: new SpoutExecutor(context.component(start.component), tasks) };
}

function taskIndex(factory: ExecutorFactory, component: string, task: number): number {
  return task - (factory.tasksOf(component)?.first ?? task);
}

function taskContext(factory: ExecutorFactory, component: string, task: number): TaskContext {
  const { options } = factory.context;
  const tasks = factory.tasksOf(component);
  return {
    topology: options.topology.description.name,
    component,
    task,
    index: taskIndex(factory, component, task),
    count: tasks === undefined ? 1 : tasks.last - tasks.first + 1,
    generation: options.generation,
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
