/**
 * What users ask for: submitting a topology, and changing the phase of one that is alive. Every request is one record
 * written under a version; whatever has to follow from it is decided by Nimbus's next step.
 */
import { hasCode, IsobarError, type Logger, type RawSettings } from '../base/index.js';
import {
  type Coordination,
  isTerminal,
  type TopologyPhase,
  type TopologyRecord,
} from '../coordination/index.js';
import { canonicalDescription } from '../topology/index.js';
import type { BlobStore } from './blob-store.js';
import { totalsName } from './known-topology.js';
import { type CheckedSubmission, topologyId } from './submission.js';

const SECRET_BYTES = 32;
/** Topologies that have ended and are still shown. */
const KEPT_ENDED = 16;

export interface SubmitRequest {
  /** A topology description; checked here, whoever sends it. */
  readonly description: unknown;
  /** The bundle: one ES module. */
  readonly code: Uint8Array | string;
  readonly sourceMap?: Uint8Array | string;
  /** Laid over the settings that the file gives. */
  readonly settings: RawSettings;
}

export interface SubmitResult {
  readonly topologyId: string;
  /** What was adjusted and what the description warns of. */
  readonly notes: readonly string[];
}

export interface TopologyRequestsOptions {
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  readonly logger: Logger;
  wallMs(): number;
  /** Source of secrets. */
  randomBytes(count: number): Uint8Array;
}

export class TopologyRequests {
  readonly #options: TopologyRequestsOptions;
  #submitted = 0;

  constructor(options: TopologyRequestsOptions) {
    this.#options = options;
  }

  /**
   * Stores a checked submission; one at a time, since whether a name is alive must not change before the record is
   * written. Topologies of the same name that have ended give way to it.
   *
   * @throws TOPOLOGY_ALREADY_ALIVE, STATE_DIRECTORY_UNUSABLE
   */
  async store(request: SubmitRequest, checked: CheckedSubmission): Promise<SubmitResult> {
    const { coordination, blobStore, logger } = this.#options;
    const { description, raw, plan } = checked;
    const { name } = description;
    const stored = await coordination.listTopologies();
    const former = stored.filter(({ value }) => value.name === name);
    const alive = former.find(({ value }) => !isTerminal(value.phase))?.value;
    if (alive !== undefined) {
      throw new IsobarError('TOPOLOGY_ALREADY_ALIVE', `a topology named "${name}" is alive (${alive.id})`, {
        found: alive.phase.kind,
        where: alive.id,
      });
    }
    const codeHash = await blobStore.put(toBytes(request.code));
    if (request.sourceMap !== undefined) await blobStore.putSourceMap(codeHash, toBytes(request.sourceMap));
    const descriptionHash = await blobStore.put(toBytes(canonicalDescription(description)));
    const record = await this.#createRecord({
      name,
      codeHash,
      descriptionHash,
      settings: raw,
      secret: Buffer.from(this.#options.randomBytes(SECRET_BYTES)).toString('hex'),
      phase: { kind: 'active' },
    });
    logger.info('topology.submitted', { topology: record.id, workers: plan.topologyWorkers });
    const others = stored
      .filter(({ value }) => value.name !== name && isTerminal(value.phase))
      .sort((a, b) => b.value.submittedMs - a.value.submittedMs);
    await this.#removeEnded([...former, ...others.slice(KEPT_ENDED)].map(({ value }) => value));
    return { topologyId: record.id, notes: [...description.warnings, ...plan.adjustments] };
  }

  /** Changes the phase of the topology that is alive under a name. @throws TOPOLOGY_NOT_ALIVE */
  async setPhase(name: string, change: (phase: TopologyPhase) => TopologyPhase): Promise<void> {
    const { coordination, logger } = this.#options;
    for (;;) {
      const found = (await coordination.listTopologies()).find(
        ({ value }) => value.name === name && !isTerminal(value.phase),
      );
      if (found === undefined) {
        throw new IsobarError('TOPOLOGY_NOT_ALIVE', `no topology named "${name}" is alive`, { where: name });
      }
      const phase = change(found.value.phase);
      if (phase === found.value.phase) return;
      try {
        await coordination.updateTopology({ ...found.value, phase }, found.version);
        logger.info('topology.phase', { topology: found.value.id, phase: phase.kind });
        return;
      } catch (error) {
        // Its phase has moved on meanwhile: decide again on the new one.
        if (!hasCode(error, 'VERSION_CONFLICT') && !hasCode(error, 'NODE_MISSING')) throw error;
      }
    }
  }

  async #createRecord(parts: Omit<TopologyRecord, 'id' | 'submittedMs'>): Promise<TopologyRecord> {
    for (;;) {
      const submittedMs = Math.floor(this.#options.wallMs());
      const id = topologyId(parts.name, ++this.#submitted, Math.floor(submittedMs / 1000));
      try {
        const record: TopologyRecord = { id, submittedMs, ...parts };
        await this.#options.coordination.createTopology(record);
        return record;
      } catch (error) {
        // The counter starts anew with each Nimbus, so within one second an id may have been given out before.
        if (!hasCode(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  /** Removes topologies that have ended, with blobs that no other record names. Keeps no submission from succeeding. */
  async #removeEnded(records: readonly TopologyRecord[]): Promise<void> {
    const { coordination, blobStore, logger } = this.#options;
    for (const { id, codeHash, descriptionHash } of records) {
      try {
        await coordination.removeTopology(id);
        await blobStore.removeDocument(totalsName(id));
        const kept = await coordination.listTopologies();
        const used = new Set(kept.flatMap(({ value }) => [value.codeHash, value.descriptionHash]));
        for (const hash of [codeHash, descriptionHash]) if (!used.has(hash)) await blobStore.remove(hash);
      } catch (error) {
        // A record that is still there is removed at the next submission.
        logger.warn('topology.not-removed', { topology: id, message: String(error) });
      }
    }
  }
}

function toBytes(content: Uint8Array | string): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content) : content;
}
