import { describe, expect, it } from 'vitest';
import { metricsConsumerIds } from './system-components.js';
import { type Graph, type SystemTopologyOptions, systemTopology } from './system-topology.js';

const user: Graph = new Map([
  ['s', { kind: 'spout', streams: new Map([['default', { fields: ['word'], direct: false }]]), inputs: [] }],
  [
    'b',
    { kind: 'bolt', streams: new Map(), inputs: [{ source: 's', stream: 'default', grouping: 'shuffle' }] },
  ],
]);
const plain: SystemTopologyOptions = { eventLogger: false, metricsConsumers: [], upstreamFeedback: false };

function sourcesOf(graph: Graph, id: string): string[] {
  return graph.get(id)?.inputs.map(({ source, stream }) => `${source}.${stream}`) ?? [];
}

describe('the system topology', () => {
  it('keeps the user graph as it was', () => {
    const before = JSON.stringify([...user].map(([id, { streams, inputs }]) => [id, [...streams], inputs]));
    const graph = systemTopology(user, plain);
    expect(JSON.stringify([...user].map(([id, { streams, inputs }]) => [id, [...streams], inputs]))).toBe(
      before,
    );
    expect(graph.get('s')?.streams.get('default')?.fields).toEqual(['word']);
    expect(sourcesOf(graph, 'b')).toEqual(['s.default']);
  });

  it('feeds the event logger from every component that exists by then, the acker included', () => {
    const graph = systemTopology(user, { ...plain, eventLogger: true });
    expect(sourcesOf(graph, '__eventlogger')).toEqual(['s.__eventlog', 'b.__eventlog', '__acker.__eventlog']);
    expect([...(graph.get('__eventlogger')?.streams.keys() ?? [])]).toEqual(['__metrics', '__system']);
  });

  it('feeds metrics consumers from all but each other, and from __system', () => {
    const consumers = [
      { className: 'M', parallelism: 1 },
      { className: 'M', parallelism: 2 },
    ];
    const graph = systemTopology(user, { ...plain, eventLogger: true, metricsConsumers: consumers });
    const expected = ['s', 'b', '__acker', '__eventlogger', '__system'].map((id) => `${id}.__metrics`);
    expect(sourcesOf(graph, '__metrics_M')).toEqual(expected);
    expect(sourcesOf(graph, '__metrics_M#2')).toEqual(expected);
    expect(metricsConsumerIds([...consumers, { className: 'N', parallelism: 1 }])).toEqual([
      '__metrics_M',
      '__metrics_M#2',
      '__metrics_N',
    ]);
  });

  it('gives feedback streams to what exists before the metrics consumers', () => {
    const consumers = [{ className: 'M', parallelism: 1 }];
    const graph = systemTopology(user, { ...plain, metricsConsumers: consumers, upstreamFeedback: true });
    const withFeedback = [...graph].filter(([, { streams }]) => streams.has('__feedback')).map(([id]) => id);
    expect(withFeedback).toEqual(['s', 'b', '__acker']);
    expect(graph.get('__system')?.streams.has('__feedback_tick')).toBe(true);
  });
});
