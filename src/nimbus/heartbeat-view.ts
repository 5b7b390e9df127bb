/**
 * The newest folded heartbeat of every supervisor, and what they say of each topology. Only what a watch has named is read
 * again, so that the cost of one heartbeat does not grow with the number of machines.
 */
import type { Coordination, FoldedHeartbeat, SlotReport, WorkerHeartbeat } from '../coordination/index.js';

/** What one supervisor says of one topology. */
export interface TopologyReports {
  readonly supervisorId: string;
  readonly slots: readonly SlotReport[];
  /** Of workers that have ended. */
  readonly lastReports: readonly WorkerHeartbeat[];
}

/** What a read has found. */
export interface HeartbeatChanges {
  /** Those that are new. */
  readonly heartbeats: readonly FoldedHeartbeat[];
  /** Ids of topologies that are reported about in them, or were in those that they replace. */
  readonly topologies: ReadonlySet<string>;
}

export class HeartbeatView {
  readonly #source: Pick<Coordination, 'listHeartbeats' | 'readHeartbeat'>;
  readonly #bySupervisor = new Map<string, FoldedHeartbeat>();
  /** By topology, then by supervisor. */
  readonly #byTopology = new Map<string, Map<string, TopologyReports>>();
  #all: readonly FoldedHeartbeat[] | undefined;
  /** Supervisors whose heartbeats may have changed since they were read. */
  #stale: 'all' | Set<string> = 'all';

  constructor(source: Pick<Coordination, 'listHeartbeats' | 'readHeartbeat'>) {
    this.#source = source;
  }

  /** Without names anything may have changed. */
  markStale(supervisorIds?: readonly string[]): void {
    if (supervisorIds === undefined) this.#stale = 'all';
    else if (this.#stale !== 'all') for (const id of supervisorIds) this.#stale.add(id);
  }

  /** In order of supervisor ids; the same list until something changes. */
  get all(): readonly FoldedHeartbeat[] {
    this.#all ??= [...this.#bySupervisor.values()].sort((a, b) => (a.supervisorId < b.supervisorId ? -1 : 1));
    return this.#all;
  }

  of(supervisorId: string): FoldedHeartbeat | undefined {
    return this.#bySupervisor.get(supervisorId);
  }

  reportsOf(topologyId: string): readonly TopologyReports[] {
    return [...(this.#byTopology.get(topologyId)?.values() ?? [])];
  }

  /** Forgets everything; all of it is to be read. */
  clear(): void {
    for (const id of [...this.#bySupervisor.keys()]) this.#set(id, undefined, new Set());
    this.#stale = 'all';
  }

  /** Reads what may have changed. What could not be read stays to be read. @throws what `Coordination` throws */
  async refresh(): Promise<HeartbeatChanges> {
    const stale = this.#stale;
    this.#stale = new Set();
    const topologies = new Set<string>();
    try {
      const read = stale === 'all' ? await this.#readAll() : await this.#readSome([...stale]);
      const heartbeats = read.flatMap(([id, heartbeat]) => this.#set(id, heartbeat, topologies));
      return { heartbeats, topologies };
    } catch (error) {
      this.markStale(stale === 'all' ? undefined : [...stale]);
      throw error;
    }
  }

  /** A supervisor that is known and has no heartbeat any more has withdrawn: forgetting it deletes nothing. */
  async #readAll(): Promise<readonly (readonly [string, FoldedHeartbeat | undefined])[]> {
    const listed = new Map((await this.#source.listHeartbeats()).map((one) => [one.supervisorId, one]));
    const gone = [...this.#bySupervisor.keys()].filter((id) => !listed.has(id));
    return [...listed, ...gone.map((id) => [id, undefined] as const)];
  }

  #readSome(ids: readonly string[]): Promise<readonly (readonly [string, FoldedHeartbeat | undefined])[]> {
    return Promise.all(ids.map(async (id) => [id, await this.#source.readHeartbeat(id)] as const));
  }

  /** Returns what is new of it, and adds to `topologies` whom it concerns. */
  #set(
    id: string,
    heartbeat: FoldedHeartbeat | undefined,
    topologies: Set<string>,
  ): readonly FoldedHeartbeat[] {
    const before = this.#bySupervisor.get(id);
    if (before?.pid === heartbeat?.pid && before?.sequence === heartbeat?.sequence) return [];
    this.#all = undefined;
    if (before !== undefined) {
      for (const topologyId of reportsByTopology(before).keys()) {
        topologies.add(topologyId);
        const reports = this.#byTopology.get(topologyId);
        reports?.delete(id);
        if (reports?.size === 0) this.#byTopology.delete(topologyId);
      }
    }
    if (heartbeat === undefined) {
      this.#bySupervisor.delete(id);
      return [];
    }
    this.#bySupervisor.set(id, heartbeat);
    for (const [topologyId, own] of reportsByTopology(heartbeat)) {
      topologies.add(topologyId);
      const reports = this.#byTopology.get(topologyId) ?? new Map<string, TopologyReports>();
      this.#byTopology.set(topologyId, reports.set(id, own));
    }
    return [heartbeat];
  }
}

function reportsByTopology({
  supervisorId,
  slots,
  lastReports,
}: FoldedHeartbeat): ReadonlyMap<string, TopologyReports> {
  const found = new Map<string, { slots: SlotReport[]; lastReports: WorkerHeartbeat[] }>();
  const of = (topologyId: string): { slots: SlotReport[]; lastReports: WorkerHeartbeat[] } => {
    const one = found.get(topologyId) ?? { slots: [], lastReports: [] };
    found.set(topologyId, one);
    return one;
  };
  for (const slot of slots) if (slot.topologyId !== null) of(slot.topologyId).slots.push(slot);
  for (const report of lastReports) of(report.topologyId).lastReports.push(report);
  return new Map([...found].map(([topologyId, reports]) => [topologyId, { supervisorId, ...reports }]));
}
