/**
 * What Nimbus writes to its own disk behind its decisions, never in their way: totals of topologies and the history of events.
 * Once something is on disk, supervisors are told that they may forget what they kept for it.
 */
import type { Clock, Logger } from '../base/index.js';
import type { Coordination, FoldedHeartbeat } from '../coordination/index.js';
import type { BlobStore } from './blob-store.js';
import type { ClusterView } from './cluster-view.js';
import type { EventJournal } from './events/event-journal.js';
import type { KnownTopology } from './known-topology.js';
import { LastReportDesk } from './last-reports.js';

/** Totals are written at most so often; an event journal that could not be saved is tried again after as long. */
const SAVE_INTERVAL_MS = 1000;

export interface DeferredSavesOptions {
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  readonly journal: EventJournal;
  readonly view: ClusterView;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Another step is due. */
  readonly wake: () => void;
  /** Another step is due in so many ms at the latest. */
  readonly wakeIn: (delayMs: number) => void;
}

export class DeferredSaves {
  readonly #options: DeferredSavesOptions;
  /** Topologies whose totals would be lost with this process. */
  readonly #unsaved = new Set<KnownTopology>();
  readonly #lastReports: LastReportDesk;
  #mustAcknowledge = false;
  #saving: Promise<void> | undefined;
  #savingEvents: Promise<void> | undefined;
  #savedMs = -Infinity;

  constructor(options: DeferredSavesOptions) {
    this.#options = options;
    this.#lastReports = new LastReportDesk(options.coordination);
  }

  /** Its totals have changed. */
  add(known: KnownTopology): void {
    this.#unsaved.add(known);
  }

  /** It is gone, and its totals with it. */
  forget(known: KnownTopology): void {
    this.#unsaved.delete(known);
  }

  noteHeartbeats(heartbeats: readonly FoldedHeartbeat[]): void {
    this.#mustAcknowledge ||= heartbeats.some(
      ({ lastReports, events = [] }) => lastReports.length > 0 || events.length > 0,
    );
  }

  /** The coordinator may have forgotten what was acknowledged. */
  reset(): void {
    this.#lastReports.reset();
  }

  /** @throws COORDINATOR_UNAVAILABLE */
  async acknowledge(): Promise<void> {
    if (!this.#mustAcknowledge) return;
    this.#mustAcknowledge = false;
    const { view, journal } = this.#options;
    const keeperOf = (topologyId: string): KnownTopology | undefined => view.topologies.get(topologyId);
    await this.#lastReports.acknowledge(view.heartbeats, keeperOf, journal);
  }

  /** Begins to write what has changed and is not being written. */
  begin(): void {
    this.#beginTotals();
    this.#beginEvents();
  }

  /** Resolves when what is being written is on disk, and the history with it if this Nimbus leads. */
  async close(isLeader: boolean): Promise<void> {
    await this.#saving;
    if (isLeader) await this.#options.journal.save();
  }

  #beginEvents(): void {
    const { journal, wake, wakeIn } = this.#options;
    if (this.#savingEvents !== undefined || !journal.isUnsaved) return;
    this.#savingEvents = journal.save().finally(() => {
      this.#savingEvents = undefined;
      this.#mustAcknowledge = true;
      if (journal.isUnsaved) wakeIn(SAVE_INTERVAL_MS);
      else wake();
    });
  }

  #beginTotals(): void {
    if (this.#saving !== undefined || this.#unsaved.size === 0) return;
    const waitMs = this.#savedMs + SAVE_INTERVAL_MS - this.#options.clock.nowMs();
    if (waitMs > 0) {
      this.#options.wakeIn(waitMs);
      return;
    }
    this.#saving = this.#saveTotals().finally(() => (this.#saving = undefined));
  }

  async #saveTotals(): Promise<void> {
    const { blobStore, clock, logger, wake } = this.#options;
    this.#savedMs = clock.nowMs();
    for (const known of [...this.#unsaved]) {
      this.#unsaved.delete(known);
      if (known.record.phase.kind === 'removed') continue;
      try {
        await known.saveTotals(blobStore);
        this.#mustAcknowledge = true;
        wake();
      } catch (error) {
        this.#unsaved.add(known);
        logger.warn('totals.not-saved', { topology: known.id, message: String(error) });
      }
    }
  }
}
