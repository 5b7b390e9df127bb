/**
 * Watches that last, made of ZooKeeper's, which tell of one change and are gone.
 *
 * W1 A watch is armed again before its callbacks are called: what changes after a reader's look is told again.
 * W2 After a new connection every watch is armed again, then called, whatever happened meanwhile.
 * W3 A path's node, its list of children and each child are watched; a change of one costs one request, not a new look at all.
 */
import type { Clock, Logger } from '../../base/index.js';
import type { StopWatching } from '../coordination.js';
import type { OnNodeChange } from '../node-store.js';
import type { NodeEvent, Refusal, ServerConnection } from './server-connection.js';

type Due = Set<string> | 'anything';

interface WatchedPath {
  readonly callbacks: Set<OnNodeChange>;
  /** Children whose watch stands or is being set. */
  readonly armed: Set<string>;
  /** Children whose watch has fired and is to be set again. */
  readonly fired: Set<string>;
  /** Whether the watches of the node itself and of the list of its children are to be set. */
  mustArmNode: boolean;
  mustArmChildren: boolean;
  /** What is to be told: children that changed, or that anything may have. What comes while arming waits for the next. */
  due: Due;
  isWorking: boolean;
}

const RETRY_MS = 1000;

export class LastingWatches {
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Full paths. */
  readonly #paths = new Map<string, WatchedPath>();
  #connection: ServerConnection | null = null;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  watch(path: string, onChange: OnNodeChange): StopWatching {
    // A registration of its own, so that one function given twice can be stopped once.
    const registered: OnNodeChange = (children) => onChange(children);
    let watched = this.#paths.get(path);
    if (watched === undefined) {
      watched = {
        callbacks: new Set(),
        armed: new Set(),
        fired: new Set(),
        mustArmNode: true,
        mustArmChildren: true,
        // A child may change after the caller's first look and before its watch stands.
        due: 'anything',
        isWorking: false,
      };
      this.#paths.set(path, watched);
    }
    watched.callbacks.add(registered);
    void this.#work(path, watched);
    return () => {
      if (!watched.callbacks.delete(registered) || watched.callbacks.size > 0) return;
      if (this.#paths.get(path) === watched) this.#paths.delete(path);
    };
  }

  /** W2. */
  connected(connection: ServerConnection): void {
    this.#connection = connection;
    for (const [path, watched] of this.#paths) this.#startAnew(path, watched);
  }

  disconnected(): void {
    this.#connection = null;
  }

  close(): void {
    this.#connection = null;
    this.#paths.clear();
  }

  /** A watch of the server has fired: for a watched path, or for a child of one. */
  onNodeEvent({ path, kind }: NodeEvent): void {
    const own = this.#paths.get(path);
    if (own !== undefined) {
      if (kind !== 'children') own.mustArmNode = true;
      // A node that comes or goes has no watch of its children.
      if (kind !== 'changed') own.mustArmChildren = true;
      // Of children that come and go the new list tells.
      if (kind !== 'children') own.due = 'anything';
      void this.#work(path, own);
    }
    if (kind === 'children') return;
    const slash = path.lastIndexOf('/');
    const parentPath = path.slice(0, slash);
    const parent = this.#paths.get(parentPath);
    if (parent === undefined) return;
    const name = path.slice(slash + 1);
    // A child that is gone, or was there only for a moment, is no longer in the list of children.
    if (parent.armed.delete(name) && kind !== 'removed') parent.fired.add(name);
    tellOf(parent.due, name);
    void this.#work(parentPath, parent);
  }

  /** Arms what is not armed, then calls; again if more has happened meanwhile. One at a time for each path. */
  async #work(path: string, watched: WatchedPath): Promise<void> {
    if (watched.isWorking) return;
    watched.isWorking = true;
    while (this.#paths.get(path) === watched && this.#connection !== null && isDue(watched)) {
      const connection = this.#connection;
      const { due } = watched;
      watched.due = new Set();
      const refusal = await this.#arm(connection, path, watched, due);
      // W2: the next connection arms and calls. It may be there already.
      if (refusal === 'lost' && connection === this.#connection) break;
      if (refusal === 'lost') continue;
      if (refusal !== null) this.#retryLater(path, watched, refusal);
      this.#call(watched, due);
    }
    watched.isWorking = false;
  }

  async #arm(
    connection: ServerConnection,
    path: string,
    watched: WatchedPath,
    due: Due,
  ): Promise<Refusal | null> {
    const { mustArmNode, mustArmChildren, armed, fired } = watched;
    watched.mustArmNode = false;
    watched.mustArmChildren = false;
    const [node, children] = await Promise.all([
      mustArmNode ? connection.watchNode(path) : null,
      mustArmChildren ? connection.watchChildren(path) : null,
    ]);
    if (connection !== this.#connection) return 'lost';
    if (node?.isDone === false) return node.refusal;
    if (children?.isDone === true) {
      const names = new Set(children.value);
      for (const name of armed) {
        if (names.has(name)) continue;
        armed.delete(name);
        tellOf(due, name);
      }
      for (const name of children.value) {
        if (armed.has(name)) continue;
        if (!fired.has(name)) tellOf(due, name);
        fired.add(name);
      }
    } else if (children !== null && children.refusal !== 'no-node') return children.refusal;
    const names = [...fired];
    fired.clear();
    for (const name of names) armed.add(name);
    const answers = await Promise.all(names.map((name) => connection.watchNode(`${path}/${name}`)));
    if (connection !== this.#connection) return 'lost';
    return answers.find((answer) => !answer.isDone)?.refusal ?? null;
  }

  #retryLater(path: string, watched: WatchedPath, refusal: Refusal): void {
    this.#logger.warn('coordination.watch-failed', { path, refusal });
    this.#clock.after(RETRY_MS, () => this.#startAnew(path, watched));
  }

  #startAnew(path: string, watched: WatchedPath): void {
    watched.armed.clear();
    watched.fired.clear();
    watched.mustArmNode = true;
    watched.mustArmChildren = true;
    watched.due = 'anything';
    void this.#work(path, watched);
  }

  /** A callback that throws must not keep the others from being called. */
  #call(watched: WatchedPath, due: Due): void {
    if (due !== 'anything' && due.size === 0) return;
    const children = due === 'anything' ? undefined : [...due];
    for (const callback of [...watched.callbacks]) {
      if (!watched.callbacks.has(callback)) continue;
      try {
        callback(children);
      } catch (error) {
        this.#logger.error('coordination.callback-failed', { error: String(error) });
      }
    }
  }
}

function isDue({ mustArmNode, mustArmChildren, fired, due }: WatchedPath): boolean {
  return mustArmNode || mustArmChildren || fired.size > 0 || due === 'anything' || due.size > 0;
}

function tellOf(due: Due, child: string): void {
  if (due !== 'anything') due.add(child);
}
