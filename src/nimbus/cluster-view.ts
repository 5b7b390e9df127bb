/**
 * What the leading Nimbus knows of the cluster, as last read or written: topologies with their assignments, supervisors,
 * and what they report.
 *
 * W1  Only what a watch has named is read again, so that a change costs the same however many topologies there are.
 *     Without names, at the beginning and after a reconnect, everything is read.
 * W2  What was read is older than what was written meanwhile: of two versions the higher one stands.
 * W3  Nothing is deleted from here. Forgetting a topology whose record is gone only means to stop deciding about it.
 */
import type { ErrorRecord, Logger, Settings } from '../base/index.js';
import {
  type Coordination,
  type FoldedHeartbeat,
  isTerminal,
  type SlotReport,
  type SupervisorRecord,
  type TopologyPhase,
  type TopologyRecord,
  type Versioned,
} from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { BlobStore } from './blob-store.js';
import { HeartbeatView } from './heartbeat-view.js';
import { KnownTopology, type LoadedTopology } from './known-topology.js';

/** Topologies that are read again in each periodic check although nothing was heard of them. */
const CHECKED_PER_PERIOD = 100;
const LOADED_AT_ONCE = 32;
/** A heartbeat is written every few seconds, so one that a watch missed is soon followed by another. */
const PERIODS_UNTIL_ALL_HEARTBEATS = 6;

export interface ClusterViewOptions {
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  /** The cluster's settings; the first layer of every topology's. */
  readonly settings: Settings;
  readonly logger: Logger;
  /** Wall clock, ms; not given: nobody asks since when a topology could not be loaded. */
  wallMs?(): number;
  /** Called with every record that is new here, and with supervisors whenever they have been read. */
  onRecord?(record: TopologyRecord): void;
  onSupervisors?(records: readonly SupervisorRecord[]): void;
  onNotLoaded?(record: TopologyRecord, problem: ErrorRecord): void;
}

/** What a read has found. */
export interface ViewChanges {
  /** Ids of topologies whose record or assignment is another one, or that are new. */
  readonly topologies: ReadonlySet<string>;
  /** Slots or places of supervisors have changed. */
  readonly places: boolean;
  /** Heartbeats that are new. */
  readonly heartbeats: readonly FoldedHeartbeat[];
  /** Ids of topologies that are reported about in them, or were until now. */
  readonly reported: ReadonlySet<string>;
}

/** What a supervisor says of one of its slots. */
export interface Report {
  readonly supervisorId: string;
  readonly slot: SlotReport;
}

/** Names to read again, or all. */
type Stale = 'all' | Set<string>;

export class ClusterView {
  readonly #options: ClusterViewOptions;
  readonly #topologies = new Map<string, KnownTopology>();
  readonly #byName = new Map<string, Set<KnownTopology>>();
  /** Topologies with more than one slot. */
  #spread = 0;
  readonly #slotHolders = new Map<string, KnownTopology>();
  readonly #slotsOfSupervisor = new Map<string, number>();
  /** How many records name a blob. */
  readonly #blobUses = new Map<string, number>();
  readonly #byPhase = new Map<TopologyPhase['kind'], Set<KnownTopology>>();
  #supervisors: readonly SupervisorRecord[] = [];
  readonly #heartbeats: HeartbeatView;
  #staleTopologies: Stale = 'all';
  #areSupervisorsStale = true;
  #periods = 0;
  #mustCheckNames = false;
  #checkedUpTo = 0;

  constructor(options: ClusterViewOptions) {
    this.#options = options;
    this.#heartbeats = new HeartbeatView(options.coordination);
  }

  /** In order of id. */
  get topologies(): ReadonlyMap<string, KnownTopology> {
    return this.#topologies;
  }

  get supervisors(): readonly SupervisorRecord[] {
    return this.#supervisors;
  }

  get heartbeats(): readonly FoldedHeartbeat[] {
    return this.#heartbeats.all;
  }

  heartbeatOf(supervisorId: string): FoldedHeartbeat | undefined {
    return this.#heartbeats.of(supervisorId);
  }

  /** Supervisors that some topology is assigned a slot of. */
  get assignedSupervisors(): ReadonlySet<string> {
    return new Set(this.#slotsOfSupervisor.keys());
  }

  /** Names of topologies that are assigned slots of a supervisor. */
  namesOn(supervisorId: string): readonly string[] {
    const holds = ({ assignment }: KnownTopology): boolean =>
      assignment?.slots.some(({ supervisor }) => supervisor === supervisorId) === true;
    return [...this.#topologies.values()].filter(holds).map(({ record }) => record.name);
  }

  /** Who holds a slot, by `supervisor:port`. */
  holderOf(slot: string): KnownTopology | undefined {
    return this.#slotHolders.get(slot);
  }

  /** Has any topology more than one slot? */
  get hasSpread(): boolean {
    return this.#spread > 0;
  }

  /** Slots that report something of a topology, also those that it is not assigned any more. */
  reportsOf(topologyId: string): readonly Report[] {
    return this.#heartbeats
      .reportsOf(topologyId)
      .flatMap(({ supervisorId, slots }) => slots.map((slot) => ({ supervisorId, slot })));
  }

  inPhase(kind: TopologyPhase['kind']): readonly KnownTopology[] {
    return [...(this.#byPhase.get(kind) ?? [])];
  }

  /** All of this name, those that have ended included. */
  named(name: string): readonly KnownTopology[] {
    return [...(this.#byName.get(name) ?? [])];
  }

  /** The topology of this name that is alive. */
  aliveNamed(name: string): KnownTopology | undefined {
    return this.named(name).find(({ record }) => !isTerminal(record.phase));
  }

  /** Names that are taken. */
  get names(): readonly string[] {
    return [...this.#byName.keys()];
  }

  isBlobUsed(hash: string): boolean {
    return this.#blobUses.has(hash);
  }

  // ── what has to be read ──

  /** @param ids not given: any */
  markTopologies(ids?: readonly string[]): void {
    if (ids === undefined) this.#staleTopologies = 'all';
    else if (this.#staleTopologies !== 'all') for (const id of ids) this.#staleTopologies.add(id);
  }

  markSupervisors(): void {
    this.#areSupervisorsStale = true;
  }

  /** @param supervisorIds not given: any */
  markHeartbeats(supervisorIds?: readonly string[]): void {
    this.#heartbeats.markStale(supervisorIds);
  }

  markAll(): void {
    this.markTopologies();
    this.markSupervisors();
    this.markHeartbeats();
  }

  /** What a watch may have missed: names that are not known, a part of the topologies, and everything else. */
  markPeriodically(): void {
    this.#mustCheckNames = true;
    this.markSupervisors();
    if (++this.#periods % PERIODS_UNTIL_ALL_HEARTBEATS === 0) this.markHeartbeats();
    for (const known of this.#topologies.values()) {
      if (known.loadProblem !== undefined) this.markTopologies([known.id]);
    }
  }

  /** Forgets everything: another Nimbus has led meanwhile. */
  clear(): void {
    for (const known of [...this.#topologies.values()]) this.forget(known);
    this.#supervisors = [];
    this.#heartbeats.clear();
    this.markAll();
  }

  // ── reading ──

  /** Reads what has to be read. What was marked stays marked when a read fails. @throws what `Coordination` throws */
  async read(): Promise<ViewChanges> {
    const topologies = new Set<string>();
    if (this.#mustCheckNames) await this.#checkNames();
    if (this.#staleTopologies === 'all') await this.#readAll(topologies);
    else if (this.#staleTopologies.size > 0) await this.#readNamed(topologies);
    let places = false;
    if (this.#areSupervisorsStale) {
      this.#areSupervisorsStale = false;
      places = await this.#readSupervisors();
    }
    const { heartbeats, topologies: reported } = await this.#heartbeats.refresh();
    // Reports that came before their topology was known count for it now.
    for (const id of new Set([...reported, ...topologies])) {
      const known = this.#topologies.get(id);
      if (known !== undefined) this.#noteReports(known);
    }
    return { topologies, places, heartbeats, reported };
  }

  async #checkNames(): Promise<void> {
    this.#mustCheckNames = false;
    const ids = await this.#options.coordination.listTopologyIds();
    const listed = new Set(ids);
    this.markTopologies(ids.filter((id) => !this.#topologies.has(id)));
    const known = [...this.#topologies.keys()];
    this.markTopologies(known.filter((id) => !listed.has(id)));
    const from = this.#checkedUpTo < known.length ? this.#checkedUpTo : 0;
    this.markTopologies(known.slice(from, from + CHECKED_PER_PERIOD));
    this.#checkedUpTo = from + CHECKED_PER_PERIOD;
  }

  async #readAll(changed: Set<string>): Promise<void> {
    const { coordination } = this.#options;
    const before = new Map([...this.#topologies.values()].map(({ id, version }) => [id, version]));
    this.#staleTopologies = new Set();
    try {
      const records = await coordination.listTopologies();
      const assignments = new Map((await coordination.listAssignments()).map((one) => [one.topologyId, one]));
      const listed = new Set(records.map(({ value }) => value.id));
      for (const [id, version] of before) {
        if (!listed.has(id)) this.#forgetUnlessWritten(id, version, changed);
      }
      for (let from = 0; from < records.length; from += LOADED_AT_ONCE) {
        const part = records.slice(from, from + LOADED_AT_ONCE);
        await Promise.all(part.map((one) => this.#take(one, assignments.get(one.value.id), changed)));
      }
    } catch (error) {
      this.#staleTopologies = 'all';
      throw error;
    }
  }

  async #readNamed(changed: Set<string>): Promise<void> {
    const { coordination } = this.#options;
    const ids = this.#staleTopologies === 'all' ? [] : [...this.#staleTopologies];
    this.#staleTopologies = new Set();
    try {
      for (let from = 0; from < ids.length; from += LOADED_AT_ONCE) {
        await Promise.all(
          ids.slice(from, from + LOADED_AT_ONCE).map(async (id) => {
            const version = this.#topologies.get(id)?.version;
            const assignment = await coordination.readAssignment(id);
            const record = await coordination.readTopology(id);
            if (record !== undefined) await this.#take(record, assignment, changed);
            else this.#forgetUnlessWritten(id, version, changed);
          }),
        );
      }
    } catch (error) {
      this.markTopologies(ids);
      throw error;
    }
  }

  /** W2: one that was written since the read began is there. */
  #forgetUnlessWritten(id: string, version: number | undefined, changed: Set<string>): void {
    const known = this.#topologies.get(id);
    if (known === undefined || known.version !== version) return;
    this.forget(known);
    changed.add(id);
  }

  async #take(
    { value, version }: Versioned<TopologyRecord>,
    assignment: Assignment | undefined,
    changed: Set<string>,
  ): Promise<void> {
    const known = this.#topologies.get(value.id);
    if (known === undefined) {
      const added = await this.add(value, version);
      if (assignment !== undefined) this.setAssignment(added, assignment);
      changed.add(value.id);
      return;
    }
    if (version > known.version) {
      this.setRecord(known, value, version);
      changed.add(value.id);
    }
    if (assignment !== undefined && assignment.version > (known.assignment?.version ?? 0)) {
      this.setAssignment(known, assignment);
      changed.add(value.id);
    }
    const hadProblem = known.loadProblem !== undefined;
    await this.#load(known);
    if (hadProblem !== (known.loadProblem !== undefined)) changed.add(value.id);
  }

  async #readSupervisors(): Promise<boolean> {
    const before = placesText(this.#supervisors);
    try {
      this.#supervisors = await this.#options.coordination.listSupervisors();
    } catch (error) {
      this.#areSupervisorsStale = true;
      throw error;
    }
    this.#options.onSupervisors?.(this.#supervisors);
    return placesText(this.#supervisors) !== before;
  }

  #noteReports(known: KnownTopology): void {
    known.noteReports(this.#heartbeats.reportsOf(known.id));
  }

  async #load(known: KnownTopology): Promise<void> {
    const { blobStore, settings, logger } = this.#options;
    const before = known.loadProblem?.message;
    await known.load(blobStore, settings);
    const problem = known.loadProblem;
    if (problem === undefined) known.loadProblemMs = null;
    if (problem === undefined || problem.message === before) return;
    known.loadProblemMs = this.#options.wallMs?.() ?? null;
    logger.error('topology.not-loaded', { topology: known.id, code: problem.code, message: problem.message });
    this.#options.onNotLoaded?.(known.record, problem);
  }

  // ── what was written, or read ──

  /** Takes in a record that is new, with what belongs to it if that is at hand. */
  async add(record: TopologyRecord, version: number, loaded?: LoadedTopology): Promise<KnownTopology> {
    const known = new KnownTopology({ value: record, version });
    if (loaded === undefined) await this.#load(known);
    else known.loaded = loaded;
    const other = this.#topologies.get(record.id);
    // Read and written at once.
    if (other !== undefined) return other;
    this.#topologies.set(record.id, known);
    entry(this.#byName, record.name).add(known);
    entry(this.#byPhase, record.phase.kind).add(known);
    this.#countBlobs(record, 1);
    this.#options.onRecord?.(record);
    this.#noteReports(known);
    return known;
  }

  setRecord(known: KnownTopology, record: TopologyRecord, version: number): void {
    if (version <= known.version) return;
    if (this.#topologies.get(known.id) === known) {
      removeFrom(this.#byPhase, known.record.phase.kind, known);
      entry(this.#byPhase, record.phase.kind).add(known);
    }
    known.setRecord(record, version);
    this.#options.onRecord?.(record);
  }

  setAssignment(known: KnownTopology, assignment: Assignment): void {
    if (assignment.version <= (known.assignment?.version ?? 0)) return;
    this.#releaseSlots(known);
    known.assignment = assignment;
    if (isSpread(assignment)) this.#spread++;
    for (const { supervisor, port } of assignment.slots) {
      this.#slotHolders.set(`${supervisor}:${port}`, known);
      this.#slotsOfSupervisor.set(supervisor, (this.#slotsOfSupervisor.get(supervisor) ?? 0) + 1);
    }
  }

  forget(known: KnownTopology): void {
    if (this.#topologies.get(known.id) !== known) return;
    this.#topologies.delete(known.id);
    removeFrom(this.#byName, known.record.name, known);
    removeFrom(this.#byPhase, known.record.phase.kind, known);
    this.#releaseSlots(known);
    this.#countBlobs(known.record, -1);
  }

  #releaseSlots(known: KnownTopology): void {
    if (isSpread(known.assignment)) this.#spread--;
    for (const { supervisor, port } of known.assignment?.slots ?? []) {
      const key = `${supervisor}:${port}`;
      if (this.#slotHolders.get(key) === known) this.#slotHolders.delete(key);
      const left = (this.#slotsOfSupervisor.get(supervisor) ?? 1) - 1;
      if (left === 0) this.#slotsOfSupervisor.delete(supervisor);
      else this.#slotsOfSupervisor.set(supervisor, left);
    }
  }

  #countBlobs({ codeHash, descriptionHash }: TopologyRecord, by: 1 | -1): void {
    for (const hash of [codeHash, descriptionHash]) {
      const uses = (this.#blobUses.get(hash) ?? 0) + by;
      if (uses > 0) this.#blobUses.set(hash, uses);
      else this.#blobUses.delete(hash);
    }
  }
}

function isSpread(assignment: Assignment | undefined): boolean {
  return (assignment?.slots.length ?? 0) > 1;
}

function entry<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  let set = map.get(key);
  if (set === undefined) map.set(key, (set = new Set()));
  return set;
}

function removeFrom<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const set = map.get(key);
  set?.delete(value);
  if (set?.size === 0) map.delete(key);
}

function placesText(supervisors: readonly SupervisorRecord[]): string {
  return JSON.stringify(supervisors.map(({ id, host, ports }) => [id, host, ports]).sort());
}
