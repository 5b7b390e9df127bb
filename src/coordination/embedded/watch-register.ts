/** Which connection watches which path, and telling them: one event per connection and commit. */
import type { Channel } from '../../base/index.js';

export class WatchRegister {
  readonly #channelsByPath = new Map<string, Set<Channel>>();
  readonly #pathsByChannel = new Map<Channel, Set<string>>();

  add(path: string, channel: Channel): void {
    if (channel.isClosed) return;
    entry(this.#channelsByPath, path).add(channel);
    entry(this.#pathsByChannel, channel).add(path);
  }

  remove(path: string, channel: Channel): void {
    removeFrom(this.#channelsByPath, path, channel);
    removeFrom(this.#pathsByChannel, channel, path);
  }

  removeAll(channel: Channel): void {
    for (const path of this.#pathsByChannel.get(channel) ?? []) {
      removeFrom(this.#channelsByPath, path, channel);
    }
    this.#pathsByChannel.delete(channel);
  }

  /** Tells everybody who watches one of `paths`. */
  tell(paths: ReadonlySet<string>): void {
    const changedByChannel = new Map<Channel, Set<string>>();
    for (const path of paths) {
      for (const channel of this.#channelsByPath.get(path) ?? []) entry(changedByChannel, channel).add(path);
    }
    for (const [channel, changed] of changedByChannel) channel.event('changed', [...changed]);
  }
}

function entry<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  let set = map.get(key);
  if (set === undefined) {
    set = new Set();
    map.set(key, set);
  }
  return set;
}

function removeFrom<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const set = map.get(key);
  if (set?.delete(value) === true && set.size === 0) map.delete(key);
}
