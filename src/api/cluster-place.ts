/**
 * Where the cluster is that a command means: its directory, and in it the sockets of its daemons. Whoever starts daemons and
 * whoever talks to them ask here, so neither has to tell the other.
 *
 * A directory whose name is too long for a socket has its sockets in a place below /tmp that follows from the name.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { MAX_SOCKET_PATH_BYTES } from '../base/index.js';

/** The longest name of a socket in the directory of sockets, with its separator. */
const SOCKET_NAME_BYTES = 40;
const FALLBACK_BASE = '/tmp';
const HASH_DIGITS = 20;

/**
 * The directory of the cluster: the one given, or `dev` in $ISOBAR_HOME, or `~/.isobar/dev`. An absolute path without symbolic
 * links: daemons and workers are told by it, and must not be missed where two commands name it in different ways.
 *
 * @param given by `--directory`
 * @param home the user's home directory
 */
export function clusterDirectory(
  given: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): string {
  if (given !== undefined && given !== '') return withoutLinks(resolve(given));
  const isobarHome = environment['ISOBAR_HOME'];
  const base = isobarHome === undefined || isobarHome === '' ? join(home, '.isobar') : isobarHome;
  return withoutLinks(resolve(base, 'dev'));
}

/** Of what does not exist yet the part that does; where even that cannot be read, the path as it is. */
function withoutLinks(path: string): string {
  const parent = dirname(path);
  try {
    return realpathSync(path);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return isMissing && parent !== path ? join(withoutLinks(parent), basename(path)) : path;
  }
}

/** The private directory (mode 0700, made by whoever serves in it) of all sockets of the cluster in `directory`. */
export function clusterSocketDirectory(directory: string): string {
  const own = join(resolve(directory), 's');
  if (Buffer.byteLength(own) + SOCKET_NAME_BYTES <= MAX_SOCKET_PATH_BYTES) return own;
  const hash = createHash('sha256').update(resolve(directory)).digest('hex').slice(0, HASH_DIGITS);
  return join(FALLBACK_BASE, `isobar-${process.getuid?.() ?? 0}-${hash}`);
}

/** Where Nimbus of the cluster in `directory` answers commands. */
export function controlSocketPath(directory: string): string {
  return join(clusterSocketDirectory(directory), 'control.sock');
}
