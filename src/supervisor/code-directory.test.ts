import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger, VirtualClock } from '../base/index.js';
import { CodeDirectory } from './code-directory.js';
import type { Blobs, LocalisedCode } from './localiser.js';

const DAY_MS = 86_400_000;

let root: string;
let directory: string;
let code: CodeDirectory;
const blobs = new Map<string, Uint8Array>();
/** Resolved before a blob is given out. */
let isReadable: Promise<void>;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'isobar-code-'));
  directory = join(root, 'code');
  mkdirSync(directory);
  isReadable = Promise.resolve();
  code = create();
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** As a supervisor's start has it; its clock is a day ahead of the files. */
function create(): CodeDirectory {
  const store: Pick<Blobs, 'read' | 'readSourceMap'> = {
    read: async (hash) => {
      await isReadable;
      return blobs.get(hash)!;
    },
    readSourceMap: () => Promise.resolve(undefined),
  };
  return new CodeDirectory({
    directory,
    // The rest is not used here.
    blobs: store as Blobs,
    clock: new VirtualClock(Date.now() + DAY_MS),
    logger: silentLogger,
  });
}

function put(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex');
  blobs.set(hash, Buffer.from(text));
  return hash;
}

function topology(name: string): { name: string; codeHash: string; descriptionHash: string } {
  return { name, codeHash: put(`code of ${name}`), descriptionHash: put(`description of ${name}`) };
}

function launchFileOf(worker: string, { codePath }: LocalisedCode): string {
  const path = join(root, `launch-${worker}.json`);
  writeFileSync(path, JSON.stringify({ codePath }));
  return path;
}

describe('localised code', () => {
  it('goes when the worker that used it is gone and its port has other code', async () => {
    const old = await code.localise(1, topology('old'));
    const launchFile = launchFileOf('w1', old);
    await code.localise(1, topology('new'));
    code.prune([launchFile]);
    expect(readdirSync(directory)).toHaveLength(2);
    code.prune([]);
    expect(existsSync(old.codePath)).toBe(false);
    expect(readdirSync(directory)).toHaveLength(1);
  });

  it('stays for workers that an earlier supervisor has started, and is shared by all that have the same', async () => {
    const shared = await code.localise(1, topology('shared'));
    await code.localise(2, topology('shared'));
    await code.localise(3, topology('gone'));
    const successor = create();
    successor.prune([launchFileOf('w1', shared)]);
    expect(existsSync(shared.codePath)).toBe(true);
    expect(readdirSync(directory)).toHaveLength(1);
  });

  it('stays while it is being fetched, and once it has been for a port', async () => {
    let release: () => void = () => undefined;
    isReadable = new Promise((resolve) => (release = resolve));
    const fetching = code.localise(1, topology('slow'));
    // As an attempt that was killed has left it.
    const [name] = [...new Set([topology('slow')])].map(
      ({ codeHash, descriptionHash }) => `${codeHash.slice(0, 24)}-${descriptionHash.slice(0, 24)}`,
    );
    mkdirSync(join(directory, name!));
    code.prune([]);
    expect(readdirSync(directory)).toEqual([name]);
    release();
    const { codePath } = await fetching;
    code.prune([]);
    expect(existsSync(codePath)).toBe(true);
  });

  it('stays while it is new, whoever it belongs to', () => {
    const recent = new Date(Date.now() + DAY_MS);
    for (const [name, changed] of [
      ['recent', recent],
      ['old', new Date()],
    ] as const) {
      mkdirSync(join(directory, name));
      utimesSync(join(directory, name), changed, changed);
    }
    code.prune([]);
    expect(readdirSync(directory)).toEqual(['recent']);
  });

  it('stays as a whole where a launch file does not say what its worker uses', async () => {
    await create().localise(1, topology('a'));
    const damaged = join(root, 'launch-w1.json');
    for (const text of ['{"torn', '{}', 'null', '{"codePath":7}']) {
      writeFileSync(damaged, text);
      code.prune([damaged]);
    }
    code.prune([join(root, 'launch-missing.json')]);
    expect(readdirSync(directory)).toHaveLength(1);
  });
});
