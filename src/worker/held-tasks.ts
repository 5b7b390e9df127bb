/**
 * The tasks that are on their way, as one sending thread sees them: rows for them are held here from the moment the routes
 * say so, their old place is told that no more come, and what was held goes to wherever they arrive.
 */
import { MOVE_CUT } from '../messaging/index.js';
import type { ExecutorFactory } from './executor-factory.js';
import { HeldRows } from './held-rows.js';
import type { FromThread, HeldTask, ToThread } from './thread-messages.js';

type RoutesMessage = Extract<ToThread, { kind: 'routes' }>;

interface Held {
  readonly rows: HeldRows;
  /** The move, and the place, that have been told that no more rows come. */
  toldId: number;
  toldEndpoint: number;
}

export class HeldTasks {
  readonly #factory: ExecutorFactory;
  readonly #post: (message: FromThread) => void;
  readonly #held = new Map<number, Held>();
  /** Of every task that is on its way. */
  rows: readonly HeldRows[] = [];

  constructor(factory: ExecutorFactory, post: (message: FromThread) => void) {
    this.#factory = factory;
    this.#post = post;
  }

  /**
   * Holds what is to be held and lets go of tasks that have arrived. Links must be up to date already. Returns what must be
   * called once tasks have been pointed at their links: it sends on what was held.
   */
  apply(routes: RoutesMessage, ownEndpoint: number): () => void {
    const wanted = new Set(routes.held.map(({ task }) => task));
    for (const one of routes.held) this.#hold(one, routes.endpointOfTask[one.task] ?? -1, ownEndpoint);
    const arrived: HeldRows[] = [];
    const { context } = this.#factory;
    for (const [task, { rows }] of this.#held) {
      // Its place is lost: what is held for it waits until it is somewhere again.
      if (wanted.has(task) || (routes.endpointOfTask[task] ?? -1) < 0) continue;
      this.#held.delete(task);
      context.setStandIn(task, undefined);
      arrived.push(rows);
    }
    this.rows = [...this.#held.values()].map(({ rows }) => rows);
    return () => {
      for (const rows of arrived) rows.release(context);
    };
  }

  /** Does a row of that task wait here for another one, outside cycles? */
  hasRowOf(sourceTask: number): boolean {
    return this.rows.some((rows) => rows.hasRowOf(sourceTask));
  }

  #hold({ task, id }: HeldTask, place: number, ownEndpoint: number): void {
    const { context, edges } = this.#factory;
    let held = this.#held.get(task);
    if (held === undefined) {
      held = { rows: new HeldRows(context, edges), toldId: -1, toldEndpoint: -1 };
      this.#held.set(task, held);
      context.setStandIn(task, held.rows);
    }
    if (place < 0 || (held.toldId === id && held.toldEndpoint === place)) return;
    held.toldId = id;
    held.toldEndpoint = place;
    if (place === ownEndpoint) {
      this.#post({ kind: 'cut', task, id, endpoint: place });
      return;
    }
    const link = context.links.get(place);
    if (link === undefined) return;
    for (const rows of link.takeHeldFor(task)) held.rows.take(rows);
    link.mark(MOVE_CUT, task, id);
  }
}
