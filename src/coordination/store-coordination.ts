/**
 * The coordination port over any node store: which value is which node, and what happens after a lost session.
 *
 * Invariants: what this process has announced (its supervisor, workers without one) is announced again before
 * `onReconnect` is called after an expired session; leadership is not, since another Nimbus may lead by then.
 */
import { hasCode, IsobarError, type Logger } from '../base/index.js';
import type { Assignment } from '../scheduling/index.js';
import { Announcements } from './announcements.js';
import { ChunkedValues, removeTree } from './chunked-values.js';
import type {
  Coordination,
  StopWatching,
  StoredPosition,
  SupervisorRecord,
  TopologyRecord,
  Versioned,
} from './coordination.js';
import type { Handover, HandoverNode } from './handover.js';
import type { FoldedHeartbeat, WorkerHeartbeat } from './heartbeat.js';
import { ANY_VERSION, type NodeStore, type SessionEvent } from './node-store.js';
import {
  areHandovers,
  arePositions,
  areTexts,
  isAssignment,
  isFoldedHeartbeat,
  isSupervisorRecord,
  isTopologyRecord,
  isWorkerHeartbeat,
} from './shapes.js';
import {
  ACKNOWLEDGED_PATH,
  ASSIGNMENTS_PATH,
  chunksPath,
  childPath,
  GENERATIONS_PATH,
  HANDOVERS_PATH,
  HEARTBEATS_PATH,
  idOfName,
  LEADER_PATH,
  POSITIONS_PATH,
  SUPERVISORS_PATH,
  TOPOLOGIES_PATH,
  WORKERS_PATH,
} from './paths.js';

export class StoreCoordination implements Coordination {
  readonly #store: NodeStore;
  readonly #values: ChunkedValues;
  readonly #logger: Logger;
  readonly #announcements: Announcements;
  readonly #reconnectCallbacks = new Set<() => void>();
  readonly #stopSession: StopWatching;

  constructor(store: NodeStore, logger: Logger) {
    this.#store = store;
    this.#values = new ChunkedValues(store, logger);
    this.#announcements = new Announcements(store, this.#values, logger);
    this.#logger = logger;
    this.#stopSession = store.onSession((event) => this.#onSession(event));
  }

  // ── leadership ──

  async tryLead(nimbusId: string): Promise<boolean> {
    for (;;) {
      try {
        await this.#store.create(LEADER_PATH, Buffer.from(JSON.stringify({ nimbusId })), 'ephemeral');
        return true;
      } catch (error) {
        if (!hasCode(error, 'NODE_EXISTS')) throw error;
      }
      const node = await this.#store.read(LEADER_PATH);
      if (node === undefined) continue;
      if (node.owner !== 'this-session') return false;
      const record = await this.#values.read(LEADER_PATH);
      if (record !== undefined) return isLeaderRecordOf(record.value, nimbusId);
    }
  }

  watchLeader(onChange: () => void): StopWatching {
    return this.#store.watch(LEADER_PATH, () => onChange());
  }

  // ── supervisors ──

  announceSupervisor(record: SupervisorRecord): Promise<void> {
    return this.#announcements.announce(childPath(SUPERVISORS_PATH, record.id), record);
  }

  async withdrawSupervisor(id: string): Promise<void> {
    if (await this.#announcements.withdraw(childPath(SUPERVISORS_PATH, id))) {
      await this.#values.remove(childPath(ACKNOWLEDGED_PATH, id));
      await this.#values.remove(childPath(HEARTBEATS_PATH, id));
    }
  }

  listSupervisors(): Promise<readonly SupervisorRecord[]> {
    return this.#list(SUPERVISORS_PATH, isSupervisorRecord);
  }

  watchSupervisors(onChange: () => void): StopWatching {
    return this.#store.watch(SUPERVISORS_PATH, () => onChange());
  }

  // ── topologies ──

  createTopology(record: TopologyRecord): Promise<void> {
    return this.#values.create(childPath(TOPOLOGIES_PATH, record.id), record, 'durable');
  }

  async listTopologies(): Promise<readonly Versioned<TopologyRecord>[]> {
    return this.#listVersioned(TOPOLOGIES_PATH, isTopologyRecord);
  }

  async listTopologyIds(): Promise<readonly string[]> {
    return (await this.#store.children(TOPOLOGIES_PATH)).map(idOfName);
  }

  readTopology(id: string): Promise<Versioned<TopologyRecord> | undefined> {
    return this.#read(childPath(TOPOLOGIES_PATH, id), isTopologyRecord);
  }

  updateTopology(record: TopologyRecord, version: number): Promise<void> {
    return this.#values.write(childPath(TOPOLOGIES_PATH, record.id), record, version, 'durable');
  }

  /** The record goes last: a removal that was cut short can be seen, and repeated. */
  async removeTopology(id: string): Promise<void> {
    await this.#values.remove(childPath(ASSIGNMENTS_PATH, id));
    const positions = childPath(POSITIONS_PATH, id);
    await removeTree(this.#store, positions);
    await removeTree(this.#store, chunksPath(positions));
    await removeTree(this.#store, childPath(GENERATIONS_PATH, id));
    for (const { writer } of await this.listHandovers(id)) await this.storeHandovers(id, writer, []);
    await this.#values.remove(childPath(TOPOLOGIES_PATH, id));
  }

  watchTopologies(onChange: (ids?: readonly string[]) => void): StopWatching {
    return this.#watchIds(TOPOLOGIES_PATH, onChange);
  }

  // ── assignments ──

  async readAssignment(topologyId: string): Promise<Assignment | undefined> {
    return (await this.#read(childPath(ASSIGNMENTS_PATH, topologyId), isAssignment))?.value;
  }

  listAssignments(): Promise<readonly Assignment[]> {
    return this.#list(ASSIGNMENTS_PATH, isAssignment);
  }

  /** The first assignment creates the node at version 0, so the assignment's version is always the node's plus 1. */
  async writeAssignment(assignment: Assignment): Promise<void> {
    const path = childPath(ASSIGNMENTS_PATH, assignment.topologyId);
    try {
      if (assignment.version === 1) await this.#values.create(path, assignment, 'durable');
      else await this.#values.write(path, assignment, expectedNodeVersion(assignment), 'durable');
    } catch (error) {
      if (!hasCode(error, 'NODE_EXISTS') && !hasCode(error, 'NODE_MISSING')) throw error;
      throw new IsobarError(
        'VERSION_CONFLICT',
        `assignment ${assignment.version} of ${assignment.topologyId} does not follow the stored one`,
        {
          expected: assignment.version === 1 ? 'no assignment' : `assignment ${assignment.version - 1}`,
          found: assignment.version === 1 ? 'an assignment' : 'no assignment',
          where: path,
        },
        error,
      );
    }
  }

  watchAssignments(onChange: (topologyIds?: readonly string[]) => void): StopWatching {
    return this.#watchIds(ASSIGNMENTS_PATH, onChange);
  }

  // ── generations and positions ──

  /**
   * The counter is the node's own version: one unconditional write gives a number that nobody else gets, however many
   * ask at once. Creating the node (version 0) gives generation 1.
   */
  async nextGeneration(topologyId: string): Promise<number> {
    const path = childPath(GENERATIONS_PATH, topologyId);
    for (;;) {
      try {
        return (await this.#store.write(path, Buffer.alloc(0), ANY_VERSION)) + 1;
      } catch (error) {
        if (!hasCode(error, 'NODE_MISSING')) throw error;
      }
      await this.#requireTopology(topologyId);
      try {
        await this.#store.create(path, Buffer.alloc(0), 'durable');
        return 1;
      } catch (error) {
        if (!hasCode(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  async readPositions(topologyId: string): Promise<readonly StoredPosition[]> {
    const newest = new Map<number, StoredPosition>();
    for (const entries of await this.#list(childPath(POSITIONS_PATH, topologyId), arePositions)) {
      foldPositions(newest, entries);
    }
    return sortedByTask(newest);
  }

  async storePositions(
    topologyId: string,
    supervisorId: string,
    entries: readonly StoredPosition[],
  ): Promise<void> {
    const path = childPath(childPath(POSITIONS_PATH, topologyId), supervisorId);
    for (;;) {
      const stored = await this.#read(path, arePositions);
      const folded = new Map<number, StoredPosition>();
      foldPositions(folded, stored?.value ?? []);
      if (!foldPositions(folded, entries)) return;
      try {
        if (stored !== undefined) {
          await this.#values.write(path, sortedByTask(folded), stored.version, 'durable');
        } else {
          await this.#requireTopology(topologyId);
          await this.#values.create(path, sortedByTask(folded), 'durable');
        }
        return;
      } catch (error) {
        if (hasCode(error, 'NODE_MISSING')) await this.#requireTopology(topologyId);
        else if (!hasCode(error, 'VERSION_CONFLICT') && !hasCode(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  // ── planned moves ──

  /** A node per topology and writer, all with one parent: a watch on that tells of each of them. */
  async storeHandovers(topologyId: string, writer: string, handovers: readonly Handover[]): Promise<void> {
    const path = childPath(HANDOVERS_PATH, JSON.stringify([topologyId, writer]));
    if (handovers.length === 0) await this.#values.remove(path);
    else await this.#values.put(path, handovers, 'durable');
  }

  async listHandovers(topologyId?: string): Promise<readonly HandoverNode[]> {
    const nodes: HandoverNode[] = [];
    for (const name of await this.#store.children(HANDOVERS_PATH)) {
      const key = handoverKey(name);
      if (key === undefined || (topologyId !== undefined && key[0] !== topologyId)) continue;
      const stored = await this.#read(`${HANDOVERS_PATH}/${name}`, areHandovers);
      if (stored !== undefined) nodes.push({ topologyId: key[0], writer: key[1], handovers: stored.value });
    }
    return nodes;
  }

  watchHandovers(onChange: (topologyIds?: readonly string[]) => void): StopWatching {
    return this.#store.watch(HANDOVERS_PATH, (children) =>
      children === undefined
        ? onChange()
        : onChange([...new Set(children.flatMap((name) => handoverKey(name)?.[0] ?? []))]),
    );
  }

  // ── heartbeats ──

  publishHeartbeat(heartbeat: FoldedHeartbeat): Promise<void> {
    return this.#values.put(childPath(HEARTBEATS_PATH, heartbeat.supervisorId), heartbeat, 'volatile');
  }

  listHeartbeats(): Promise<readonly FoldedHeartbeat[]> {
    return this.#list(HEARTBEATS_PATH, isFoldedHeartbeat);
  }

  async readHeartbeat(supervisorId: string): Promise<FoldedHeartbeat | undefined> {
    return (await this.#read(childPath(HEARTBEATS_PATH, supervisorId), isFoldedHeartbeat))?.value;
  }

  watchHeartbeats(onChange: (supervisorIds?: readonly string[]) => void): StopWatching {
    return this.#watchIds(HEARTBEATS_PATH, onChange);
  }

  acknowledgeReports(supervisorId: string, ids: readonly string[]): Promise<void> {
    return this.#values.put(childPath(ACKNOWLEDGED_PATH, supervisorId), ids, 'volatile');
  }

  async readAcknowledged(supervisorId: string): Promise<readonly string[]> {
    const path = childPath(ACKNOWLEDGED_PATH, supervisorId);
    return (await this.#read(path, areTexts))?.value ?? [];
  }

  watchAcknowledged(supervisorId: string, onChange: () => void): StopWatching {
    return this.#store.watch(childPath(ACKNOWLEDGED_PATH, supervisorId), () => onChange());
  }

  publishWorkerLiveness(heartbeat: WorkerHeartbeat): Promise<void> {
    return this.#announcements.announce(childPath(WORKERS_PATH, heartbeat.workerId), heartbeat);
  }

  async withdrawWorkerLiveness(workerId: string): Promise<void> {
    await this.#announcements.withdraw(childPath(WORKERS_PATH, workerId));
  }

  listWorkerLiveness(): Promise<readonly WorkerHeartbeat[]> {
    return this.#list(WORKERS_PATH, isWorkerHeartbeat);
  }

  onReconnect(callback: () => void): StopWatching {
    // A registration of its own, so that one function given twice can be stopped once.
    const registered = (): void => callback();
    this.#reconnectCallbacks.add(registered);
    return () => {
      this.#reconnectCallbacks.delete(registered);
    };
  }

  async close(): Promise<void> {
    this.#stopSession();
    this.#announcements.clear();
    await this.#store.close();
  }

  #onSession(event: SessionEvent): void {
    if (event === 'expired') this.#announcements.expire();
    if (event === 'connected') void this.#afterReconnect();
  }

  async #afterReconnect(): Promise<void> {
    await this.#announcements.renew();
    for (const callback of [...this.#reconnectCallbacks]) {
      try {
        callback();
      } catch (error) {
        this.#logger.error('coordination.callback-failed', { error: String(error) });
      }
    }
  }

  // ── reading ──

  #watchIds(parent: string, onChange: (ids?: readonly string[]) => void): StopWatching {
    return this.#store.watch(parent, (children) =>
      children === undefined ? onChange() : onChange(children.map(idOfName)),
    );
  }

  /** @throws STATE_DAMAGED for a value that is none of this kind: nobody may go on from a guess */
  async #read<T>(path: string, isValid: (value: unknown) => value is T): Promise<Versioned<T> | undefined> {
    const read = await this.#values.read(path);
    if (read === undefined) return undefined;
    const { value, version } = read;
    if (isValid(value)) return { value, version };
    const found = JSON.stringify(value).slice(0, 100);
    throw new IsobarError('STATE_DAMAGED', `the coordinator's value at ${path} has another shape: ${found}`, {
      expected: 'a value as this version writes it',
      found,
      where: path,
    });
  }

  async #list<T>(parent: string, isValid: (value: unknown) => value is T): Promise<readonly T[]> {
    return (await this.#listVersioned(parent, isValid)).map((entry) => entry.value);
  }

  /** A child that goes while the others are read is left out; a damaged one is reported, and hides no other. */
  async #listVersioned<T>(
    parent: string,
    isValid: (value: unknown) => value is T,
  ): Promise<readonly Versioned<T>[]> {
    const names = await this.#store.children(parent);
    const entries = await Promise.all(
      names.map(async (name) => {
        try {
          return await this.#read(`${parent}/${name}`, isValid);
        } catch (error) {
          if (!hasCode(error, 'STATE_DAMAGED')) throw error;
          this.#logger.error('coordination.value-damaged', {
            path: `${parent}/${name}`,
            error: error.message,
          });
          return undefined;
        }
      }),
    );
    return entries.filter((entry) => entry !== undefined);
  }

  async #requireTopology(id: string): Promise<void> {
    const path = childPath(TOPOLOGIES_PATH, id);
    if ((await this.#store.read(path)) !== undefined) return;
    throw new IsobarError('NODE_MISSING', `there is no topology ${id}`, {
      expected: 'a topology that has been created and not removed',
      found: 'none',
      where: path,
    });
  }
}

/** Topology and writer of a node of handovers; undefined: this class has not written it. */
function handoverKey(name: string): readonly [topologyId: string, writer: string] | undefined {
  try {
    const key: unknown = JSON.parse(idOfName(name));
    return areTexts(key) && key.length === 2 ? [key[0]!, key[1]!] : undefined;
  } catch {
    return undefined;
  }
}

function isLeaderRecordOf(record: unknown, nimbusId: string): boolean {
  return (
    typeof record === 'object' && record !== null && 'nimbusId' in record && record.nimbusId === nimbusId
  );
}

/** The node's version that the one before `assignment` has. @throws VERSION_CONFLICT for a version that has none. */
function expectedNodeVersion(assignment: Assignment): number {
  if (Number.isSafeInteger(assignment.version) && assignment.version > 1) return assignment.version - 2;
  throw new IsobarError('VERSION_CONFLICT', `${assignment.version} is no version of an assignment`, {
    expected: 'a whole number from 1',
    found: String(assignment.version),
    where: assignment.topologyId,
  });
}

/** Adds entries, except those of an older generation than what is there. Returns whether any was added. */
function foldPositions(into: Map<number, StoredPosition>, entries: readonly StoredPosition[]): boolean {
  let isChanged = false;
  for (const entry of entries) {
    const present = into.get(entry.task);
    if (present !== undefined && present.generation > entry.generation) continue;
    into.set(entry.task, entry);
    isChanged = true;
  }
  return isChanged;
}

function sortedByTask(positions: ReadonlyMap<number, StoredPosition>): readonly StoredPosition[] {
  return [...positions.values()].sort((a, b) => a.task - b.task);
}
