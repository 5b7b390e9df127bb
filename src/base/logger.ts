/**
 * Structured logging. The message is a fixed past-tense event (`worker.started`), values are fields, and child loggers
 * carry who speaks. The library underneath is pino; nothing outside this file knows that.
 */
import { type Logger as Pino, pino } from 'pino';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** A logger that writes JSON lines to a file descriptor, at once and in order (default: standard output). */
export function createLogger(
  options: { level?: LogLevel; fields?: LogFields; fileDescriptor?: number } = {},
): Logger {
  const destination = pino.destination({ fd: options.fileDescriptor ?? 1, sync: true });
  // A log on a full disk must not end the process that writes it.
  destination.on('error', () => {});
  return wrap(
    pino(
      {
        level: options.level ?? 'info',
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        serializers: {},
      },
      destination,
    ).child({ ...(options.fields ?? {}) }),
  );
}

/** A logger that says nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

function wrap(log: Pino): Logger {
  return {
    debug: (event, fields = {}) => log.debug(fields, event),
    info: (event, fields = {}) => log.info(fields, event),
    warn: (event, fields = {}) => log.warn(fields, event),
    error: (event, fields = {}) => log.error(fields, event),
    child: (fields) => wrap(log.child({ ...fields })),
  };
}
