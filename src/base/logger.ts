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

/**
 * A logger that writes JSON lines to a file (default: standard output), at once and in order.
 *
 * @param options.level `debug`, `info`, `warn` or `error`
 */
export function createLogger(
  options: { level?: string; fields?: LogFields; file?: { write(line: string): void } } = {},
): Logger {
  return wrap(
    pino(
      {
        level: options.level ?? 'info',
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        serializers: {},
      },
      options.file ?? standardOutput(),
    ).child({ ...(options.fields ?? {}) }),
  );
}

function standardOutput(): { write(line: string): void } {
  const destination = pino.destination({ fd: 1, sync: true });
  // A log on a full disk must not end the process that writes it.
  destination.on('error', () => {});
  return destination;
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
