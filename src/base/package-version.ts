/** The version of this package, as its manifest has it. */
import { readFileSync } from 'node:fs';
import { packageRoot } from './package-root.js';

let version: string | undefined;

export function packageVersion(): string {
  version ??= readVersion();
  return version;
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('package.json', packageRoot()), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : '';
}
