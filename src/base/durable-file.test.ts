import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readJsonFile, removeUnfinished, writeDurableFile, writeWorkFile } from './durable-file.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-durable-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe('a durable file', () => {
  it('is whole, replaces the one before, and leaves nothing beside it', () => {
    const path = join(directory, 'a.json');
    writeDurableFile(path, '{"n":1}');
    writeDurableFile(path, '{"n":2}');
    expect([readJsonFile(path), readdirSync(directory)]).toEqual([{ n: 2 }, ['a.json']]);
  });

  it('that a writer was killed in the middle of is removed, and nothing else', () => {
    writeFileSync(join(directory, '.a.json.8a6e0804-2bd0-4672-b79d-d97027f9071a'), '{"n":');
    const others = ['.a.json', '.hidden', 'a.json', 'a.json.8a6e0804-2bd0-4672-b79d-d97027f9071a'];
    for (const name of others) writeFileSync(join(directory, name), 'x');
    removeUnfinished(directory);
    expect(readdirSync(directory).sort()).toEqual(others);
    expect(readFileSync(join(directory, '.hidden'), 'utf8')).toBe('x');
    removeUnfinished(join(directory, 'not-there'));
  });

  it('that cannot be written says where, and that the directory is unusable', () => {
    const path = join(directory, 'missing', 'x');
    expect(() => writeWorkFile(path, 'x')).toThrow(
      expect.objectContaining({
        code: 'STATE_DIRECTORY_UNUSABLE',
        details: expect.objectContaining({ where: path }) as object,
      }),
    );
  });
});
