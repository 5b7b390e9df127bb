/**
 * What happened to the workers of this machine, kept until Nimbus says that it keeps it.
 *
 * E1 An event is in the file before it is published: a supervisor that is killed forgets none.
 * E2 Numbers rise over restarts, also when the file was lost, unless the clock was set back meanwhile.
 * E3 At most `MAX_EVENTS` are kept, however long nobody acknowledges: of those that are the same the older ones are counted
 *    with the next one, and then the oldest go.
 */
import { readFileSync } from 'node:fs';
import { type Logger, writeDurableFile } from '../base/index.js';
import { areWorkerEvents, type WorkerEvent, workerEventId, workerEventSort } from '../coordination/index.js';

const MAX_EVENTS = 64;

export type WorkerNews = Pick<WorkerEvent, 'kind' | 'topologyId' | 'port' | 'code' | 'reason' | 'detail'>;

export class WorkerEvents {
  readonly #path: string;
  readonly #logger: Logger;
  #lastNumber = 0;
  #all: readonly WorkerEvent[] = [];

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
  }

  /** Reads what an earlier supervisor of this directory has kept. */
  open(): void {
    try {
      const stored: unknown = JSON.parse(readFileSync(this.#path, 'utf8'));
      if (areWorkerEvents(stored)) this.#all = stored;
    } catch {
      // None was kept, or nobody can read it any more.
    }
    this.#lastNumber = Math.max(0, ...this.#all.map(({ number }) => number));
  }

  /** Oldest first. The same list until something changes. */
  get all(): readonly WorkerEvent[] {
    return this.#all;
  }

  /** @param atMs since the epoch */
  note(news: WorkerNews, atMs: number): void {
    const lastMs = Math.floor(atMs);
    this.#lastNumber = Math.max(this.#lastNumber + 1, lastMs);
    const event = { ...news, number: this.#lastNumber, count: 1, firstMs: lastMs, lastMs };
    this.#replace(bounded([...this.#all, event]));
  }

  /** Returns whether there was any of them. */
  forget(ids: readonly string[]): boolean {
    const acknowledged = new Set(ids);
    const kept = this.#all.filter((event) => !acknowledged.has(workerEventId(event)));
    if (kept.length === this.#all.length) return false;
    this.#replace(kept);
    return true;
  }

  #replace(events: readonly WorkerEvent[]): void {
    this.#all = events;
    try {
      writeDurableFile(this.#path, JSON.stringify(events));
    } catch (error) {
      // It is published all the same, and lost only if this process ends before it has been read.
      this.#logger.warn('worker-events.not-written', { message: String(error) });
    }
  }
}

function bounded(events: readonly WorkerEvent[]): readonly WorkerEvent[] {
  if (events.length <= MAX_EVENTS) return events;
  const sortOf = (event: WorkerEvent): string =>
    [event.topologyId, event.port, workerEventSort(event)].join('\n');
  for (const [at, event] of events.entries()) {
    const next = events.findIndex((other, i) => i > at && sortOf(other) === sortOf(event));
    if (next < 0) continue;
    const merged = { ...events[next]!, count: events[next]!.count + event.count, firstMs: event.firstMs };
    return events.with(next, merged).toSpliced(at, 1);
  }
  return events.slice(-MAX_EVENTS);
}
