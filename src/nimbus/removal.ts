/** Removing what is left of topologies that are over for good, once their workers are verified gone. */
import type { Logger } from '../base/index.js';
import type { Coordination } from '../coordination/index.js';
import type { BlobStore } from './blob-store.js';
import type { ClusterView } from './cluster-view.js';
import { type KnownTopology, totalsName } from './known-topology.js';
import type { Serial } from './serial.js';

export interface RemovalOptions {
  readonly coordination: Coordination;
  readonly blobStore: BlobStore;
  readonly view: ClusterView;
  readonly logger: Logger;
  readonly serial: Serial;
}

/** Does no worker of the topology run any more, as its supervisors say, or their machines being gone? */
export function areWorkersGone(
  known: KnownTopology,
  view: Pick<ClusterView, 'reportsOf'>,
  isMachineGone: (supervisorId: string) => boolean,
): boolean {
  if ((known.assignment?.slots.length ?? 0) > 0) return false;
  return view
    .reportsOf(known.id)
    .every(({ supervisorId, slot }) => slot.topologyId !== known.id || isMachineGone(supervisorId));
}

/**
 * Removes documents, blobs that no other record names, and the record with whatever belongs to it; the record last, so that
 * a removal that was cut short is seen and repeated. What is not known here is never touched.
 */
export function removeTopology(known: KnownTopology, options: RemovalOptions): Promise<void> {
  const { coordination, blobStore, view, logger, serial } = options;
  return serial.run(async () => {
    const { codeHash, descriptionHash } = known.record;
    view.forget(known);
    try {
      await blobStore.removeDocument(totalsName(known.id));
      await blobStore.removeStates(known.id);
      for (const hash of [codeHash, descriptionHash]) {
        if (!view.isBlobUsed(hash)) await blobStore.remove(hash);
      }
      await coordination.removeTopology(known.id);
      logger.info('topology.removed', { topology: known.id });
    } catch (error) {
      view.markTopologies([known.id]);
      throw error;
    }
  });
}
