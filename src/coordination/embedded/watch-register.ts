/** Which connection watches which path, and telling them: one event per connection and commit. */
import { type Channel, IsobarError } from '../../base/index.js';
import { nameOf, parentOf } from './node-tree.js';
import { MAX_WATCHES } from './protocol.js';

export class WatchRegister {
  readonly #channelsByPath = new Map<string, Set<Channel>>();
  readonly #pathsByChannel = new Map<Channel, Set<string>>();

  /** @throws PEER_PROTOCOL_ERROR for a connection that has too many */
  add(path: string, channel: Channel): void {
    if (channel.isClosed) return;
    const paths = entry(this.#pathsByChannel, channel);
    if (paths.size >= MAX_WATCHES && !paths.has(path)) {
      throw new IsobarError('PEER_PROTOCOL_ERROR', `a connection watches more than ${MAX_WATCHES} nodes`, {
        expected: `at most ${MAX_WATCHES} watches`,
        found: 'one more',
        where: 'coordinator protocol',
      });
    }
    entry(this.#channelsByPath, path).add(channel);
    paths.add(path);
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

  /** Tells everybody who watches one of the nodes that have changed, or the parent of one. */
  tell(changedPaths: ReadonlySet<string>): void {
    const toldByChannel = new Map<Channel, Map<string, string[]>>();
    const note = (watched: string, child: string | undefined): void => {
      for (const channel of this.#channelsByPath.get(watched) ?? []) {
        let told = toldByChannel.get(channel);
        if (told === undefined) toldByChannel.set(channel, (told = new Map<string, string[]>()));
        const children = told.get(watched) ?? [];
        told.set(watched, children);
        if (child !== undefined) children.push(child);
      }
    };
    for (const path of changedPaths) {
      note(path, undefined);
      note(parentOf(path), nameOf(path));
    }
    for (const [channel, told] of toldByChannel) channel.event('changed', [...told]);
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
