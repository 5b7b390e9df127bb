/**
 * Tells supervisors which last reports of ended workers they may forget: those whose counts are in the stored totals, and
 * those of topologies that have been removed.
 */
import type { Coordination, FoldedHeartbeat } from '../coordination/index.js';

export interface Keeper {
  /** The stored totals of this topology have what that worker counted. */
  keeps(workerId: string): boolean;
}

export class LastReportDesk {
  readonly #coordination: Pick<Coordination, 'acknowledgeLastReports' | 'readTopology'>;
  /** What each supervisor was last told, as text. */
  readonly #told = new Map<string, string>();

  constructor(coordination: Pick<Coordination, 'acknowledgeLastReports' | 'readTopology'>) {
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
  ): Promise<void> {
    for (const { supervisorId, lastReports } of heartbeats) {
      if (lastReports.length === 0) continue;
      const kept: string[] = [];
      for (const { workerId, topologyId } of lastReports) {
        const keeper = keeperOf(topologyId);
        if (keeper?.keeps(workerId) === true) kept.push(workerId);
        // Unknown here may be not yet known: the coordinator says which.
        else if (keeper === undefined && (await this.#isRemoved(topologyId))) kept.push(workerId);
      }
      const text = kept.join('\n');
      if (kept.length === 0 || this.#told.get(supervisorId) === text) continue;
      await this.#coordination.acknowledgeLastReports(supervisorId, kept);
      this.#told.set(supervisorId, text);
    }
  }

  async #isRemoved(topologyId: string): Promise<boolean> {
    return (await this.#coordination.readTopology(topologyId)) === undefined;
  }
}
