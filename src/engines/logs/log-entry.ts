/** One record of a log as it is read again: what a line says, and which of them somebody wants to see. Pure. */

export type EntryLevel = (typeof ENTRY_LEVELS)[number];

export const ENTRY_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export interface LogEntry {
  /** `supervisor:port` of a worker, the name of a daemon. */
  readonly from: string;
  /** Milliseconds since the epoch. */
  readonly timeMs: number;
  readonly level: EntryLevel;
  readonly component: string | null;
  readonly task: number | null;
  /** `log`, `warn`, `stdout`, … for what user code printed, `raw` for what no record holds; null: an event. */
  readonly output: string | null;
  readonly message: string;
  /** What else the record says. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface LogFilter {
  readonly component?: string;
  readonly sinceMs?: number;
  /** The least level. */
  readonly level?: EntryLevel;
}

/** Said of every record alike: by a worker of itself, by a daemon of itself. Which topology or worker a daemon speaks of differs. */
const COMMON_FIELDS: ReadonlySet<string> = new Set(['topology', 'worker', 'daemon', 'pid']);
const COMMON_FIELDS_OF_DAEMON: ReadonlySet<string> = new Set(['daemon', 'pid']);

const RECORD_START = '{"level":';

/**
 * @param otherwiseMs time of a line that is no record
 */
export function parseEntry(from: string, line: string, otherwiseMs: number): LogEntry | undefined {
  if (line === '') return undefined;
  const record = line.startsWith('{') ? (parseRecord(line) ?? recordBehind(line)) : undefined;
  if (record === undefined) {
    const raw = { component: null, task: null, output: 'raw', message: line, fields: {} };
    return { from, timeMs: otherwiseMs, level: 'info', ...raw };
  }
  const { level, time, msg, component, task, output, ...rest } = record;
  const common = 'daemon' in record ? COMMON_FIELDS_OF_DAEMON : COMMON_FIELDS;
  const timeMs = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return {
    from,
    timeMs: Number.isNaN(timeMs) ? otherwiseMs : timeMs,
    level: levelOf(level),
    component: typeof component === 'string' ? component : null,
    task: typeof task === 'number' ? task : null,
    output: typeof output === 'string' ? output : null,
    message: typeof msg === 'string' ? msg : line,
    fields: Object.fromEntries(Object.entries(rest).filter(([name]) => !common.has(name))),
  };
}

export function isWanted(entry: LogEntry, { component, sinceMs, level }: LogFilter): boolean {
  if (component !== undefined && entry.component !== component) return false;
  if (sinceMs !== undefined && entry.timeMs < sinceMs) return false;
  return level === undefined || ENTRY_LEVELS.indexOf(entry.level) >= ENTRY_LEVELS.indexOf(level);
}

/** The record that a writer began behind the part of another one that a full disk had cut. */
function recordBehind(line: string): Readonly<Record<string, unknown>> | undefined {
  const start = line.lastIndexOf(RECORD_START);
  return start <= 0 ? undefined : parseRecord(line.slice(start));
}

function parseRecord(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    // Cut when a disk was full, or what a user's native code wrote.
    return undefined;
  }
}

function levelOf(level: unknown): EntryLevel {
  if (typeof level !== 'number') return 'info';
  if (level >= 50) return 'error';
  if (level >= 40) return 'warn';
  return level >= 30 ? 'info' : 'debug';
}
