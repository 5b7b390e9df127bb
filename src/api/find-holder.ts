/** Asks all workers of a topology which of them holds the oldest pending row: the thread of its spout sees only its own queues. */
import { type Channel, connectChannel } from '../base/index.js';
import type { SlotSearch } from '../coordination/index.js';
import type { TopologyDetail } from '../nimbus/index.js';

const TIMEOUT_MS = 3000;

/** Words for people; null: nobody has it, or nobody who could be heard. */
export async function findHolder(
  { summary, status }: TopologyDetail,
  supervisorSocket: (supervisorId: string) => string,
): Promise<string | null> {
  const { oldestPending } = status;
  if (oldestPending?.sequence === undefined) return oldestPending?.heldBy ?? null;
  const { task: rootTask, sequence } = oldestPending;
  const answers = await Promise.all(
    status.workers
      .filter(({ workerId }) => workerId !== null)
      .map(async ({ supervisorId, port }): Promise<string | null> => {
        let channel: Channel | undefined;
        try {
          channel = await connectChannel(supervisorSocket(supervisorId));
          const search: SlotSearch = { topologyId: summary.id, port, rootTask, sequence };
          const holder = await channel.request('find-row', search, { timeoutMs: TIMEOUT_MS });
          return typeof holder === 'string' ? `${holder} on ${supervisorId}:${port}` : null;
        } catch {
          // The others may have it; that this worker is away is said elsewhere.
          return null;
        } finally {
          channel?.end();
        }
      }),
  );
  return answers.find((holder) => holder !== null) ?? null;
}
