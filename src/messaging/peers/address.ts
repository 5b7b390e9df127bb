/** Names and addresses of the workers of one topology. */
import { createHash } from 'node:crypto';
import type net from 'node:net';
import { join } from 'node:path';
import { checkSocketPath } from '../../base/index.js';

/** A worker's slot; its string form ({@link peerKey}) identifies a peer. */
export interface PeerKey {
  readonly supervisor: string;
  readonly port: number;
}

export function peerKey(slot: PeerKey): string {
  return `${slot.supervisor}:${slot.port}`;
}

export type PeerAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

export function connectOptions(address: PeerAddress): net.NetConnectOpts {
  return address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port };
}

/**
 * Where the worker of a slot listens. All supervisors of a machine share the directory, and may use the same port
 * numbers: topology and supervisor enter as a hash, so the path stays short. Throws SOCKET_PATH_TOO_LONG if the directory
 * is too long even so.
 */
export function peerSocketPath(directory: string, topologyId: string, { supervisor, port }: PeerKey): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([topologyId, supervisor]))
    .digest('hex')
    .slice(0, 12);
  const path = join(directory, `${hash}-${port}.sock`);
  checkSocketPath(path);
  return path;
}
