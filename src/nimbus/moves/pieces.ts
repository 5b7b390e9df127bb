/** Executors, or parts of them, with the slots they are in: what placements are compared by and put together from. Pure. */
import { isSystemComponent } from '../../base/index.js';
import type { Assignment, ComponentTasks, ExecutorRange, SlotAssignment } from '../../scheduling/index.js';

/** A slot as a text. */
export type SlotKey = string;

export interface Piece {
  readonly range: ExecutorRange;
  readonly slot: SlotKey;
}

export function keyOf({ supervisor, port }: { readonly supervisor: string; readonly port: number }): SlotKey {
  return `${supervisor}:${port}`;
}

export function piecesOf(slots: readonly SlotAssignment[]): readonly Piece[] {
  return slots.flatMap((slot) => slot.executors.map((range) => ({ range, slot: keyOf(slot) })));
}

/** Slot by task. */
export function slotOfTask(pieces: readonly Piece[]): ReadonlyMap<number, SlotKey> {
  const slots = new Map<number, SlotKey>();
  for (const { range, slot } of pieces) for (const task of tasksOf(range)) slots.set(task, slot);
  return slots;
}

export function tasksOf([first, last]: ExecutorRange): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** Cuts a range where `of` changes from one task to the next. */
export function runsOf<T>(
  range: ExecutorRange,
  of: (task: number) => T,
): { range: ExecutorRange; value: T }[] {
  const runs: { range: [number, number]; value: T }[] = [];
  for (const task of tasksOf(range)) {
    const value = of(task);
    const last = runs.at(-1);
    if (last !== undefined && last.value === value) last.range[1] = task;
    else runs.push({ range: [task, task], value });
  }
  return runs;
}

/** Tasks that had a slot before, and have it no more without a move that hands them over: their place is dead. */
export function tasksLeftBehind(
  before: Assignment,
  after: Assignment,
): readonly { readonly component: string; readonly task: number }[] {
  const handedOver = new Set(
    [...(before.moves ?? []), ...(after.moves ?? [])].flatMap(({ tasks }) => tasksOf(tasks)),
  );
  const now = slotOfTask(piecesOf(after.slots));
  return [...slotOfTask(piecesOf(before.slots))].flatMap(([task, slot]) =>
    now.get(task) === slot || handedOver.has(task)
      ? []
      : [{ component: componentOf(before.tasks, task), task }],
  );
}

/** System components have tasks for numbering only; nothing of theirs runs, so nothing of theirs has to move. */
export function isSystemTask(tasks: readonly ComponentTasks[], task: number): boolean {
  return isSystemComponent(componentOf(tasks, task));
}

export function componentOf(tasks: readonly ComponentTasks[], task: number): string {
  return tasks.find(({ first, last }) => first <= task && task <= last)?.component ?? '';
}

/**
 * Slots with these pieces, and those of `kept` even if they have none. `known`: where host and start time of a slot come from,
 * the first that has it; a slot whose executors change starts now.
 */
export function slotsWith(
  pieces: readonly Piece[],
  kept: ReadonlySet<SlotKey>,
  known: readonly SlotAssignment[],
  nowMs: number,
): readonly SlotAssignment[] {
  const executors = new Map<SlotKey, ExecutorRange[]>([...kept].map((slot) => [slot, []]));
  for (const { range, slot } of pieces) {
    const ranges = executors.get(slot);
    if (ranges === undefined) executors.set(slot, [range]);
    else ranges.push(range);
  }
  const first = new Map<SlotKey, SlotAssignment>();
  for (const slot of known) if (!first.has(keyOf(slot))) first.set(keyOf(slot), slot);
  const slots: SlotAssignment[] = [];
  for (const [key, ranges] of executors) {
    const before = first.get(key);
    if (before === undefined) continue;
    ranges.sort((a, b) => a[0] - b[0]);
    const isSame = JSON.stringify(ranges) === JSON.stringify(before.executors);
    slots.push({ ...before, executors: ranges, startedMs: isSame ? before.startedMs : nowMs });
  }
  return slots.sort((a, b) =>
    a.supervisor === b.supervisor ? a.port - b.port : a.supervisor < b.supervisor ? -1 : 1,
  );
}

export function samePlacement(a: readonly SlotAssignment[], b: readonly SlotAssignment[]): boolean {
  const text = (slots: readonly SlotAssignment[]): string =>
    JSON.stringify(
      piecesOf(slots)
        .map(({ range, slot }) => [range[0], range[1], slot])
        .sort((one, other) => Number(one[0]) - Number(other[0])),
    );
  return text(a) === text(b);
}
