/**
 * What users ask for: submitting a topology, and steering one that is there. Every request is one record written under
 * a version; whatever has to follow from it is decided by Nimbus's next step, also if this process ends in between.
 */
import {
  aliasNotes,
  type Clock,
  closestName,
  hasCode,
  IsobarError,
  type Logger,
  type RawSettings,
  type Settings,
} from '../base/index.js';
import {
  type Coordination,
  isTerminal,
  type TopologyPhase,
  type TopologyRecord,
} from '../coordination/index.js';
import { canonicalDescription } from '../topology/index.js';
import { blobHash, type BlobStore } from './blob-store.js';
import type { ClusterView } from './cluster-view.js';
import type { KnownTopology } from './known-topology.js';
import type { Serial } from './serial.js';
import {
  type LifeEvent,
  type LifeStatus,
  statusOf,
  transition,
  transitionIllegal,
} from './status-machine.js';
import { type CheckedSubmission, topologyId } from './submission.js';
import { unsatisfiableNotes } from './unsatisfiable-notes.js';

const SECRET_BYTES = 32;
/** Topologies that have ended and are still shown. */
const KEPT_ENDED = 16;
const MAX_NAMES_SHOWN = 10;

export interface SubmitRequest {
  /** A topology description; checked here, whoever sends it. */
  readonly description: unknown;
  /** The bundle: one ES module. */
  readonly code: Uint8Array | string;
  readonly sourceMap?: Uint8Array | string;
  /** Laid over the settings that the file gives. */
  readonly settings: RawSettings;
  /** Submit it inactive: its spouts read nothing until it is activated. */
  readonly inactive?: boolean;
  /** The same in every attempt to send this one request. */
  readonly requestId?: string;
}

export interface SubmitResult {
  readonly topologyId: string;
  /** What was adjusted and what the description warns of. */
  readonly notes: readonly string[];
}

/** A decision about a topology: the record that follows, if one does. */
export interface Changed<T> {
  readonly record?: TopologyRecord;
  readonly result: T;
}

/** What became of a request that changes the life of a topology. */
export interface LifeResult {
  readonly topologyId: string;
  readonly status: LifeStatus;
  /** false: it was so already. */
  readonly isChanged: boolean;
  /** Time until the next step that the status waits for; null: it waits for nothing. */
  readonly waitMs: number | null;
}

export interface TopologyRequestsOptions {
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  readonly view: ClusterView;
  /** The cluster's. */
  readonly settings: Settings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Shared with whatever removes blobs: none may go between its check and the record that names it. */
  readonly serial: Serial;
  /** Source of secrets. */
  randomBytes(count: number): Uint8Array;
  /** Resolves when what was marked stale in the view has been read. */
  refresh(): Promise<void>;
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
  store(request: SubmitRequest, checked: CheckedSubmission): Promise<SubmitResult> {
    return this.#options.serial.run(() => this.#store(request, checked));
  }

  /**
   * Takes an event to the topology of a name.
   *
   * @throws TOPOLOGY_NOT_ALIVE, TRANSITION_ILLEGAL
   */
  async send(name: string, eventFor: (known: KnownTopology) => LifeEvent): Promise<LifeResult> {
    const { clock } = this.#options;
    return this.change(name, (known) => {
      const event = eventFor(known);
      const now = clock.moment();
      const result = transition(known.record.phase, event, now);
      if (result.kind === 'refused') throw transitionIllegal(name, known.record.phase, event);
      if (result.kind === 'stays') return { result: lifeResult(known.record, false) };
      const { desired } = result;
      const record: TopologyRecord = {
        ...known.record,
        phase: result.phase,
        phaseSinceMs:
          result.phase === known.record.phase ? phaseSinceMs(known.record) : Math.floor(now.wallMs),
        ...(desired === undefined ? {} : { desired }),
      };
      return { record, result: lifeResult(record, true) };
    });
  }

  /** Changes the phase of the topology that is alive under a name, whatever users may ask for. @throws TOPOLOGY_NOT_ALIVE */
  async setPhase(name: string, change: (phase: TopologyPhase) => TopologyPhase): Promise<void> {
    await this.change(name, ({ record }) => {
      if (isTerminal(record.phase)) throw this.#notAlive(name);
      const phase = change(record.phase);
      if (phase === record.phase) return { result: undefined };
      const phaseSinceMs = Math.floor(this.#options.clock.wallMs());
      return { record: { ...record, phase, phaseSinceMs }, result: undefined };
    });
  }

  /**
   * Decides about the topology of a name and writes what was decided; decides again when the record has changed meanwhile.
   *
   * @throws TOPOLOGY_NOT_ALIVE, and what `decide` throws
   */
  async change<T>(
    name: string,
    decide: (known: KnownTopology) => Changed<T> | Promise<Changed<T>>,
  ): Promise<T> {
    for (;;) {
      const known = this.named(name);
      const before = known.record;
      const { record, result } = await decide(known);
      // Deciding may take a while, in which somebody else can have written another one.
      if (record !== undefined && known.record !== before) continue;
      if (record === undefined || (await this.write(known, record))) return result;
      await this.#options.refresh();
    }
  }

  /** Writes a record over the one that is known. Resolves to false, with the view marked, if another one was written. */
  async write(known: KnownTopology, record: TopologyRecord): Promise<boolean> {
    const { coordination, view, logger } = this.#options;
    const { version } = known;
    try {
      await coordination.updateTopology(record, version);
    } catch (error) {
      if (!hasCode(error, 'VERSION_CONFLICT') && !hasCode(error, 'NODE_MISSING')) throw error;
      view.markTopologies([known.id]);
      return false;
    }
    if (record.phase !== known.record.phase) {
      const { phase } = record;
      logger.info('topology.phase', {
        topology: known.id,
        phase: phase.kind,
        ...(phase.kind === 'ending' ? { stage: phase.stage } : {}),
        ...(phase.kind === 'failed' ? { code: phase.error.code, message: phase.error.message } : {}),
      });
    }
    view.setRecord(known, record, version + 1);
    return true;
  }

  /** The topology that is alive under a name, or else the last one that was. @throws TOPOLOGY_NOT_ALIVE */
  named(name: string): KnownTopology {
    const { view } = this.#options;
    const ended = view.named(name).filter(({ record }) => record.phase.kind !== 'removed');
    const found =
      view.aliveNamed(name) ?? ended.sort((a, b) => b.record.submittedMs - a.record.submittedMs)[0];
    if (found === undefined) throw this.#notAlive(name);
    return found;
  }

  #notAlive(name: string): IsobarError {
    const names = this.#options.view.names.filter((one) => this.#options.view.aliveNamed(one) !== undefined);
    const closest = closestName(name, names);
    const shown = names.slice(0, MAX_NAMES_SHOWN).join(', ');
    const more = names.length > MAX_NAMES_SHOWN ? ` and ${names.length - MAX_NAMES_SHOWN} more` : '';
    return new IsobarError(
      'TOPOLOGY_NOT_ALIVE',
      `no topology named "${name}" is alive${closest === undefined ? '' : `; did you mean "${closest}"?`}`,
      { expected: names.length === 0 ? 'no topology is alive' : `${shown}${more}`, found: name, where: name },
    );
  }

  async #store(request: SubmitRequest, checked: CheckedSubmission): Promise<SubmitResult> {
    const { view, logger, clock, settings: cluster } = this.#options;
    const { description, raw, settings, plan } = checked;
    const { name } = description;
    const notes = [
      ...description.warnings,
      ...aliasNotes(raw),
      ...plan.adjustments,
      ...unsatisfiableNotes({ id: name, plan, settings }, view.supervisors, cluster),
    ];
    const former = view.named(name);
    const alive = former.find(({ record }) => !isTerminal(record.phase));
    if (alive !== undefined) {
      if (request.requestId !== undefined && alive.record.requestId === request.requestId) {
        return { topologyId: alive.id, notes };
      }
      throw new IsobarError('TOPOLOGY_ALREADY_ALIVE', `a topology named "${name}" is alive (${alive.id})`, {
        found: statusOf(alive.record.phase),
        where: alive.id,
      });
    }
    const code = toBytes(request.code);
    const descriptionText = toBytes(canonicalDescription(description));
    const hashes = { codeHash: blobHash(code), descriptionHash: blobHash(descriptionText) };
    const { blobStore } = this.#options;
    await blobStore.put(code);
    if (request.sourceMap !== undefined) {
      await blobStore.putSourceMap(hashes.codeHash, toBytes(request.sourceMap));
    }
    await blobStore.put(descriptionText);
    const submittedMs = Math.floor(clock.wallMs());
    const record = await this.#createRecord({
      name,
      submittedMs,
      ...hashes,
      settings: raw,
      secret: Buffer.from(this.#options.randomBytes(SECRET_BYTES)).toString('hex'),
      phase: request.inactive === true ? { kind: 'inactive' } : { kind: 'active' },
      ...(request.requestId === undefined ? {} : { requestId: request.requestId }),
    });
    await view.add(record, 0, { description, settings, plan });
    logger.info('topology.submitted', { topology: record.id, workers: plan.topologyWorkers });
    await this.#removeEnded(former);
    return { topologyId: record.id, notes };
  }

  async #createRecord(parts: Omit<TopologyRecord, 'id'>): Promise<TopologyRecord> {
    for (;;) {
      const id = topologyId(parts.name, ++this.#submitted, Math.floor(parts.submittedMs / 1000));
      try {
        const record: TopologyRecord = { id, ...parts };
        await this.#options.coordination.createTopology(record);
        return record;
      } catch (error) {
        // The counter starts anew with each Nimbus, so within one second an id may have been given out before.
        if (!hasCode(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  /** Lets topologies go that have ended: those of the name, and all but the newest. Keeps no submission from succeeding. */
  async #removeEnded(former: readonly KnownTopology[]): Promise<void> {
    const { view, logger } = this.#options;
    const ended = [...view.inPhase('finished'), ...view.inPhase('failed'), ...view.inPhase('stopped')].sort(
      (a, b) => b.record.submittedMs - a.record.submittedMs,
    );
    const others = ended.filter((known) => !former.includes(known)).slice(KEPT_ENDED);
    for (const known of [...ended.filter((one) => former.includes(one)), ...others]) {
      try {
        await this.write(known, { ...known.record, phase: { kind: 'removed' } });
      } catch (error) {
        // A record that is still there is removed at the next submission.
        logger.warn('topology.not-removed', { topology: known.id, message: String(error) });
      }
    }
  }
}

function lifeResult(record: TopologyRecord, isChanged: boolean): LifeResult {
  const { id, phase } = record;
  return {
    topologyId: id,
    status: statusOf(phase),
    isChanged,
    waitMs: 'wait' in phase ? phase.wait.waitMs : null,
  };
}

export function phaseSinceMs({ phaseSinceMs: sinceMs, submittedMs }: TopologyRecord): number {
  return sinceMs ?? submittedMs;
}

function toBytes(content: Uint8Array | string): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content) : content;
}
