import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MAX_SOCKET_PATH_BYTES } from '../base/index.js';
import { clusterDirectory, clusterSocketDirectory, controlSocketPath } from './cluster-place.js';

describe('the place of a cluster', () => {
  it('is the directory given, then $ISOBAR_HOME/dev, then ~/.isobar/dev', () => {
    expect(clusterDirectory('/data/mine', { ISOBAR_HOME: '/srv/isobar' }, '/home/ann')).toBe('/data/mine');
    expect(clusterDirectory(undefined, { ISOBAR_HOME: '/srv/isobar' }, '/home/ann')).toBe('/srv/isobar/dev');
    expect(clusterDirectory(undefined, { ISOBAR_HOME: '' }, '/home/ann')).toBe('/home/ann/.isobar/dev');
    expect(clusterDirectory('', {}, '/home/ann')).toBe('/home/ann/.isobar/dev');
  });

  it('is the same by every name, before it exists and after', () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'isobar-place-')));
    try {
      mkdirSync(join(root, 'data'));
      symlinkSync(join(root, 'data'), join(root, 'link'));
      const byLink = (): string => clusterDirectory(undefined, { ISOBAR_HOME: join(root, 'link', 'a') }, '/');
      expect(byLink()).toBe(join(root, 'data', 'a', 'dev'));
      mkdirSync(join(root, 'data', 'a', 'dev'), { recursive: true });
      expect(byLink()).toBe(join(root, 'data', 'a', 'dev'));
      expect(clusterDirectory(join(root, 'link', 'a', 'dev'), {}, '/')).toBe(byLink());
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it('has its sockets inside', () => {
    expect(controlSocketPath('/home/ann/.isobar/dev')).toBe('/home/ann/.isobar/dev/s/control.sock');
    expect(controlSocketPath('/home/ann/.isobar/dev/')).toBe('/home/ann/.isobar/dev/s/control.sock');
  });

  it('has them elsewhere, always in the same place of its own, where the directory is too long for a socket', () => {
    const long = `/home/${'a'.repeat(100)}`;
    const directory = clusterSocketDirectory(long);
    expect(directory).toMatch(/^\/tmp\/isobar-\d+-[0-9a-f]{20}$/);
    expect(clusterSocketDirectory(`${long}/`)).toBe(directory);
    expect(clusterSocketDirectory(`${long}b`)).not.toBe(directory);
    expect(Buffer.byteLength(directory) + 40).toBeLessThanOrEqual(MAX_SOCKET_PATH_BYTES);
  });
});
