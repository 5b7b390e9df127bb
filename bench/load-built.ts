import { fileURLToPath } from 'node:url';

/** The command, as it gets installed. */
export const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Loads a module of the build that this bench is part of, by its path there, such as `base/index.js`. */
export async function loadBuilt<T>(path: string): Promise<T> {
  // Compiled beside it, from the sources that the type was taken from.
  return (await import(new URL(`../${path}`, import.meta.url).href)) as T;
}
