/**
 * Where the running package lies, and its files that are started as processes and threads or named to other programs.
 *
 * Modules find each other by import only: what is installed is a few bundles, in which no module lies where its source does.
 */

/** The directory with package.json. Holds for sources, and for what is built from them in folders of the same depth. */
export function packageRoot(): URL {
  return new URL('../../', import.meta.url);
}

/** Entries of the installed package, by their names below `dist`; `tools/bundle.mjs` bundles them. */
export type PackageEntry =
  | 'index'
  | 'engines/dev/daemon-main'
  | 'engines/dev/keeper-main'
  | 'engines/local/daemon-main'
  | 'engines/submission/evaluate-main'
  | 'engines/submission/type-check-main'
  | 'nimbus/deciding/strategy-main'
  | 'worker/main'
  | 'worker/thread-main';

export function packageEntry(name: PackageEntry): URL {
  return new URL(`dist/${name}.js`, packageRoot());
}
