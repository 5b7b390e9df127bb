/** Entry of the keeper of `isobar dev`; its argument is the cluster's directory. A second keeper ends at once, well. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  createLogger,
  DEFAULT_SETTINGS,
  hasCode,
  LogFile,
  systemClock,
  toErrorRecord,
} from '../../base/index.js';
import { devDirectory } from './dev-directory.js';
import { type Keeper, startKeeper } from './keeper.js';

async function main(): Promise<void> {
  const path = process.argv[2];
  if (path === undefined) {
    process.stderr.write('usage: started by isobar dev\n');
    process.exit(2);
  }
  const directory = devDirectory(path);
  mkdirSync(directory.logs, { recursive: true, mode: 0o700 });
  const logger = createLogger({
    file: LogFile.of(join(directory.logs, 'keeper.log'), DEFAULT_SETTINGS),
    fields: { daemon: 'keeper', pid: process.pid },
  });
  process.on('uncaughtException', (error) => {
    const { code, message, stack } = toErrorRecord(error);
    logger.error('keeper.crashed', { code, message, stack });
    process.exit(1);
  });
  let keeper: Keeper | undefined;
  // The daemons go on, and the next keeper finds them.
  const end = (): void => void (keeper?.close() ?? Promise.resolve()).finally(() => process.exit());
  process.on('SIGTERM', end);
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  try {
    keeper = await startKeeper({ directory, clock: systemClock, logger, onEnd: end });
  } catch (error) {
    if (hasCode(error, 'STATE_DIRECTORY_OWNED')) process.exit();
    const { code, message } = toErrorRecord(error);
    logger.error('keeper.not-started', { code, message });
    process.stderr.write(`${code}: ${message}\n`);
    process.exit(1);
  }
}

await main();
