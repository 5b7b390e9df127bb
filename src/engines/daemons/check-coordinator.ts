/** Looks at a coordinator before daemons are started over it, which would wait for one that is not there. */
import { hasCode, processIdentity, type Settings, silentLogger, systemClock } from '../../base/index.js';
import { connectCoordination } from '../../coordination/index.js';

/**
 * An empty place is right: daemons make a cluster of it, or know that they had one.
 * @throws COORDINATOR_UNAVAILABLE, and what else `connectCoordination` throws
 */
export async function checkCoordinator(address: string, settings: Settings): Promise<void> {
  try {
    const coordination = await connectCoordination({
      address,
      process: processIdentity(process.pid) ?? { pid: process.pid, startTime: '' },
      settings,
      clock: systemClock,
      logger: silentLogger,
    });
    await coordination.close();
  } catch (error) {
    if (!hasCode(error, 'COORDINATOR_DATA_LOST')) throw error;
  }
}
