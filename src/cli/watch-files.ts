/** Tells when one of a set of files changes. Watches their directories, since editors replace files rather than write them. */
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

const DEBOUNCE_MS = 150;

/**
 * Resolves once a file has changed and all has been quiet for a moment.
 *
 * @param signal ends the wait; the promise then resolves to false
 */
export function untilChanged(files: readonly string[], signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const byDirectory = new Map<string, Set<string>>();
    for (const file of files) {
      const names = byDirectory.get(dirname(file)) ?? new Set();
      byDirectory.set(dirname(file), names.add(basename(file)));
    }
    let timer: NodeJS.Timeout | undefined;
    const finish = (changed: boolean): void => {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
      signal.removeEventListener('abort', onAbort);
      resolve(changed);
    };
    const onAbort = (): void => finish(false);
    const watchers: FSWatcher[] = [...byDirectory].map(([directory, names]) => {
      const watcher = watch(directory, (_event, name) => {
        if (name !== null && !names.has(name)) return;
        clearTimeout(timer);
        timer = setTimeout(() => finish(true), DEBOUNCE_MS);
      });
      // A directory that is removed is a change.
      watcher.on('error', () => finish(true));
      return watcher;
    });
    if (signal.aborted) return finish(false);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
