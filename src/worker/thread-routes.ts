/**
 * Where an executor thread sends: its links to other threads, the rings that it reads, and what each executor must know of
 * its receivers. Renewed whenever the worker's main thread sends routes, and when tasks of this thread come or go.
 */
import { toErrorRecord } from '../base/index.js';
import { Doorbell, RingReader, RingWriter } from '../messaging/index.js';
import type { ExecutorFactory } from './executor-factory.js';
import { HeldTasks } from './held-tasks.js';
import { Link, OutPort, type Gate } from './link.js';
import { preferredTargets } from './local-preference.js';
import type { Edge, Output } from './outputs.js';
import type { EmittingTask } from './task-out.js';
import type { EndpointRoute, FromThread, ThreadStart, ToThread } from './thread-messages.js';

type RoutesMessage = Extract<ToThread, { kind: 'routes' }>;

/** An executor as routes see it. */
export interface RoutedExecutor {
  readonly tasks: readonly EmittingTask[];
  setGates(gates: readonly Gate[], cycleGates: readonly Gate[]): void;
}

export interface Inbound {
  readonly reader: RingReader;
  /** Endpoint id of the sending thread; null: frames of peers, forwarded by the main thread. */
  readonly endpoint: number | null;
}

/** Where an edge leads from one place. */
interface Receivers {
  /** Targets to keep to; null: all. */
  readonly preferred: Int32Array | null;
  readonly gates: ReadonlySet<Gate>;
}

export class ThreadRoutes {
  inbound: readonly Inbound[];
  links: readonly Link[] = [];
  readonly held: HeldTasks;
  readonly #start: ThreadStart;
  readonly #factory: ExecutorFactory;
  readonly #post: (message: FromThread) => void;
  readonly #mainPort: OutPort;
  #routes: RoutesMessage | undefined;
  /** By edge and place of its senders, while executors are connected. */
  readonly #receivers = new Map<string, Receivers>();
  readonly #preferred = new Map<string, Int32Array>();

  constructor(start: ThreadStart, factory: ExecutorFactory, post: (message: FromThread) => void) {
    this.#start = start;
    this.#factory = factory;
    this.#post = post;
    this.held = new HeldTasks(factory, post);
    const mainDoorbell = new Doorbell(start.mainDoorbell);
    this.#mainPort = new OutPort(new RingWriter(start.toMain, mainDoorbell));
    this.inbound = [{ reader: new RingReader(start.fromMain, mainDoorbell), endpoint: null }];
  }

  /** Takes new routes in. Returns whether a task has come to another place. */
  apply(routes: RoutesMessage, executors: readonly RoutedExecutor[]): boolean {
    const before = this.#routes?.endpointOfTask;
    this.#renewLinks(routes);
    this.#routes = routes;
    const sendOn = this.held.apply(routes, this.#ownEndpoint(routes));
    this.connect(executors);
    sendOn();
    this.#factory.context.deliverHomeless();
    return routes.endpointOfTask.some((id, task) => id >= 0 && id !== before?.[task]);
  }

  #renewLinks(routes: RoutesMessage): void {
    const { context } = this.#factory;
    const alive = new Set(routes.endpoints.map((endpoint) => endpoint.id));
    for (const [id, link] of context.links) {
      if (alive.has(id)) continue;
      link.close();
      context.links.delete(id);
      for (const cycle of context.cycles) cycle.forget(id);
    }
    const inbound = this.inbound.filter(({ endpoint }) => endpoint === null || alive.has(endpoint));
    for (const endpoint of routes.endpoints) {
      context.newestEndpoint = Math.max(context.newestEndpoint, endpoint.id - 1);
      if (context.links.has(endpoint.id)) continue;
      if (endpoint.peer < 0 && endpoint.outgoing === null) continue;
      context.addLink(this.#createLink(endpoint));
      if (endpoint.incoming !== null) {
        inbound.push({
          reader: new RingReader(endpoint.incoming, new Doorbell(endpoint.doorbell!)),
          endpoint: endpoint.id,
        });
      }
    }
    this.inbound = inbound;
    this.links = [...context.links.values()];
  }

  #ownEndpoint({ endpoints }: RoutesMessage): number {
    const { index, generation } = this.#start;
    const own = endpoints.find(
      (endpoint) => endpoint.peer < 0 && endpoint.thread === index && endpoint.generation === generation,
    );
    return own?.id ?? -1;
  }

  /** Points tasks at links, restricts shuffles to near targets where that stays even, and renews the gates. */
  connect(executors: readonly RoutedExecutor[]): void {
    const routes = this.#routes;
    if (routes === undefined) return;
    const { context } = this.#factory;
    const { endpointOfTask } = routes;
    const onTheirWay = new Set(routes.held.map(({ task }) => task));
    context.linkOfTask = [];
    for (let task = 0; task < endpointOfTask.length; task++) {
      context.linkOfTask[task] =
        endpointOfTask[task]! < 0 ? undefined : context.links.get(endpointOfTask[task]!);
    }
    for (const { component, first, last } of routes.tasks) {
      const index = context.componentIndex.get(component);
      if (index === undefined) continue;
      let reachable = true;
      for (let task = first; task <= last; task++)
        if (endpointOfTask[task]! < 0 && !onTheirWay.has(task)) reachable = false;
      context.reachable[index]!.blocked = !reachable;
    }
    this.#receivers.clear();
    for (const executor of executors) this.#connectExecutor(executor, routes);
  }

  #connectExecutor(executor: RoutedExecutor, routes: RoutesMessage): void {
    const { context } = this.#factory;
    const gates = new Set<Gate>();
    const cycleGates = new Set<Gate>();
    for (const task of executor.tasks) {
      for (const { edge, router } of outputsOf(task)) {
        const receivers = this.#receiversOf(edge, task.number, routes);
        router.setLocal(receivers.preferred);
        const into = edge.inCycle ? cycleGates : gates;
        into.add(context.reachable[edge.targetComponent]!);
        if (edge.inCycle) into.add(context.cycles[edge.cycle]!.gate);
        for (const gate of receivers.gates) into.add(gate);
      }
    }
    executor.setGates([...gates], [...cycleGates]);
  }

  /** The same for all senders of an edge in one place: thousands of senders may have thousands of receivers. */
  #receiversOf(edge: Edge, sourceTask: number, routes: RoutesMessage): Receivers {
    const place = routes.endpointOfTask[sourceTask] ?? -1;
    const key = `${edge.subscription}/${place}`;
    const known = this.#receivers.get(key);
    if (known !== undefined) return known;
    const { context } = this.#factory;
    const preferred = this.#unlessSame(
      key,
      preferredTargets(edge, sourceTask, routes, (component) => this.#factory.tasksOf(component)),
    );
    const gates = new Set<Gate>();
    const count = preferred === null ? edge.taskCount : preferred.length;
    for (let i = 0; i < count; i++) {
      const target = edge.firstTask + (preferred === null ? i : preferred[i]!);
      const local = context.localTargets[target];
      const gate =
        local === undefined
          ? context.linkOfTask[target]?.gate(edge.creditClass)
          : edge.inCycle
            ? local.cycleGate
            : local.gate;
      if (gate !== undefined) gates.add(gate);
    }
    const receivers = { preferred, gates };
    this.#receivers.set(key, receivers);
    return receivers;
  }

  /** The former list where nothing has changed, so that no sender need compare the two. */
  #unlessSame(key: string, preferred: Int32Array | null): Int32Array | null {
    const before = this.#preferred.get(key);
    if (preferred === null) this.#preferred.delete(key);
    else if (before?.length === preferred.length && before.every((target, i) => target === preferred[i]))
      return before;
    else this.#preferred.set(key, preferred);
    return preferred;
  }

  #createLink(endpoint: EndpointRoute): Link {
    const { context, codecs } = this.#factory;
    const { settings } = context.options;
    const port =
      endpoint.outgoing === null
        ? this.#mainPort
        : new OutPort(new RingWriter(endpoint.outgoing, new Doorbell(endpoint.doorbell!)));
    return new Link({
      id: endpoint.id,
      peer: endpoint.peer,
      targetThread: endpoint.thread,
      targetGeneration: endpoint.generation,
      sourceThread: this.#start.index,
      sourceGeneration: this.#start.generation,
      port,
      creditClasses: context.creditClasses,
      cycles: context.cycles.length,
      credit: settings['messaging.credit'],
      batchRows: settings['messaging.batch-rows'],
      maxRowBytes: settings['messaging.max-frame-bytes'] >> 1,
      onRefused: (error, sourceTask, rootTask, rootGeneration, rootSequence, several) => {
        this.#post({
          kind: 'error',
          error: {
            component: this.#factory.componentOf(sourceTask),
            task: sourceTask,
            error: toErrorRecord(error),
          },
        });
        if (several !== null) context.failSeveral(several, 'user', sourceTask);
        else if (rootTask !== 0) context.fail(rootTask, rootGeneration, rootSequence, 'user', sourceTask);
      },
      codecs,
    });
  }
}

function outputsOf(task: EmittingTask): readonly Output[] {
  return [...task.streams.values()].flatMap((stream) => stream.outputs);
}
