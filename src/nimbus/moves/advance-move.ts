/**
 * The steps of a planned move of tasks between slots, as Nimbus decides them. Pure: what is stored, what is wanted and what is
 * reported come in; the next assignment comes out, or nothing yet.
 *
 *              wanted is elsewhere              workers of the target are ready           every task has arrived, or stays
 *     settled ─────────────────────► preparing ─────────────────────────────────► moving ────────────────────► settled
 *        ▲   (all are ready: at once ────────────────────────────────────────────►)  │ a task is kept, or fails to start:
 *        └──────── prepare-timeout ──────┘                                           └──► its executor goes back
 *
 * Invariants
 * M1  A task that runs changes its slot only with an entry in `moves`, which stays until its new place has it or its old one
 *     keeps it. So it starts only when it has been released.
 * M2  What has no place, or was in a place that is dead, is placed at once in every step.
 * M3  Executors move as a whole: if one task cannot, the others go back to it, once their place is known to have them.
 * M4  A slot is given up only when its worker has nothing more to say.
 * M5  Every step is decided from what is stored, so that any Nimbus can take the next one.
 * M6  A place is passed over only when it says so itself (`failed`, `kept` at home), or its machine is gone: one that is only slow
 *     may start a task that has been released at any moment.
 * M7  What has no state and does not run yet, or not any more, is not prepared for: nothing would go on meanwhile, and a worker
 *     that has still to start where it is not wanted need not.
 */
import { type ErrorRecord, IsobarError, toErrorRecord } from '../../base/index.js';
import { handoverState, type Handover, type HandoverState } from '../../coordination/index.js';
import type { Assignment, ExecutorRange, SlotAssignment, TaskMove } from '../../scheduling/index.js';
import {
  componentOf,
  isSystemTask,
  keyOf,
  piecesOf,
  runsOf,
  samePlacement,
  slotOfTask,
  slotsWith,
  tasksOf,
  type Piece,
  type SlotKey,
} from './pieces.js';

/** What is known of a slot from its last report. */
export interface SlotFacts {
  /** Its worker has reconciled with the assignment in force. */
  readonly isCurrent: boolean;
  /** All its tasks run, its threads are there and its routes stand. */
  readonly isReady: boolean;
  /** It has nothing, and nothing more to say. */
  readonly isIdle: boolean;
  readonly hasWorker: boolean;
  /** Tasks that take rows there. */
  readonly running: ReadonlySet<number>;
}

export interface MoveInput {
  readonly stored: Assignment;
  /** What the scheduler wants; undefined: what is stored, or its target. Only slots, tasks and revision are looked at. */
  readonly desired: Assignment | undefined;
  /** Tasks whose place is dead; in `preparing` these are places of the target. */
  readonly dead: ReadonlySet<number>;
  /** Supervisors whose machines are gone. */
  readonly gone: ReadonlySet<string>;
  readonly slots: ReadonlyMap<SlotKey, SlotFacts>;
  readonly handovers: readonly Handover[];
  /** Planned moves may begin; else only what has no place is placed. */
  readonly mayMove: boolean;
  /** Tasks whose state cannot travel go all the same. */
  readonly losesState: boolean;
  /** Can a task move without losing what it knows? undefined: nobody has said yet; it stays until somebody does. */
  isMovable(task: number): boolean | undefined;
  /** Has it nothing that could be lost? */
  isStateless(task: number): boolean;
  readonly nowMs: number;
  readonly prepareTimeoutMs: number;
}

/** What is worth telling about a step. */
export type MoveEvent =
  | { readonly kind: 'prepared' | 'begun' | 'done'; readonly tasks: number }
  | {
      readonly kind: 'stayed';
      readonly component: string;
      readonly tasks: ExecutorRange;
      readonly reason: string;
    }
  | {
      readonly kind: 'returned';
      readonly component: string;
      readonly task: number;
      readonly error: ErrorRecord;
    }
  | { readonly kind: 'cancelled'; readonly error: ErrorRecord };

export type MoveStep =
  | { readonly kind: 'none'; readonly wakeInMs: number | null }
  | { readonly kind: 'write'; readonly assignment: Assignment; readonly events: readonly MoveEvent[] }
  /** To be recorded by Nimbus itself, for machines that are gone. */
  | { readonly kind: 'release'; readonly handovers: readonly Handover[] };

const NONE: MoveStep = { kind: 'none', wakeInMs: null };

/** Where a topology is headed: the assignment that it has once what is being prepared is done. */
export function destinationOf(assignment: Assignment): Assignment {
  const { target } = assignment;
  if (target === undefined) return assignment;
  const { revision } = target;
  return { ...assignment, slots: target.slots, ...(revision === undefined ? {} : { revision }) };
}

/** Has the topology nothing under way that the scheduler must not plan around? */
export function isSettled({ target, moves }: Assignment): boolean {
  return target === undefined && moves === undefined;
}

export function advanceMove(input: MoveInput): MoveStep {
  const { stored, desired } = input;
  if (stored.moves !== undefined) return advanceMoving(input, stored.moves);
  if (desired !== undefined && differs(desired, destinationOf(stored))) return begin(input, desired);
  if (stored.target !== undefined) return advancePreparing(input, stored.target);
  return giveUpIdle(input);
}

function differs(a: Assignment, b: Assignment): boolean {
  return a.revision !== b.revision || !samePlacement(a.slots, b.slots);
}

// ── beginning ──

function begin(input: MoveInput, desired: Assignment): MoveStep {
  const { stored, nowMs } = input;
  const { pieces, stayed, isWhole } = settle(input, desired.slots);
  const events = stayed.map(stayedEvent(stored));
  const known = [...stored.slots, ...desired.slots];
  const moving = movesBetween(input, pieces, stored.version + 1);
  // What could not be placed as it is wanted is still wanted.
  const revision = isWhole ? (desired.revision ?? stored.revision) : stored.revision;
  if (moving.length === 0) {
    // A slot that loses its last executor here has lost it to a death: its worker is of no use to anybody.
    const slots = slotsWith(pieces, emptySlots(stored), known, nowMs);
    const assignment = assignmentOf(stored, { slots, tasks: desired.tasks, revision });
    if (sameButVersion(assignment, stored)) return giveUpIdle(input);
    const dropped =
      stored.target === undefined ? [] : [cancelled('what it was to lead to is not wanted any more', stored)];
    return { kind: 'write', assignment, events: [...events, ...dropped] };
  }
  const target = slotsWith(pieces, new Set(), known, nowMs);
  const isReady = target.every((slot) => input.slots.get(keyOf(slot))?.isReady === true);
  if (isReady || doNotRun(input, moving))
    return cut(
      input,
      { slots: target, tasks: desired.tasks, revision, losesState: input.losesState },
      events,
    );
  // What has no place now has one at once (M2); everything else stays for the time being.
  const now = placedNow(input, pieces);
  const kept = new Set([...emptySlots(stored), ...target.map(keyOf)]);
  const slots = slotsWith(now, kept, known, nowMs);
  const assignment: Assignment = {
    ...assignmentOf(stored, { slots, tasks: desired.tasks, revision: stored.revision }),
    target: {
      slots: target,
      sinceMs: stored.target?.sinceMs ?? nowMs,
      losesState: input.losesState,
      ...(revision === undefined ? {} : { revision }),
    },
  };
  if (sameButVersion(assignment, stored)) return advancePreparing(input, assignment.target!);
  return { kind: 'write', assignment, events: [...events, { kind: 'prepared', tasks: countTasks(moving) }] };
}

/** None of these tasks takes rows where it is, and none has anything to lose (M7). Where nobody has reported, they may. */
function doNotRun(input: MoveInput, moves: readonly TaskMove[]): boolean {
  return moves.every(({ tasks, from }) => {
    const running = input.slots.get(keyOf(from))?.running;
    return tasksOf(tasks).every((task) => input.isStateless(task) && running?.has(task) === false);
  });
}

interface Stay {
  readonly range: ExecutorRange;
  readonly reason: string;
}

/** Where each executor goes, and which do not go where the scheduler wants them; `isWhole`: all that is wanted can be decided now. */
function settle(
  input: MoveInput,
  desired: readonly SlotAssignment[],
): { readonly pieces: readonly Piece[]; readonly stayed: readonly Stay[]; readonly isWhole: boolean } {
  const { stored } = input;
  const sources = sourcesOf(input);
  const pieces: Piece[] = [];
  const stayed: Stay[] = [];
  const covered = new Set<number>();
  let isWhole = true;
  for (const { range, slot } of piecesOf(desired)) {
    for (const task of tasksOf(range)) covered.add(task);
    const moving = tasksOf(range).filter((task) => (sources.get(task) ?? slot) !== slot);
    const stuck = moving.filter((task) => !isSystemTask(stored.tasks, task) && !mayMove(input, task));
    if (stuck.length === 0) {
      pieces.push({ range, slot });
      continue;
    }
    const reason = input.mayMove ? 'its state cannot travel' : 'nothing moves in this phase';
    if (input.mayMove && stuck.some((task) => input.isMovable(task) === undefined)) isWhole = false;
    else stayed.push({ range, reason });
    for (const run of runsOf(range, (task) => sources.get(task) ?? slot))
      pieces.push({ range: run.range, slot: run.value });
  }
  // What runs and is wanted nowhere runs on: there is no place for it.
  const wanted = pieces.length;
  for (const { range, slot } of piecesOf(stored.slots)) {
    for (const run of runsOf(range, (task) => !covered.has(task) && sources.get(task) === slot))
      if (run.value) pieces.push({ range: run.range, slot });
  }
  return { pieces, stayed, isWhole: isWhole && pieces.length === wanted };
}

function mayMove(input: MoveInput, task: number): boolean {
  return input.mayMove && (input.losesState || input.isMovable(task) === true);
}

/** Slots of tasks that run, or are about to, in a place that is not dead. */
function sourcesOf({ stored, dead, gone }: MoveInput): ReadonlyMap<number, SlotKey> {
  const sources = new Map<number, SlotKey>();
  const goneSlots = new Set(stored.slots.filter(({ supervisor }) => gone.has(supervisor)).map(keyOf));
  for (const [task, slot] of slotOfTask(piecesOf(stored.slots))) {
    const isDead = goneSlots.has(slot) || (stored.target === undefined && dead.has(task));
    if (!isDead) sources.set(task, slot);
  }
  return sources;
}

/** Everything where it is; what is nowhere, where it goes. */
function placedNow(input: MoveInput, pieces: readonly Piece[]): readonly Piece[] {
  const sources = sourcesOf(input);
  const now: Piece[] = [];
  for (const { range, slot } of piecesOf(input.stored.slots)) {
    for (const run of runsOf(range, (task) => sources.get(task) === slot))
      if (run.value) now.push({ range: run.range, slot });
  }
  for (const { range, slot } of pieces) {
    for (const run of runsOf(range, (task) => sources.has(task)))
      if (!run.value) now.push({ range: run.range, slot });
  }
  return now;
}

function movesBetween(input: MoveInput, pieces: readonly Piece[], move: number): readonly TaskMove[] {
  const sources = sourcesOf(input);
  const places = new Map(input.stored.slots.map((slot) => [keyOf(slot), slot]));
  return pieces.flatMap(({ range, slot }) => {
    if (isSystemTask(input.stored.tasks, range[0])) return [];
    return runsOf(range, (task) => sources.get(task)).flatMap((run): TaskMove[] => {
      const from = run.value === undefined || run.value === slot ? undefined : places.get(run.value);
      return from === undefined ? [] : [{ tasks: run.range, from: placeOf(from), move }];
    });
  });
}

// ── preparing ──

function advancePreparing(input: MoveInput, target: NonNullable<Assignment['target']>): MoveStep {
  const { stored, nowMs, prepareTimeoutMs, gone } = input;
  const { revision, losesState } = target;
  const waiting = notReady({ ...input, losesState }, piecesOf(target.slots));
  const isSourceGone = stored.slots.some((slot) => slot.executors.length > 0 && gone.has(slot.supervisor));
  const goal = { slots: target.slots, tasks: stored.tasks, revision, losesState };
  if (waiting.length === 0 || isSourceGone) return cut(input, goal, []);
  const leftMs = target.sinceMs + prepareTimeoutMs - nowMs;
  if (leftMs > 0) return { kind: 'none', wakeInMs: leftMs };
  const reason = `the workers of ${waiting.join(', ')} were not ready within ${prepareTimeoutMs} ms`;
  const occupied = stored.slots.filter(({ executors }) => executors.length > 0);
  return {
    kind: 'write',
    // Not asked for again by itself: whoever wants it knows now why it is not so.
    assignment: assignmentOf(stored, { slots: occupied, tasks: stored.tasks, revision }),
    events: [cancelled(reason, stored)],
  };
}

/** Slots that tasks are to come to and whose workers cannot take them yet. One that has tasks already can. */
function notReady(input: MoveInput, pieces: readonly Piece[]): readonly SlotKey[] {
  const sources = sourcesOf(input);
  const goals = new Set<SlotKey>();
  for (const { range, slot } of pieces) {
    const comes = tasksOf(range).some((task) => (sources.get(task) ?? slot) !== slot);
    if (comes) goals.add(slot);
  }
  return [...goals].filter((slot) => {
    const facts = input.slots.get(slot);
    return facts?.isCurrent !== true || !(facts.isReady || facts.running.size > 0);
  });
}

interface Goal {
  readonly slots: readonly SlotAssignment[];
  readonly tasks: Assignment['tasks'];
  readonly revision: number | undefined;
  readonly losesState: boolean;
}

/** All tasks change their slots in one decision; each starts when it has been released. */
function cut(given: MoveInput, goal: Goal, events: readonly MoveEvent[]): MoveStep {
  const { stored, nowMs } = given;
  const input = { ...given, losesState: goal.losesState };
  // What can travel may have changed since the target was set.
  const { pieces, stayed, isWhole } = settle(input, goal.slots);
  const version = stored.version + 1;
  const moves = movesBetween(input, pieces, version);
  const known = [...stored.slots, ...goal.slots];
  const kept = new Set([...emptySlots(stored), ...moves.map(({ from }) => keyOf(from))]);
  const slots = slotsWith(pieces, kept, known, nowMs);
  const revision = isWhole ? goal.revision : stored.revision;
  const assignment = assignmentOf(stored, { slots, tasks: goal.tasks, revision });
  const news = events.some(({ kind }) => kind === 'stayed') ? [] : stayed.map(stayedEvent(stored));
  return {
    kind: 'write',
    assignment: moves.length === 0 ? assignment : { ...assignment, moves },
    events: [...events, ...news, { kind: 'begun', tasks: countTasks(moves) }],
  };
}

// ── moving ──

/** How one task of a move stands. */
type Standing =
  | { readonly kind: 'under-way' }
  /** Its new place has it, or its old one keeps it where it is to be. */
  | { readonly kind: 'there' }
  /** It could not be started, and there is no other place: it is tried where it is until it can. */
  | { readonly kind: 'stranded' }
  /** It has to be somewhere else. */
  | { readonly kind: 'elsewhere'; readonly slot: SlotKey; readonly error: ErrorRecord | null };

function advanceMoving(input: MoveInput, moves: readonly TaskMove[]): MoveStep {
  const { stored, gone, handovers } = input;
  const places = slotOfTask(piecesOf(stored.slots));
  const wanted = slotOfTask(piecesOf(input.desired?.slots ?? []));
  const moveOf = new Map(moves.flatMap((move) => tasksOf(move.tasks).map((task) => [task, move] as const)));
  const standings = new Map<number, Standing>();
  const lost: Handover[] = [];
  for (const [task, move] of moveOf) {
    const state = handoverState(handovers, task, move.move);
    const isOrphan =
      gone.has(move.from.supervisor) && state.released === undefined && state.kept === undefined;
    if (isOrphan) lost.push({ task, move: move.move, step: { kind: 'released', state: { kind: 'lost' } } });
    standings.set(task, standingOf(input, task, places.get(task), wanted.get(task), move, state));
  }
  if (lost.length > 0) return { kind: 'release', handovers: lost };
  const redirected = redirect(input, moveOf, standings, places);
  if (redirected !== undefined) return redirected;
  const fresh = placeFresh(input, moves);
  if (fresh !== undefined) return fresh;
  if ([...standings.values()].some(({ kind }) => kind === 'under-way')) return NONE;
  const idle = droppable(input);
  const slots = stored.slots.filter((slot) => !idle.has(keyOf(slot)));
  const { tasks, revision } = stored;
  return {
    kind: 'write',
    assignment: assignmentOf(stored, { slots, tasks, revision }),
    events: [{ kind: 'done', tasks: moveOf.size }],
  };
}

function standingOf(
  input: MoveInput,
  task: number,
  place: SlotKey | undefined,
  wanted: SlotKey | undefined,
  move: TaskMove,
  { released, kept, taken, failures }: HandoverState,
): Standing {
  const home = keyOf(move.from);
  const isGone = (slot: SlotKey): boolean =>
    input.stored.slots.some((one) => keyOf(one) === slot && input.gone.has(one.supervisor));
  if (place === undefined) return { kind: 'elsewhere', slot: home, error: null };
  if (place === home) {
    // Kept by a machine that is gone: it is dead as any other there, and the scheduler knows what to do.
    if (kept !== undefined) return { kind: 'there' };
    if (isGone(place))
      return wanted === undefined || wanted === place
        ? { kind: 'under-way' }
        : { kind: 'elsewhere', slot: wanted, error: null };
    const isBack = released !== undefined && taken !== undefined;
    return isBack && input.slots.get(place)?.running.has(task) === true
      ? { kind: 'there' }
      : { kind: 'under-way' };
  }
  if (kept !== undefined) return { kind: 'elsewhere', slot: home, error: kept.error };
  const facts = input.slots.get(place);
  if (!isGone(place) && facts?.isCurrent === true && facts.running.has(task)) return { kind: 'there' };
  const isHomeThere = !input.gone.has(move.from.supervisor);
  const failure = failures.find((one) => keyOf(one) === place);
  if (failure !== undefined && isHomeThere) return { kind: 'elsewhere', slot: home, error: failure.error };
  if (failure !== undefined && !isGone(place)) return { kind: 'stranded' };
  // A place that is only slow may start it at any moment: it is waited for.
  if (!isGone(place)) return { kind: 'under-way' };
  if (wanted !== undefined && wanted !== place) return { kind: 'elsewhere', slot: wanted, error: null };
  return isHomeThere ? { kind: 'elsewhere', slot: home, error: null } : { kind: 'under-way' };
}

/** Sends executors elsewhere of which a task has to be there (M3). */
function redirect(
  input: MoveInput,
  moveOf: ReadonlyMap<number, TaskMove>,
  standings: ReadonlyMap<number, Standing>,
  places: ReadonlyMap<number, SlotKey>,
): MoveStep | undefined {
  const { stored, nowMs, desired } = input;
  const version = stored.version + 1;
  const known = [...stored.slots, ...(desired?.slots ?? [])];
  const pieces: Piece[] = [];
  const moves: TaskMove[] = [];
  const events: MoveEvent[] = [];
  let isChanged = false;
  const keep = (task: number, move: TaskMove): void => void moves.push({ ...move, tasks: [task, task] });
  for (const { range, slot } of piecesOf(stored.slots)) {
    const tasks = tasksOf(range);
    // Where others of its executor may still arrive at any moment, a task waits: their place has to know first.
    const isOpen = tasks.some((task) => standings.get(task)?.kind === 'under-way');
    const sent = tasks.flatMap((task) => {
      const standing = standings.get(task);
      return standing?.kind === 'elsewhere' && !isOpen ? [{ task, standing }] : [];
    });
    for (const { task, standing } of sent) {
      const component = componentOf(stored.tasks, task);
      if (standing.error !== null) events.push({ kind: 'returned', component, task, error: standing.error });
    }
    const goal = sent[0]?.standing.slot;
    // Where not all can go to one place, each goes where it has to be, and the executor is cut.
    const isWhole =
      sent.every(({ standing }) => standing.slot === goal) &&
      tasks.every((task) => standings.get(task)?.kind === 'elsewhere' || canFollow(input, task, standings));
    const goalOf = (task: number): SlotKey => {
      const standing = standings.get(task);
      if (standing?.kind === 'elsewhere' && !isOpen) return standing.slot;
      return goal !== undefined && isWhole ? goal : slot;
    };
    for (const run of runsOf(range, goalOf)) pieces.push({ range: run.range, slot: run.value });
    for (const task of tasks) {
      const move = moveOf.get(task);
      const next = goalOf(task);
      if (next !== slot) isChanged = true;
      const standing = standings.get(task);
      if (next === slot && standing?.kind === 'stranded') {
        const place = stored.slots.find((one) => keyOf(one) === slot);
        if (move !== undefined && place !== undefined) keep(task, { ...move, from: placeOf(place) });
        isChanged = true;
        continue;
      }
      if (next === slot) {
        if (move !== undefined) keep(task, move);
        continue;
      }
      const home = move === undefined ? undefined : keyOf(move.from);
      const isKept = standing?.kind === 'elsewhere' && standing.error !== null && next === home;
      const state = move === undefined ? undefined : handoverState(input.handovers, task, move.move);
      // Kept where it now is to be: nothing is under way with it any more.
      if (isKept && state?.kept !== undefined) continue;
      if (move !== undefined && standing?.kind !== 'there') keep(task, move);
      else if (!isSystemTask(stored.tasks, task)) {
        const from = known.find((one) => keyOf(one) === (places.get(task) ?? slot));
        if (from !== undefined) moves.push({ tasks: [task, task], from: placeOf(from), move: version });
      }
    }
  }
  if (!isChanged) return undefined;
  const slots = slotsWith(pieces, new Set(stored.slots.map(keyOf)), known, nowMs);
  const { tasks, revision } = stored;
  const assignment = assignmentOf(stored, { slots, tasks, revision });
  return {
    kind: 'write',
    assignment: moves.length === 0 ? assignment : { ...assignment, moves: joined(moves) },
    events,
  };
}

/** Can a task that runs go where others of its executor have to be? */
function canFollow(input: MoveInput, task: number, standings: ReadonlyMap<number, Standing>): boolean {
  return (
    standings.get(task)?.kind === 'stranded' || isSystemTask(input.stored.tasks, task) || mayMove(input, task)
  );
}

/** Places what is nowhere while others move (M2). */
function placeFresh(input: MoveInput, moves: readonly TaskMove[]): MoveStep | undefined {
  const { stored, desired, nowMs } = input;
  if (desired === undefined) return undefined;
  const moving = new Set(moves.flatMap(({ tasks }) => tasksOf(tasks)));
  const sources = sourcesOf(input);
  const isNowhere = (task: number): boolean => !moving.has(task) && !sources.has(task);
  const fresh: Piece[] = piecesOf(desired.slots).flatMap(({ range, slot }) =>
    runsOf(range, isNowhere).flatMap((run) => (run.value ? [{ range: run.range, slot }] : [])),
  );
  if (fresh.length === 0) return undefined;
  const placed = new Set(fresh.flatMap(({ range }) => tasksOf(range)));
  const rest = piecesOf(stored.slots).flatMap(({ range, slot }) =>
    runsOf(range, (task) => !placed.has(task)).flatMap((run) =>
      run.value ? [{ range: run.range, slot }] : [],
    ),
  );
  const known = [...stored.slots, ...desired.slots];
  const slots = slotsWith([...rest, ...fresh], new Set(stored.slots.map(keyOf)), known, nowMs);
  const { tasks, revision } = stored;
  const assignment = { ...assignmentOf(stored, { slots, tasks, revision }), moves };
  return sameButVersion(assignment, stored) ? undefined : { kind: 'write', assignment, events: [] };
}

// ── after it ──

function giveUpIdle(input: MoveInput): MoveStep {
  const idle = droppable(input);
  if (idle.size === 0) return NONE;
  const { stored } = input;
  const { tasks, revision } = stored;
  const slots = stored.slots.filter((slot) => !idle.has(keyOf(slot)));
  return { kind: 'write', assignment: assignmentOf(stored, { slots, tasks, revision }), events: [] };
}

/** Slots without executors whose workers have nothing more to say (M4). */
function droppable({ stored, slots, gone }: MoveInput): ReadonlySet<SlotKey> {
  const idle = stored.slots.filter((slot) => {
    if (slot.executors.length > 0) return false;
    const facts = slots.get(keyOf(slot));
    if (gone.has(slot.supervisor)) return true;
    return facts !== undefined && (!facts.hasWorker || (facts.isIdle && facts.isCurrent));
  });
  return new Set(idle.map(keyOf));
}

/** Slots without executors: their workers get ready, or have still something to say. */
function emptySlots({ slots }: Assignment): ReadonlySet<SlotKey> {
  return new Set(slots.filter(({ executors }) => executors.length === 0).map(keyOf));
}

function assignmentOf(
  { topologyId, version }: Assignment,
  { slots, tasks, revision }: Omit<Goal, 'losesState'>,
): Assignment {
  return { topologyId, version: version + 1, tasks, slots, ...(revision === undefined ? {} : { revision }) };
}

function sameButVersion(a: Assignment, b: Assignment): boolean {
  return JSON.stringify({ ...a, version: 0 }) === JSON.stringify({ ...b, version: 0 });
}

function placeOf({ supervisor, port }: SlotAssignment): TaskMove['from'] {
  return { supervisor, port };
}

function countTasks(moves: readonly TaskMove[]): number {
  return moves.reduce((sum, { tasks: [first, last] }) => sum + last - first + 1, 0);
}

/** Joins entries of neighbouring tasks that have everything else in common. */
function joined(moves: readonly TaskMove[]): readonly TaskMove[] {
  const result: TaskMove[] = [];
  for (const move of [...moves].sort((a, b) => a.tasks[0] - b.tasks[0])) {
    const last = result.at(-1);
    const isNext =
      last !== undefined &&
      last.tasks[1] === move.tasks[0] - 1 &&
      last.move === move.move &&
      keyOf(last.from) === keyOf(move.from);
    if (isNext) result[result.length - 1] = { ...last, tasks: [last.tasks[0], move.tasks[1]] };
    else result.push(move);
  }
  return result;
}

function cancelled(reason: string, { topologyId }: Assignment): MoveEvent {
  const message = `the move was called off: ${reason}`;
  return {
    kind: 'cancelled',
    error: toErrorRecord(new IsobarError('MOVE_CANCELLED', message, { where: topologyId })),
  };
}

function stayedEvent(stored: Assignment): (stay: Stay) => MoveEvent {
  return ({ range, reason }) => ({
    kind: 'stayed',
    component: componentOf(stored.tasks, range[0]),
    tasks: range,
    reason,
  });
}
