/**
 * The system topology: a user's graph with everything that Storm adds to it (ackers, event loggers, metrics consumers,
 * `__system`, and their streams and inputs). Isobar's runtime has its own wiring; this is the shape that Storm's clients
 * see and that Storm's validation is about.
 * Source: Storm's `StormCommon.systemTopologyImpl`.
 */
import { ACKER, EVENT_LOGGER, SYSTEM } from '../base/index.js';
import { type MetricsConsumer, metricsConsumerIds } from './system-components.js';

export interface GraphStream {
  readonly fields: readonly string[];
  readonly direct: boolean;
}

export interface GraphInput {
  readonly source: string;
  readonly stream: string;
  /** `fields:a,b`, `direct`, `shuffle`, … */
  readonly grouping: string;
}

export interface GraphComponent {
  readonly kind: 'spout' | 'bolt';
  readonly streams: ReadonlyMap<string, GraphStream>;
  readonly inputs: readonly GraphInput[];
}

/** Components by id. */
export type Graph = ReadonlyMap<string, GraphComponent>;

export interface SystemTopologyOptions {
  /** Is there an event logger (a count above 0, or none given)? */
  readonly eventLogger: boolean;
  readonly metricsConsumers: readonly MetricsConsumer[];
  readonly upstreamFeedback: boolean;
}

interface OpenComponent {
  readonly kind: 'spout' | 'bolt';
  readonly streams: Map<string, GraphStream>;
  readonly inputs: GraphInput[];
}

const ACK_STREAMS = ['__ack_ack', '__ack_fail', '__ack_reset_timeout'] as const;

/** Builds the system topology; the user's graph is not changed. The acker is declared even where acking is off. */
export function systemTopology(user: Graph, options: SystemTopologyOptions): Graph {
  const graph = new Map<string, OpenComponent>();
  for (const [id, { kind, streams, inputs }] of user) {
    graph.set(id, { kind, streams: new Map(streams), inputs: [...inputs] });
  }
  addAcker(graph);
  if (options.eventLogger) addEventLogger(graph);
  if (options.upstreamFeedback) addStreamToAll(graph, '__feedback', ['task-info', 'feedback']);
  addMetricsConsumers(graph, options.metricsConsumers);
  addSystem(graph, options.upstreamFeedback);
  addStreamToAll(graph, '__metrics', ['task-info', 'data-points']);
  addStreamToAll(graph, '__system', ['event']);
  return graph;
}

function addAcker(graph: Map<string, OpenComponent>): void {
  const acker = newBolt();
  for (const stream of ACK_STREAMS)
    acker.streams.set(stream, { fields: ['id', 'time-delta-ms'], direct: true });
  for (const [id, component] of graph) {
    const received = component.kind === 'spout' ? ['__ack_init'] : ACK_STREAMS;
    for (const stream of received) acker.inputs.push({ source: id, stream, grouping: 'fields:id' });
    if (component.kind === 'spout') {
      component.streams.set('__ack_init', stream('id', 'init-val', 'spout-task'));
      for (const name of ACK_STREAMS)
        component.inputs.push({ source: ACKER, stream: name, grouping: 'direct' });
    } else {
      component.streams.set('__ack_ack', stream('id', 'ack-val'));
      component.streams.set('__ack_fail', stream('id'));
      component.streams.set('__ack_reset_timeout', stream('id'));
    }
  }
  graph.set(ACKER, acker);
}

function addEventLogger(graph: Map<string, OpenComponent>): void {
  const logger = newBolt();
  for (const [id, component] of graph) {
    component.streams.set('__eventlog', stream('component-id', 'message-id', 'ts', 'values'));
    logger.inputs.push({ source: id, stream: '__eventlog', grouping: 'fields:component-id' });
  }
  graph.set(EVENT_LOGGER, logger);
}

function addMetricsConsumers(graph: Map<string, OpenComponent>, consumers: readonly MetricsConsumer[]): void {
  const sources = [...graph.keys(), SYSTEM];
  for (const id of metricsConsumerIds(consumers)) {
    const consumer = newBolt();
    for (const source of sources) consumer.inputs.push({ source, stream: '__metrics', grouping: 'shuffle' });
    graph.set(id, consumer);
  }
}

function addSystem(graph: Map<string, OpenComponent>, upstreamFeedback: boolean): void {
  const system = newBolt();
  system.streams.set('__tick', stream('rate_secs'));
  system.streams.set('__flush', stream());
  system.streams.set('__metrics_tick', stream('interval'));
  if (upstreamFeedback) system.streams.set('__feedback_tick', stream('interval'));
  graph.set(SYSTEM, system);
}

function addStreamToAll(graph: Map<string, OpenComponent>, name: string, fields: readonly string[]): void {
  for (const component of graph.values()) component.streams.set(name, stream(...fields));
}

function newBolt(): OpenComponent {
  return { kind: 'bolt', streams: new Map(), inputs: [] };
}

function stream(...fields: string[]): GraphStream {
  return { fields, direct: false };
}
