/**
 * Whose data are at the chroot. A marker node, made before anything else, names the cluster and the version of the
 * format; without it the data are somebody else's, or gone.
 *
 * C1 Only an empty place becomes a cluster, and only for a process that belongs to none.
 * C2 A process that belongs to a cluster never takes another one, nor an empty place, for it.
 */
import { IsobarError } from '../../base/index.js';
import type { Acl } from './library-values.js';
import type { Refusal, ServerConnection } from './server-connection.js';
import type { CheckResult } from './session.js';

export interface ClusterPlace {
  readonly chroot: string;
  readonly acl: Acl;
  /** The address, for messages. */
  readonly where: string;
  /** The cluster that this process belongs to; null: none yet. */
  readonly cluster: string | null;
  /** The id that a new cluster gets; null: this process may not make one. */
  readonly newCluster: string | null;
  /** Paths below the chroot that are made with the marker. */
  readonly parents: readonly string[];
}

export type ClusterLook = { readonly cluster: string } | Exclude<CheckResult, 'right'>;

const KIND = 'isobar';
const FORMAT = 1;

export function markerPath(chroot: string): string {
  return `${chroot}/cluster`;
}

/** Reads the marker and watches it; makes a cluster where C1 allows it. */
export async function lookAtCluster(connection: ServerConnection, place: ClusterPlace): Promise<ClusterLook> {
  const { chroot, cluster, newCluster } = place;
  const marker = markerPath(chroot);
  for (;;) {
    const watched = await connection.watchNode(marker);
    if (!watched.isDone && watched.refusal !== 'no-node') return failure(place, watched.refusal, marker);
    if (watched.isDone && watched.value) {
      const read = await connection.getData(marker);
      if (read.isDone) return checkMarker(place, read.value.data);
      if (read.refusal !== 'no-node') return failure(place, read.refusal, marker);
      continue;
    }
    if (cluster !== null || newCluster === null) return lost(place);
    const found = await findOthers(connection, place);
    if (found === 'marker') continue;
    if (found !== 'nothing') return found;
    const made = await makeCluster(connection, place, newCluster);
    if (made !== 'made') return made;
  }
}

/** What is at a place without a marker. */
async function findOthers(
  connection: ServerConnection,
  place: ClusterPlace,
): Promise<'nothing' | 'marker' | Exclude<CheckResult, 'right'>> {
  const { chroot } = place;
  const node = await connection.getData(chroot);
  if (!node.isDone) return node.refusal === 'no-node' ? 'nothing' : failure(place, node.refusal, chroot);
  const children = await connection.getChildren(chroot);
  if (!children.isDone) {
    return children.refusal === 'no-node' ? 'nothing' : failure(place, children.refusal, chroot);
  }
  // Another process of ours has made it in between.
  if (children.value.includes('cluster')) return 'marker';
  if (children.value.length === 0 && node.value.data.length === 0) return 'nothing';
  const found =
    children.value.length === 0 ? 'data of a node' : `nodes ${children.value.slice(0, 5).join(', ')}`;
  return foreign(place, `${found}, and no marker of Isobar's`);
}

async function makeCluster(
  connection: ServerConnection,
  place: ClusterPlace,
  cluster: string,
): Promise<'made' | Exclude<CheckResult, 'right'>> {
  const { chroot, acl } = place;
  const names = chroot.slice(1).split('/');
  const ancestors = names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`);
  const nothing = Buffer.alloc(0);
  const marker = Buffer.from(JSON.stringify({ kind: KIND, format: FORMAT, cluster }));
  const nodes: readonly (readonly [string, Buffer])[] = [
    ...ancestors.map((path) => [path, nothing] as const),
    [markerPath(chroot), marker],
    ...place.parents.map((path) => [chroot + path, nothing] as const),
  ];
  for (const [path, data] of nodes) {
    // What is above the chroot is not ours, though it was missing: others may want a place there too.
    const isShared = path.length < chroot.length;
    const answer = await connection.create(path, data, false, isShared ? 'everybody' : acl);
    if (answer.isDone || answer.refusal === 'node-exists') continue;
    // An existing ancestor may refuse its creation with `no-auth` before it says that it exists.
    if (answer.refusal === 'no-auth' && path !== markerPath(chroot)) {
      const there = await connection.watchNode(path);
      if (there.isDone && there.value) continue;
    }
    return failure(place, answer.refusal, path);
  }
  return 'made';
}

function checkMarker(place: ClusterPlace, data: Buffer): ClusterLook {
  let marker: unknown;
  try {
    marker = JSON.parse(data.toString('utf8'));
  } catch {
    return foreign(place, 'a node "cluster" that is not of Isobar');
  }
  if (typeof marker !== 'object' || marker === null || !('kind' in marker) || marker.kind !== KIND) {
    return foreign(place, 'a node "cluster" that is not of Isobar');
  }
  if (!('format' in marker) || marker.format !== FORMAT) {
    const found = 'format' in marker ? JSON.stringify(marker.format) : 'none';
    return new IsobarError(
      'STATE_VERSION_UNKNOWN',
      `the data at ${place.where} were written by another version of Isobar`,
      { expected: `format ${FORMAT}`, found: `format ${found}`, where: place.where },
    );
  }
  if (!('cluster' in marker) || typeof marker.cluster !== 'string') {
    return foreign(place, 'a marker without a cluster');
  }
  if (place.cluster !== null && marker.cluster !== place.cluster) {
    return foreign(place, `the data of cluster ${marker.cluster}`, `the data of cluster ${place.cluster}`);
  }
  return { cluster: marker.cluster };
}

function failure({ where }: ClusterPlace, refusal: Refusal, path: string): Exclude<CheckResult, 'right'> {
  if (refusal === 'lost') return 'lost';
  if (refusal === 'no-auth') {
    return new IsobarError(
      'COORDINATOR_ACCESS_DENIED',
      `the coordinator at ${where} refuses access to ${path}`,
      {
        expected: 'credentials that may read and write there',
        found: 'a refusal',
        where: path,
      },
    );
  }
  const found = typeof refusal === 'object' ? `error ${refusal.code}` : refusal;
  return new IsobarError(
    'COORDINATOR_UNAVAILABLE',
    `the coordinator at ${where} fails on ${path}: ${found}`,
    {
      expected: 'an answer',
      found,
      where: path,
    },
  );
}

function foreign({ where }: ClusterPlace, found: string, expected?: string): IsobarError {
  return new IsobarError('COORDINATOR_DATA_FOREIGN', `the coordinator at ${where} holds ${found}`, {
    expected: expected ?? "nothing, or an Isobar cluster's data",
    found,
    where,
  });
}

function lost({ where, cluster }: ClusterPlace): IsobarError {
  const whose = cluster === null ? 'any cluster' : `cluster ${cluster}`;
  return new IsobarError('COORDINATOR_DATA_LOST', `the coordinator at ${where} holds no data of ${whose}`, {
    expected: `the data of ${whose}`,
    found: 'none',
    where,
  });
}
