/**
 * Looks regularly at the memory of the workers of a supervisor, and has those stopped that take too much of it (see
 * `judgeMemory`). Only under the strategy `resource-aware`: others promise nobody any memory.
 */
import type { Clock, Settings } from '../base/index.js';
import type { AssignedTopology } from './assignment-view.js';
import { judgeMemory, memoryRulesOf } from './memory-plan.js';
import { askedMemory, type AskedMemory } from '../scheduling/index.js';
import type { SlotWorker } from './slot-plan.js';

/** As often as Storm's supervisor looks. */
const PERIOD_MS = 3000;

export interface MemoryWatchOptions {
  readonly supervisorId: string;
  readonly settings: Settings;
  readonly clock: Clock;
  /** Slots with a worker that is not being stopped. */
  workers(): readonly { readonly port: number; readonly worker: SlotWorker }[];
  topology(topologyId: string): AssignedTopology | undefined;
  settingsOf(assigned: AssignedTopology): Settings;
  /** undefined: it cannot be read. */
  readUsedMb(pid: number): number | undefined;
  readFreeMb(): number;
  stop(port: number, worker: SlotWorker, why: string): void;
}

/** Begins to look. Returns how to end it. */
export function watchMemory(options: MemoryWatchOptions): () => void {
  const { settings, clock } = options;
  if (!isMemoryWatched(settings)) return () => undefined;
  const rules = memoryRulesOf(settings);
  /** By worker. */
  let overSince: ReadonlyMap<string, number> = new Map();
  return clock.every(PERIOD_MS, () => {
    const next = new Map<string, number>();
    for (const { port, worker } of options.workers()) {
      const usedMb = options.readUsedMb(worker.process.pid);
      const asked = askedIn(port, worker, options);
      if (usedMb === undefined || asked === undefined) continue;
      const reading = { usedMb, freeMb: options.readFreeMb() };
      const since = overSince.get(worker.workerId) ?? null;
      const { overSinceMs, stop } = judgeMemory(asked, reading, since, clock.nowMs(), rules);
      if (stop !== null) options.stop(port, worker, stop);
      else if (overSinceMs !== null) next.set(worker.workerId, overSinceMs);
    }
    overSince = next;
  });
}

function isMemoryWatched(settings: Settings): boolean {
  return settings['scheduling.strategy'] === 'resource-aware' && settings['supervisor.memory-check'];
}

/**
 * What the executors of a slot have asked for: those that are there, and those that are about to come, whichever is more in
 * either kind. undefined: none are, or nothing is known of them.
 */
function askedIn(port: number, worker: SlotWorker, options: MemoryWatchOptions): AskedMemory | undefined {
  const assigned = options.topology(worker.topologyId);
  if (assigned === undefined) return undefined;
  const { assignment, record } = assigned;
  const settings = options.settingsOf(assigned);
  const amounts = [assignment.slots, assignment.target?.slots ?? []].flatMap((slots) => {
    const slot = slots.find((one) => one.supervisor === options.supervisorId && one.port === port);
    if (slot === undefined || slot.executors.length === 0) return [];
    return [askedMemory(slot.executors, assignment.tasks, settings, record.desired?.resources)];
  });
  if (amounts.length === 0) return undefined;
  return {
    onHeapMb: Math.max(...amounts.map(({ onHeapMb }) => onHeapMb)),
    offHeapMb: Math.max(...amounts.map(({ offHeapMb }) => offHeapMb)),
  };
}
