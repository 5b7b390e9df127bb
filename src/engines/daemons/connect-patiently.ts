/** How a daemon gets its coordination: it waits for a coordinator that is not there yet, and for nothing else. */
import { setTimeout as pause } from 'node:timers/promises';
import { hasCode, type Logger, processIdentity, type Settings, systemClock } from '../../base/index.js';
import { connectCoordination, type Coordination } from '../../coordination/index.js';

const RETRY_MS = 50;

export interface PatientOptions {
  readonly coordinatorAddress: string;
  /** The daemon's own, in which it remembers its cluster; it has one session at a time. */
  readonly directory: string;
  readonly settings: Settings;
  readonly logger: Logger;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/**
 * Connects as soon as the coordinator answers.
 * @throws what no waiting helps against, and the signal's reason
 */
export async function connectPatiently(options: PatientOptions): Promise<Coordination> {
  const { coordinatorAddress: address, directory, settings, logger, signal } = options;
  const process_ = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await connectCoordination({
        address,
        process: process_,
        directory,
        settings,
        clock: systemClock,
        logger,
      });
    } catch (error) {
      if (!hasCode(error, 'COORDINATOR_UNAVAILABLE')) throw error;
      if (attempt === 0) logger.info('coordinator.awaited', { address, message: error.message });
      await pause(RETRY_MS, undefined, { signal });
    }
  }
}
