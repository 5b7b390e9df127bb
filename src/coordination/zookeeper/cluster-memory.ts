/**
 * What a daemon remembers of the coordinator over its own restarts, in a file of its directory: the cluster that it
 * belongs to, and its last session, so that what the process before it still holds can be set free at once.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { toIsobarError } from '../../base/index.js';
import type { SessionTicket } from './server-connection.js';

export interface ClusterMemory {
  readonly cluster: string;
  readonly session: SessionTicket | null;
}

const hex = (bytes: number) => z.hex().length(bytes * 2);
const schema = z.object({
  format: z.literal(1),
  cluster: z.string().min(1),
  session: z.object({ id: hex(8), password: hex(16) }).nullable(),
});

/** Null when there is none. @throws STATE_DAMAGED, STATE_DIRECTORY_UNUSABLE */
export function readClusterMemory(file: string): ClusterMemory | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: file });
  }
  try {
    const { cluster, session } = schema.parse(JSON.parse(text));
    if (session === null) return { cluster, session };
    return {
      cluster,
      session: { id: Buffer.from(session.id, 'hex'), password: Buffer.from(session.password, 'hex') },
    };
  } catch (error) {
    throw toIsobarError(error, 'STATE_DAMAGED', { where: file, expected: 'the name of a cluster' });
  }
}

/** Replaces the file as a whole. @throws STATE_DIRECTORY_UNUSABLE */
export function writeClusterMemory(file: string, { cluster, session }: ClusterMemory): void {
  const ticket = session && { id: session.id.toString('hex'), password: session.password.toString('hex') };
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.new`, JSON.stringify({ format: 1, cluster, session: ticket }), {
      mode: 0o600,
      flush: true,
    });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: file });
  }
}
