/** What another assignment means for a topology that runs: which workers start and stop, and which tasks move. Pure. */
import type { Assignment, SlotAssignment } from '../scheduling/index.js';

/** A slot by name. */
export interface Place {
  readonly supervisorId: string;
  readonly port: number;
}

/** Consecutive tasks of one component that go the same way. */
export interface TaskMove {
  readonly component: string;
  readonly firstTask: number;
  readonly lastTask: number;
  /** null: it runs nowhere now. */
  readonly from: Place | null;
  /** null: there is no place for it. */
  readonly to: Place | null;
}

export interface PlacementChanges {
  readonly startedWorkers: readonly Place[];
  readonly stoppedWorkers: readonly Place[];
  /** Workers that go on, with other executors. */
  readonly changedWorkers: readonly Place[];
  readonly moves: readonly TaskMove[];
  /** Tasks in all moves. */
  readonly movedTasks: number;
}

export function placementChanges(
  before: Assignment | undefined,
  after: Assignment | undefined,
): PlacementChanges {
  const [old, now] = [slotsByName(before), slotsByName(after)];
  const moves = movesBetween(before, after);
  return {
    startedWorkers: [...now].filter(([name]) => !old.has(name)).map(([, slot]) => placeOf(slot)),
    stoppedWorkers: [...old].filter(([name]) => !now.has(name)).map(([, slot]) => placeOf(slot)),
    changedWorkers: [...now]
      .filter(([name, slot]) => old.has(name) && executorsText(old.get(name)!) !== executorsText(slot))
      .map(([, slot]) => placeOf(slot)),
    moves,
    movedTasks: moves.reduce((sum, { firstTask, lastTask }) => sum + lastTask - firstTask + 1, 0),
  };
}

function movesBetween(before: Assignment | undefined, after: Assignment | undefined): readonly TaskMove[] {
  const [old, now] = [slotsOfTasks(before), slotsOfTasks(after)];
  const moves: TaskMove[] = [];
  for (const { component, first, last } of after?.tasks ?? before?.tasks ?? []) {
    for (let task = first; task <= last; task++) {
      const [from, to] = [old.get(task), now.get(task)];
      if (nameOf(from) === nameOf(to)) continue;
      const move: TaskMove = {
        component,
        firstTask: task,
        lastTask: task,
        from: from === undefined ? null : placeOf(from),
        to: to === undefined ? null : placeOf(to),
      };
      const previous = moves.at(-1);
      if (previous !== undefined && continues(previous, move)) {
        moves[moves.length - 1] = { ...previous, lastTask: task };
      } else {
        moves.push(move);
      }
    }
  }
  return moves;
}

function continues(previous: TaskMove, move: TaskMove): boolean {
  return (
    previous.component === move.component &&
    previous.lastTask + 1 === move.firstTask &&
    placeName(previous.from) === placeName(move.from) &&
    placeName(previous.to) === placeName(move.to)
  );
}

function slotsOfTasks(assignment: Assignment | undefined): ReadonlyMap<number, SlotAssignment> {
  const slots = new Map<number, SlotAssignment>();
  for (const slot of assignment?.slots ?? []) {
    for (const [first, last] of slot.executors) {
      for (let task = first; task <= last; task++) slots.set(task, slot);
    }
  }
  return slots;
}

function slotsByName(assignment: Assignment | undefined): ReadonlyMap<string, SlotAssignment> {
  return new Map((assignment?.slots ?? []).map((slot) => [nameOf(slot), slot]));
}

function placeOf({ supervisor, port }: SlotAssignment): Place {
  return { supervisorId: supervisor, port };
}

function nameOf(slot: SlotAssignment | undefined): string {
  return slot === undefined ? '' : `${slot.supervisor}:${slot.port}`;
}

function placeName(place: Place | null): string {
  return place === null ? '' : `${place.supervisorId}:${place.port}`;
}

function executorsText({ executors }: SlotAssignment): string {
  return JSON.stringify(executors);
}
