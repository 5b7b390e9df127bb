/**
 * Who this process is to ZooKeeper: a user and a password for its `digest` scheme, from a file of one line,
 * `user:password`. Neither is ever logged.
 */
import { readFileSync, statSync } from 'node:fs';
import { IsobarError, type Logger } from '../../base/index.js';

export interface DigestCredentials {
  /** Not empty, without a colon. */
  readonly user: string;
  readonly password: string;
}

const EXPECTED = 'a file of one line, user:password';

/** @throws COORDINATOR_CREDENTIALS_INVALID */
export function readCredentials(file: string, logger: Logger): DigestCredentials {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
    if ((statSync(file).mode & 0o077) !== 0) logger.warn('coordinator.credentials-open', { file });
  } catch (error) {
    throw invalid(file, error instanceof Error ? error.message : String(error), error);
  }
  return parseCredentials(text, file);
}

/** @throws COORDINATOR_CREDENTIALS_INVALID */
export function parseCredentials(text: string, where: string): DigestCredentials {
  const line = text.replace(/\r?\n$/, '');
  if (/[\r\n\0]/.test(line)) throw invalid(where, 'more than one line');
  const colon = line.indexOf(':');
  if (colon < 1) throw invalid(where, colon === 0 ? 'no user before the colon' : 'no colon');
  if (colon === line.length - 1) throw invalid(where, 'no password behind the colon');
  return { user: line.slice(0, colon), password: line.slice(colon + 1) };
}

function invalid(where: string, found: string, cause?: unknown): IsobarError {
  return new IsobarError(
    'COORDINATOR_CREDENTIALS_INVALID',
    `the credentials for the coordinator cannot be read from ${where}: ${found}`,
    { expected: EXPECTED, found, where },
    cause,
  );
}
