/**
 * Makes history of what the leading Nimbus sees and decides. What is stored elsewhere (records of topologies, of supervisors) is
 * noted whenever it is seen, so that a Nimbus killed in between is made up for by the next one; decisions of rounds are noted
 * when they have been written.
 */
import type { ErrorRecord } from '../../base/index.js';
import type { FoldedHeartbeat, SupervisorRecord, TopologyRecord } from '../../coordination/index.js';
import type { Assignment } from '../../scheduling/index.js';
import type { KnownTopology } from '../known-topology.js';
import type { MoveEvent } from '../moves/advance-move.js';
import type { Place, PlacementChanges, TaskMove } from '../placement-changes.js';
import type { ClusterEvent, ClusterEventKind, EventList, EventQuery } from './cluster-event.js';
import type { EventJournal } from './event-journal.js';

/** What is named one by one in a sentence. */
const MAX_NAMED = 5;
const SHOWN_OF_TOPOLOGY = 5;

export interface EventDeskOptions {
  readonly journal: EventJournal;
  /** Wall clock, ms. */
  readonly wallMs: () => number;
  readonly nameOf: (topologyId: string) => string | null;
}

/** An assignment that has been written. */
interface Placement {
  readonly before: Assignment | undefined;
  readonly after: Assignment;
  readonly changes: PlacementChanges;
  /** Supervisors whose machines are gone. */
  readonly gone: ReadonlySet<string>;
}

type Topology = Pick<TopologyRecord, 'id' | 'name'>;

export class EventDesk {
  readonly #options: EventDeskOptions;

  constructor(options: EventDeskOptions) {
    this.#options = options;
  }

  // ── what is stored: seen once or more ──

  noteRecord(record: TopologyRecord): void {
    const { journal } = this.#options;
    const { desired, phase, phaseSinceMs, submittedMs } = record;
    const once = (kind: ClusterEventKind, atMs: number, message: string, code: string | null = null): void =>
      journal.noteOnce({ ...of(record), kind, atMs, message, code, place: null });
    once('submitted', submittedMs, `submitted as ${record.id}`);
    if (desired !== undefined) {
      const { revision, changedMs } = desired;
      const message = `rebalance ${revision}: ${wishOf(desired)}`;
      journal.noteOnce({
        ...{ ...of(record), kind: 'rebalanced', atMs: changedMs, message, code: null, place: null },
        revision,
      });
    }
    if (phase.kind === 'removed') {
      if (!journal.has(record.id, 'removed')) once('removed', Math.floor(this.#options.wallMs()), 'removed');
      return;
    }
    // The end of a wait is told by what came into force with it.
    if (phaseSinceMs === undefined || phaseSinceMs === submittedMs || phaseSinceMs === desired?.changedMs)
      return;
    switch (phase.kind) {
      case 'active':
        return once('activated', phaseSinceMs, 'its spouts read again');
      case 'inactive':
        return once('deactivated', phaseSinceMs, 'its spouts read no more');
      case 'rebalancing': {
        const { revision } = phase.desired;
        const message = `rebalance ${revision} waits for ${seconds(phase.wait.waitMs)}: ${wishOf(phase.desired)}`;
        return once('rebalance-waits', phaseSinceMs, message);
      }
      case 'killed':
        return once('killed', phaseSinceMs, `killed, to be removed after ${seconds(phase.wait.waitMs)}`);
      case 'draining':
        return once('draining', phaseSinceMs, 'its sources were told to stop; what is pending completes');
      case 'ending':
        return once(
          'ending',
          phaseSinceMs,
          `its sources have ended; stage ${phase.stage + 1} of ${phase.stages.length} ends`,
        );
      case 'finished':
        return once('finished', phaseSinceMs, phase.drained ? 'drained' : 'ran to the end of its input');
      case 'failed':
        return once('failed', phaseSinceMs, phase.error.message, phase.error.code);
      case 'stopped':
        return once('stopped', phaseSinceMs, 'stopped at once');
    }
  }

  noteSupervisors(records: readonly SupervisorRecord[]): void {
    const { journal } = this.#options;
    for (const { id, host, ports, startedMs } of records) {
      const machine = { topologyId: null, topology: null, place: id, code: null };
      const atMs = Math.floor(startedMs);
      const message = `supervisor of host ${host} with ${ports.length} slots started`;
      journal.noteOnce({ ...machine, kind: 'supervisor-started', atMs, message });
      if (journal.newestAt(id, ['machine-gone', 'machine-returned'])?.kind === 'machine-gone')
        this.#cluster('machine-returned', id, 'its supervisor is there again');
    }
  }

  noteHeartbeats(heartbeats: readonly FoldedHeartbeat[]): void {
    const { journal, nameOf } = this.#options;
    for (const { supervisorId, events = [] } of heartbeats) journal.noteTold(supervisorId, events, nameOf);
  }

  // ── what was decided ──

  noteLead(nimbusId: string): void {
    this.#cluster('nimbus-leads', null, `${nimbusId} leads`);
  }

  noteGone(supervisorId: string, topologies: readonly string[]): void {
    const had = topologies.length === 0 ? 'no topology' : some(topologies);
    this.#cluster('machine-gone', supervisorId, `neither supervisor nor workers answer; it had ${had}`);
  }

  noteAssignment({ record }: KnownTopology, { before, after, changes, gone }: Placement): void {
    if (after.slots.length === 0) return;
    const { moves, movedTasks } = changes;
    if (moves.length === 0) return;
    const { revision } = after;
    const isAsked = revision !== undefined && revision !== before?.revision;
    const isNew = moves.every(({ from }) => from === null);
    const left = [...new Set(moves.flatMap(({ from }) => from?.supervisorId ?? []))].filter((id) =>
      gone.has(id),
    );
    const why = isAsked
      ? `for rebalance ${revision}`
      : left.length > 0
        ? `as ${some(left)} ${left.length === 1 ? 'is' : 'are'} gone`
        : isNew
          ? ''
          : 'to places that are alive, or less busy';
    const places = new Set(after.slots.map((slot) => placeText({ ...slot, supervisorId: slot.supervisor })));
    const what = isNew && before === undefined ? `on ${some([...places])}` : some(moves.map(moveText));
    this.#note(record, {
      kind: isNew ? 'placed' : 'moved',
      message:
        [`${movedTasks} ${movedTasks === 1 ? 'task' : 'tasks'}`, why].filter(Boolean).join(' ') + `: ${what}`,
      ...(isAsked ? { revision } : {}),
    });
  }

  noteMove({ record }: KnownTopology, event: MoveEvent): void {
    switch (event.kind) {
      // Told by the assignment, or by what follows.
      case 'prepared':
      case 'begun':
        return;
      case 'done':
        return this.#note(record, {
          kind: 'move-done',
          message: `${event.tasks === 1 ? '1 task is in its new place' : `${event.tasks} tasks are in their new places`} (ackers not counted)`,
        });
      case 'stayed': {
        const [first, last] = event.tasks;
        const message = `${event.component} ${range(first, last)} stays where it is: ${event.reason}`;
        return this.#note(record, { kind: 'move-stayed', message });
      }
      case 'returned':
        return this.#note(record, {
          kind: 'move-returned',
          message: `${event.component} ${event.task} went back: ${event.error.message}`,
          code: event.error.code,
        });
      case 'cancelled':
        return this.#note(record, {
          kind: 'move-cancelled',
          message: event.error.message,
          code: event.error.code,
        });
    }
  }

  noteUnplaced({ record }: KnownTopology, count: number, reason: string): void {
    const message = `${count} ${count === 1 ? 'executor has' : 'executors have'} no slot: ${reason}`;
    this.#note(record, { kind: 'not-placed', message, code: 'NO_FREE_SLOT' });
  }

  /** A round could not be made for it: its strategy failed, or what it asks for cannot be. */
  noteNotScheduled({ record }: KnownTopology, { code, message }: ErrorRecord): void {
    this.#note(record, { kind: 'not-scheduled', message, code });
  }

  noteNotLoaded(topology: Topology, { code, message }: ErrorRecord): void {
    this.#note(topology, { kind: 'not-loaded', message, code });
  }

  // ── asking ──

  list({ name, sinceMs, after }: EventQuery): EventList {
    const { journal, wallMs } = this.#options;
    const isWanted = (event: ClusterEvent): boolean =>
      (name === null || event.topology === name) &&
      (sinceMs === null || event.lastMs >= sinceMs) &&
      (after === null || event.sequence > after);
    return { atMs: wallMs(), sequence: journal.sequence, events: journal.list(isWanted) };
  }

  /** Has there been a topology of this name? */
  knows(name: string): boolean {
    return this.#options.journal.list(({ topology }) => topology === name).length > 0;
  }

  lastOf(topologyId: string): readonly ClusterEvent[] {
    return this.#options.journal.lastOf(topologyId, SHOWN_OF_TOPOLOGY);
  }

  #note(
    topology: Topology,
    parts: { kind: ClusterEventKind; message: string; code?: string; revision?: number },
  ): void {
    const atMs = Math.floor(this.#options.wallMs());
    this.#options.journal.note({ ...of(topology), place: null, code: null, ...parts, atMs });
  }

  #cluster(kind: ClusterEventKind, place: string | null, message: string): void {
    const atMs = Math.floor(this.#options.wallMs());
    this.#options.journal.note({ kind, topologyId: null, topology: null, place, code: null, message, atMs });
  }
}

function of({ id, name }: Topology): { readonly topologyId: string; readonly topology: string } {
  return { topologyId: id, topology: name };
}

/** What a rebalance asks for. */
function wishOf({
  workers,
  executors,
  resources,
  placement,
}: NonNullable<TopologyRecord['desired']>): string {
  const counts = Object.entries(executors).map(([component, count]) => `${component}=${count}`);
  const wishes = [
    ...(workers === undefined ? [] : [workers === 1 ? '1 worker' : `${workers} workers`]),
    ...(counts.length === 0 ? [] : [`executors ${counts.join(' ')}`]),
    ...(Object.keys(resources).length === 0 ? [] : [`resources of ${Object.keys(resources).join(', ')}`]),
    ...(placement === 'from-scratch' ? ['from scratch'] : []),
  ];
  return wishes.length === 0 ? 'spread anew' : wishes.join(', ');
}

function moveText({ component, firstTask, lastTask, from, to }: TaskMove): string {
  return `${component} ${range(firstTask, lastTask)} ${placeText(from)} → ${placeText(to)}`;
}

function range(first: number, last: number): string {
  return first === last ? `${first}` : `${first}-${last}`;
}

function placeText(place: Place | null): string {
  return place === null ? 'nowhere' : `${place.supervisorId}:${place.port}`;
}

function some(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return more > 0 ? `${names.slice(0, MAX_NAMED).join(', ')} and ${more} more` : names.join(', ');
}

function seconds(ms: number): string {
  return `${ms / 1000} s`;
}
