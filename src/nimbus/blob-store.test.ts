import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBlobStore } from './blob-store.js';

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'isobar-blobs-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('the blob store', () => {
  it('names a blob by its content, readable by its owner only', async () => {
    const store = createBlobStore(root);
    const hash = await store.put(Buffer.from('abc'));
    expect(hash).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(Buffer.from(await store.read(hash)).toString()).toBe('abc');
    expect(statSync(store.blobPath(hash)).mode & 0o777).toBe(0o600);
    expect(await store.put(Buffer.from('abc'))).toBe(hash);
    expect(readdirSync(join(root, 'blobs'))).toEqual([hash]);
  });

  it('refuses a damaged blob, and repairs it when it is stored again', async () => {
    const store = createBlobStore(root);
    const hash = await store.put(Buffer.from('abc'));
    writeFileSync(store.blobPath(hash), 'abd');
    await expect(store.read(hash)).rejects.toMatchObject({ code: 'TOPOLOGY_CODE_LOST' });
    await store.put(Buffer.from('abc'));
    expect(Buffer.from(await store.read(hash)).toString()).toBe('abc');
  });

  it.each(['', '../../etc/passwd', 'A'.repeat(64)])('reads no file that %j might name', async (hash) => {
    await expect(createBlobStore(root).read(hash)).rejects.toMatchObject({ code: 'TOPOLOGY_CODE_LOST' });
  });

  it('keeps a source map beside its bundle and removes both together', async () => {
    const store = createBlobStore(root);
    const hash = await store.put(Buffer.from('code'));
    expect(await store.readSourceMap(hash)).toBeUndefined();
    await store.putSourceMap(hash, Buffer.from('{}'));
    expect((await store.readSourceMap(hash))?.toString()).toBe('{}');
    await store.remove(hash);
    await store.remove(hash);
    expect(readdirSync(join(root, 'blobs'))).toEqual([]);
  });

  it('takes a damaged document for an absent one', async () => {
    const store = createBlobStore(root);
    await store.writeDocument('a/b', { x: 1 });
    expect(await store.readDocument('a/b')).toEqual({ x: 1 });
    const [name] = readdirSync(join(root, 'documents'));
    const path = join(root, 'documents', name!);
    const whole = readFileSync(path);
    for (let length = 0; length < whole.length; length++) {
      writeFileSync(path, whole.subarray(0, length));
      expect(await store.readDocument('a/b'), `cut at ${length}`).toBeUndefined();
    }
    for (let at = 0; at < whole.length; at++) {
      const damaged = Buffer.from(whole);
      damaged[at]! ^= 1;
      writeFileSync(path, damaged);
      expect(await store.readDocument('a/b'), `another byte at ${at}`).toBeUndefined();
    }
    await store.removeDocument('a/b');
    expect(readdirSync(join(root, 'documents'))).toEqual([]);
  });

  it('says so when its directory cannot be used', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => createBlobStore(join(root, 'file'))).toThrow(
      expect.objectContaining({ code: 'STATE_DIRECTORY_UNUSABLE' }),
    );
  });
});
