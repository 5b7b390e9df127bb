/**
 * Tells supervisors what they may forget: last reports of ended workers whose counts are in the stored totals, or whose topologies
 * have been removed, and events that are in the stored history.
 */
import { type Coordination, type FoldedHeartbeat, workerEventId } from '../coordination/index.js';

export interface Keeper {
  /** The stored totals of this topology have what that worker counted. */
  keeps(workerId: string): boolean;
}

/** The history, as far as it is stored. */
export interface History {
  keeps(supervisorId: string, number: number): boolean;
}

export class LastReportDesk {
  readonly #coordination: Pick<Coordination, 'acknowledgeReports' | 'readTopology'>;
  /** What each supervisor was last told, as text. */
  readonly #told = new Map<string, string>();

  constructor(coordination: Pick<Coordination, 'acknowledgeReports' | 'readTopology'>) {
    this.#coordination = coordination;
  }

  /** The coordinator may have forgotten: everything that is still there is acknowledged again. */
  reset(): void {
    this.#told.clear();
  }

  /** @throws COORDINATOR_UNAVAILABLE */
  async acknowledge(
    heartbeats: readonly FoldedHeartbeat[],
    keeperOf: (topologyId: string) => Keeper | undefined,
    history: History,
  ): Promise<void> {
    for (const { supervisorId, lastReports, events = [] } of heartbeats) {
      if (lastReports.length === 0 && events.length === 0) continue;
      const kept: string[] = [];
      for (const { workerId, topologyId } of lastReports) {
        const keeper = keeperOf(topologyId);
        if (keeper?.keeps(workerId) === true) kept.push(workerId);
        // Unknown here may be not yet known: the coordinator says which.
        else if (keeper === undefined && (await this.#isRemoved(topologyId))) kept.push(workerId);
      }
      for (const event of events) {
        if (history.keeps(supervisorId, event.number)) kept.push(workerEventId(event));
      }
      const text = kept.join('\n');
      if (kept.length === 0 || this.#told.get(supervisorId) === text) continue;
      await this.#coordination.acknowledgeReports(supervisorId, kept);
      this.#told.set(supervisorId, text);
    }
  }

  async #isRemoved(topologyId: string): Promise<boolean> {
    return (await this.#coordination.readTopology(topologyId)) === undefined;
  }
}
