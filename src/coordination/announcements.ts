/**
 * The ephemeral values that this process wants to exist (its supervisor, workers without one): made, taken over from
 * an older session, and made again when the session has expired.
 */
import { hasCode, type Logger } from '../base/index.js';
import type { ChunkedValues } from './chunked-values.js';
import type { NodeStore } from './node-store.js';

export class Announcements {
  readonly #store: NodeStore;
  readonly #values: ChunkedValues;
  readonly #logger: Logger;
  readonly #wanted = new Map<string, unknown>();
  #areExpired = false;

  constructor(store: NodeStore, values: ChunkedValues, logger: Logger) {
    this.#store = store;
    this.#values = values;
    this.#logger = logger;
  }

  /** Makes the value exist now and, whatever comes of this attempt, after each expired session. */
  async announce(path: string, value: unknown): Promise<void> {
    this.#wanted.set(path, value);
    await this.#takePath(path, value);
  }

  /** Removes this session's value; resolves to false where another session has taken it over. */
  async withdraw(path: string): Promise<boolean> {
    this.#wanted.delete(path);
    for (;;) {
      const node = await this.#store.read(path);
      if (node?.owner === 'another-session') return false;
      try {
        if (node !== undefined) await this.#values.remove(path, node.version);
        return true;
      } catch (error) {
        if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
      }
    }
  }

  /** The session is gone, and all values with it. */
  expire(): void {
    this.#areExpired = true;
  }

  /** Makes everything again if the session had expired. */
  async renew(): Promise<void> {
    if (!this.#areExpired) return;
    this.#areExpired = false;
    try {
      await Promise.all([...this.#wanted.keys()].map((path) => this.#renewOne(path)));
    } catch (error) {
      // Gone again (the next reconnect renews), or refused: whoever announces again from onReconnect sees why.
      this.#areExpired = true;
      this.#logger.warn('coordination.announce-failed', { error: String(error) });
    }
  }

  /** Wants nothing any more. */
  clear(): void {
    this.#wanted.clear();
  }

  /** A value that is withdrawn meanwhile must not come back. */
  async #renewOne(path: string): Promise<void> {
    await this.#takePath(path, this.#wanted.get(path));
    if (!this.#wanted.has(path)) await this.withdraw(path);
  }

  /**
   * Makes the node this session's own. One that another session left (this process before a restart) is replaced, not
   * written: it would go when that session ends.
   */
  async #takePath(path: string, value: unknown): Promise<void> {
    for (;;) {
      try {
        const node = await this.#store.read(path);
        if (node?.owner === 'this-session') {
          await this.#values.write(path, value, node.version, 'ephemeral');
          return;
        }
        if (node !== undefined) await this.#values.remove(path, node.version);
        await this.#values.create(path, value, 'ephemeral');
        return;
      } catch (error) {
        const isRace =
          hasCode(error, 'NODE_EXISTS') ||
          hasCode(error, 'NODE_MISSING') ||
          hasCode(error, 'VERSION_CONFLICT');
        if (!isRace) throw error;
      }
    }
  }
}
