/** Which executor threads of a worker have ended between two of its heartbeats, and why as far as it says. Pure. */
import type { WorkerHeartbeat } from '../coordination/index.js';

export interface ThreadDeath {
  readonly code: string | null;
  /** The same for all that happen for one reason. */
  readonly reason: string;
}

type Said = Pick<WorkerHeartbeat, 'workerId' | 'threads' | 'errors'>;

/** @param before null: this is the first heartbeat heard; what was before it is not known to be new */
export function threadDeaths(before: Said | null, now: Said): readonly ThreadDeath[] {
  if (before === null || before.workerId !== now.workerId) return [];
  const restartsBefore = new Map(before.threads.map(({ index, restarts }) => [index, restarts]));
  return now.threads
    .filter(({ index, restarts }) => restarts > (restartsBefore.get(index) ?? 0))
    .map(({ index }) => {
      const ended = `executor thread ${index} ended`;
      const [newest] = now.errors
        .filter(({ error }) => error.message.startsWith(ended))
        .sort((a, b) => b.lastMs - a.lastMs);
      return { code: newest?.error.code ?? null, reason: newest?.error.message ?? ended };
    });
}
