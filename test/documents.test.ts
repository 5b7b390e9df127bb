/** README and docs: their code is code that is run elsewhere, their links and commands exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const DOCUMENTS = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const WITH_CODE = ['README.md', 'docs/tutorial.md', 'docs/testing.md', 'docs/flights.md'];
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface Block {
  /** The file named in the comment above the block. */
  readonly file: string | undefined;
  readonly code: string;
}

function blocksOf(document: string): Block[] {
  const fences = read(document).matchAll(/(?:^<!-- (\S+) -->\n)?^```ts\n(.*?)^```$/gms);
  return [...fences].map((match) => ({ file: match[1], code: match[2]! }));
}

/** Is `code` a run of whole lines of `text`, at some indentation? */
function isPartOf(code: string, text: string): boolean {
  return [0, 2, 4, 6].some((indent) =>
    `\n${text}`.includes(`\n${code.replaceAll(/^(?=.)/gm, ' '.repeat(indent))}`),
  );
}

describe.each(WITH_CODE)('the TypeScript of %s', (document) => {
  it('is taken from files that tests run', () => {
    const blocks = blocksOf(document);
    expect(blocks.length).toBeGreaterThan(0);
    for (const { file, code } of blocks) {
      expect(file, code).toMatch(/^examples\/(tutorial|readme|testing|flights)\/[\w.-]+\.ts$/);
      expect(isPartOf(code, read(file!)), `in ${file}:\n${code}`).toBe(true);
    }
  });

  it('is the only place for fences marked as TypeScript in other ways', () => {
    expect(read(document)).not.toMatch(/^```(typescript|js|javascript|tsx)\b/m);
  });
});

describe('documents', () => {
  it('show something of every file of the tutorial', () => {
    const shown = new Set(blocksOf('docs/tutorial.md').map(({ file }) => file));
    const files = readdirSync(join(ROOT, 'examples/tutorial')).map((name) => `examples/tutorial/${name}`);
    expect([...shown].sort()).toEqual(files.sort());
  });

  it.each(DOCUMENTS)('have links that lead somewhere: %s', (document) => {
    const links = [...read(document).matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)].map((match) => match[1]!);
    const local = links.filter((link) => !/^[a-z]+:/.test(link));
    for (const link of local) expect(existsSync(join(ROOT, dirname(document), link)), link).toBe(true);
  });

  it.each(DOCUMENTS)('name scripts that package.json has: %s', (document) => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...read(document).matchAll(/npm run (?:-s )?([a-z][\w:-]*)/g)].map((match) => match[1]!);
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
  });

  it('are all in the index', () => {
    const index = read('docs/README.md');
    for (const document of DOCUMENTS.filter(
      (path) => path.startsWith('docs/') && path !== 'docs/README.md',
    )) {
      expect(index).toContain(`(${document.slice('docs/'.length)})`);
    }
  });
});
