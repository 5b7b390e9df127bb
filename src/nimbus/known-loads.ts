/**
 * What executors weigh, for rounds of the strategy `balanced`: worked out once for a topology, or once between heartbeats where loads
 * are measured.
 */
import type { Settings } from '../base/index.js';
import type { FoldedHeartbeat } from '../coordination/index.js';
import {
  clusterTopologyOf,
  executorLoads,
  LoadMeter,
  type RoundTopology,
  typicalLoad,
} from '../scheduling/index.js';
import type { ClusterView } from './cluster-view.js';
import type { KnownTopology, LoadedTopology } from './known-topology.js';
import { noteLoads } from './load-samples.js';

export class KnownLoads {
  readonly #view: ClusterView;
  readonly #windowMs: number;
  readonly #areMeasured: boolean;
  readonly #meter = new LoadMeter();
  /** What an executor of weight 1 measures; undefined: to be worked out. */
  #typical: number | undefined;
  #byTopology = new WeakMap<LoadedTopology, (firstTask: number) => number>();

  constructor(view: ClusterView, settings: Settings) {
    this.#view = view;
    this.#windowMs = settings['load-balance.measure-window'];
    this.#areMeasured =
      settings['scheduling.strategy'] === 'balanced' && settings['load-balance.load'] === 'measured';
  }

  noteHeartbeats(heartbeats: readonly FoldedHeartbeat[]): void {
    if (!this.#areMeasured) return;
    noteLoads(this.#meter, heartbeats, this.#windowMs);
    this.#typical = undefined;
    this.#byTopology = new WeakMap();
  }

  /** What a topology's executors weigh, by first task. */
  of({ id, loaded }: KnownTopology): (firstTask: number) => number {
    if (loaded === undefined) return () => 1;
    const known = this.#byTopology.get(loaded);
    if (known !== undefined) return known;
    const loads = executorLoads(clusterTopologyOf({ id, ...loaded, ...this.measured(id) }));
    this.#byTopology.set(loaded, loads);
    return loads;
  }

  /** What a round is told of a topology. */
  measured(topologyId: string): Pick<RoundTopology, 'measured'> {
    if (!this.#areMeasured) return {};
    this.#typical ??= typicalLoad(
      [...this.#view.topologies.values()].flatMap(({ id, loaded }) =>
        loaded === undefined ? [] : [{ ...loaded.plan, byTask: this.#meter.of(id) }],
      ),
    );
    return { measured: { byTask: this.#meter.of(topologyId), typical: this.#typical } };
  }

  forget(topologyId: string): void {
    this.#meter.forget(topologyId);
  }

  clear(): void {
    this.#meter.clear();
    this.#byTopology = new WeakMap();
  }
}
