import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SOURCE = fileURLToPath(new URL('..', import.meta.url));
/** An import or export of values, static. */
const STATIC = /^(?:import|export) (?!type )[^;]*? from '([^']+)';|^import '([^']+)';/gm;

/** What is loaded before the first line of a module runs: folders of Isobar, and packages. */
function loadedBy(entry: string): {
  readonly folders: ReadonlySet<string>;
  readonly packages: ReadonlySet<string>;
} {
  const seen = new Set<string>();
  const folders = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    folders.add(relative(SOURCE, file).split('/')[0]!);
    for (const [, from, alone] of readFileSync(file, 'utf8').matchAll(STATIC)) {
      const name = (from ?? alone)!;
      if (name.startsWith('.')) visit(resolve(dirname(file), name.replace(/\.js$/, '.ts')));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  };
  visit(resolve(SOURCE, entry));
  return { folders, packages };
}

describe('a worker that starts', () => {
  // Every module here is time until the first row after a worker was lost.
  it('loads no scheduler, coordinator or validation library in its main thread', () => {
    const { folders, packages } = loadedBy('worker/main.ts');
    expect([...folders].sort()).toEqual(['base', 'coordination', 'messaging', 'worker']);
    expect([...packages].sort()).toEqual(['fastest-levenshtein', 'pino']);
  });

  it('loads what runs rows, and nothing else, in its executor threads', () => {
    const { folders, packages } = loadedBy('worker/thread-main.ts');
    expect([...folders].sort()).toEqual(['base', 'messaging', 'topology', 'worker']);
    expect([...packages].sort()).toEqual(['fastest-levenshtein', 'pino']);
  });
});
