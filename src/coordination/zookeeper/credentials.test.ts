import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../base/index.js';
import { parseCredentials, readCredentials } from './credentials.js';

describe('credentials', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'isobar-credentials-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it('are a user and a password that may hold colons and spaces', () => {
    expect(parseCredentials('isobar:a:b c\n', 'f')).toEqual({ user: 'isobar', password: 'a:b c' });
    expect(parseCredentials('isobar:x\r\n', 'f')).toEqual({ user: 'isobar', password: 'x' });
  });

  it.each([
    ['', 'no colon'],
    ['isobar-secret', 'no colon'],
    [':secret', 'no user'],
    ['isobar:', 'no password'],
    ['isobar:secret\nmore:secret', 'more than one line'],
  ])('that are not so are refused without being repeated: %j', (text, reason) => {
    try {
      parseCredentials(text, 'f');
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'COORDINATOR_CREDENTIALS_INVALID' });
      expect(String(error)).toContain(reason);
      expect(JSON.stringify([String(error), error])).not.toContain('secret');
    }
  });

  it('that cannot be read are refused with the name of the file', () => {
    expect(() => readCredentials(join(directory, 'missing'), silentLogger)).toThrow(/missing/);
  });

  it('that everybody can read are taken with a warning', () => {
    const file = join(directory, 'c');
    const warn = vi.fn();
    writeFileSync(file, 'isobar:secret\n', { mode: 0o600 });
    readCredentials(file, { ...silentLogger, warn });
    expect(warn).not.toHaveBeenCalled();
    chmodSync(file, 0o644);
    expect(readCredentials(file, { ...silentLogger, warn }).user).toBe('isobar');
    expect(warn).toHaveBeenCalledExactlyOnceWith('coordinator.credentials-open', { file });
  });
});
