/**
 * The history of a cluster: events in memory, bounded, and in a file of Nimbus's directory that a killed process leaves usable.
 *
 * J1  Nothing of it goes to the coordinator: the history decides nothing, and its size and its rate are nobody else's matter.
 * J2  A thing that happens again within `AGAIN_MS` is counted, not added; a topology has at most `MAX_OF_SCOPE` events, a
 *     machine as many of its own, and the cluster `MAX_EVENTS`. The oldest go first; that a topology was submitted goes last
 *     of its own.
 * J3  The file is a line for each change. The newest line of an event counts, a line that cannot be read counts for nothing,
 *     and the file is written anew when most of its lines are of no use any more.
 * J4  What a supervisor tells has a number that rises: what is told twice is noted once, over restarts of both.
 */
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Logger, writeDurableFile } from '../../base/index.js';
import { type WorkerEvent, workerEventSort } from '../../coordination/index.js';
import type { ClusterEvent } from './cluster-event.js';

const MAX_EVENTS = 10_000;
const MAX_OF_SCOPE = 200;
const AGAIN_MS = 600_000;
/** Lines of no use that are put up with. */
const SPARE_LINES = 2000;

/** An event that is about to be noted. */
export interface EventDraft
  extends Pick<ClusterEvent, 'kind' | 'topologyId' | 'topology' | 'place' | 'code' | 'message'> {
  readonly atMs: number;
  readonly revision?: number;
}

/** As a line of the file. */
interface StoredEvent extends ClusterEvent {
  /** The same in all lines of one event. */
  readonly id: number;
  /** What it has in common with later ones that are the same; absent: with none. */
  readonly sort?: string;
  /** Supervisor that told it, and the number of the last one that is counted here. */
  readonly told?: readonly [supervisorId: string, number: number];
}

export class EventJournal {
  readonly #path: string;
  readonly #logger: Logger;
  /** By id, in order of their last change. */
  readonly #events = new Map<number, StoredEvent>();
  /** By topology, or by place where they are of none. */
  readonly #byScope = new Map<string, Set<number>>();
  readonly #bySort = new Map<string, number>();
  /** Highest number that was noted of each supervisor, and that is in the file. */
  readonly #noted = new Map<string, number>();
  readonly #stored = new Map<string, number>();
  #sequence = 0;
  #lastId = 0;
  #lines = 0;
  #unwritten: StoredEvent[] = [];
  #mustRewrite = false;
  #writing: Promise<void> | undefined;

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
    this.reload();
  }

  /** Reads the file: another process may have written it. */
  reload(): void {
    for (const map of [this.#events, this.#byScope, this.#bySort, this.#noted, this.#stored]) map.clear();
    this.#unwritten = [];
    this.#lines = 0;
    let text = '';
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch {
      return;
    }
    for (const line of text.split('\n')) {
      if (line === '') continue;
      this.#lines++;
      const event = parseEvent(line);
      if (event !== undefined) this.#set(event);
    }
    for (const [supervisorId, number] of this.#noted) this.#stored.set(supervisorId, number);
    // A line that was cut short must not swallow the next one.
    this.#mustRewrite = text !== '' && !text.endsWith('\n');
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** Everything that is wanted, oldest first. */
  list(isWanted: (event: ClusterEvent) => boolean): readonly ClusterEvent[] {
    return [...this.#events.values()].filter(isWanted).sort(byTime).map(shown);
  }

  /** The last ones of a topology, oldest first. */
  lastOf(topologyId: string, count: number): readonly ClusterEvent[] {
    return this.#of(topologyId).sort(byTime).slice(-count).map(shown);
  }

  /** Is there an event of the topology that has been kept? */
  has(topologyId: string, kind: ClusterEvent['kind']): boolean {
    return this.#of(topologyId).some((event) => event.kind === kind);
  }

  /** The newest event of these kinds at a place. */
  newestAt(place: string, kinds: readonly ClusterEvent['kind'][]): ClusterEvent | undefined {
    return this.#of(scopeOf({ topologyId: null, place }))
      .filter((event) => kinds.includes(event.kind))
      .at(-1);
  }

  /** Something happened, which is counted if it has just happened before. */
  note(draft: EventDraft): void {
    const { kind, topologyId, place, code, message } = draft;
    this.#add(draft, 1, draft.atMs, [topologyId, kind, place, code, message].join('\n'));
  }

  /** A fact that can be seen again and again: noted once, told by its topology or place, its kind and its time. */
  noteOnce(draft: EventDraft): void {
    const { kind, atMs } = draft;
    if (this.#of(scopeOf(draft)).some((event) => event.kind === kind && event.firstMs === atMs)) return;
    // It was there, and has gone with others of its age.
    const oldest = this.#events.values().next().value;
    if (this.#events.size >= MAX_EVENTS && oldest !== undefined && atMs < oldest.lastMs) return;
    this.#add(draft, 1, atMs);
  }

  /** What a supervisor tells of its workers. */
  noteTold(
    supervisorId: string,
    events: readonly WorkerEvent[],
    nameOf: (topologyId: string) => string | null,
  ): void {
    const before = this.#noted.get(supervisorId) ?? 0;
    const news = events.filter(({ number }) => number > before).sort((a, b) => a.number - b.number);
    for (const event of news) {
      const { topologyId, port, kind, code, reason, detail, count, firstMs, lastMs, number } = event;
      const place = `${supervisorId}:${port}`;
      const message = detail === '' ? reason : `${reason}: ${detail}`;
      // A topology that has been removed has left its name here.
      const topology = nameOf(topologyId) ?? this.#of(topologyId)[0]?.topology ?? null;
      const draft = { kind, topologyId, topology, place, code, message, atMs: lastMs };
      this.#add(draft, count, firstMs, `${topologyId}\n${place}\n${workerEventSort(event)}`, [
        supervisorId,
        number,
      ]);
    }
  }

  /** Is what a supervisor told under this number on disk? */
  keeps(supervisorId: string, number: number): boolean {
    return number <= (this.#stored.get(supervisorId) ?? 0);
  }

  /** Something is noted that is not on disk. */
  get isUnsaved(): boolean {
    return this.#unwritten.length > 0 || this.#mustRewrite;
  }

  /** Resolves when everything that was noted until now is on disk, or could not be written: then it stays to be written. */
  async save(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (!this.isUnsaved) return;
    this.#writing = this.#write().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  async #write(): Promise<void> {
    const events = this.#unwritten;
    this.#unwritten = [];
    const told = events.flatMap((event) => (event.told === undefined ? [] : [event.told]));
    try {
      if (this.#mustRewrite || this.#lines + events.length > 2 * this.#events.size + SPARE_LINES) {
        const all = [...this.#events.values()];
        this.#lines = all.length;
        this.#mustRewrite = false;
        writeDurableFile(this.#path, all.map(lineOf).join(''));
      } else {
        await append(this.#path, events.map(lineOf).join(''));
        this.#lines += events.length;
      }
      for (const [supervisorId, number] of told) raise(this.#stored, supervisorId, number);
    } catch (error) {
      this.#unwritten = [...events, ...this.#unwritten];
      // It may be there in part.
      this.#mustRewrite = true;
      this.#logger.warn('events.not-written', { path: this.#path, message: String(error) });
    }
  }

  #of(scope: string): StoredEvent[] {
    return [...(this.#byScope.get(scope) ?? [])].map((id) => this.#events.get(id)!);
  }

  #add(draft: EventDraft, count: number, firstMs: number, sort?: string, told?: StoredEvent['told']): void {
    const { atMs, revision, ...parts } = draft;
    const again = sort === undefined ? undefined : this.#events.get(this.#bySort.get(sort) ?? 0);
    const before = again !== undefined && firstMs - again.lastMs <= AGAIN_MS ? again : undefined;
    const event: StoredEvent = {
      ...parts,
      id: before?.id ?? this.#lastId + 1,
      sequence: this.#sequence + 1,
      revision: revision ?? null,
      count: count + (before?.count ?? 0),
      firstMs: before?.firstMs ?? firstMs,
      lastMs: Math.max(atMs, before?.lastMs ?? atMs),
      ...(sort === undefined ? {} : { sort }),
      ...(told === undefined ? {} : { told }),
    };
    this.#set(event);
    this.#unwritten.push(event);
  }

  /** The newest of an event; it is the one that changed last. */
  #set(event: StoredEvent): void {
    const { id, sequence, sort, told } = event;
    this.#remove(id);
    this.#events.set(id, event);
    const scope = scopeOf(event);
    const own = this.#byScope.get(scope) ?? new Set<number>();
    this.#byScope.set(scope, own.add(id));
    if (sort !== undefined) this.#bySort.set(sort, id);
    if (told !== undefined) raise(this.#noted, ...told);
    this.#sequence = Math.max(this.#sequence, sequence);
    this.#lastId = Math.max(this.#lastId, id);
    if (own.size > MAX_OF_SCOPE) this.#remove(this.#dispensable(own));
    const [oldest] = this.#events.keys();
    if (this.#events.size > MAX_EVENTS) this.#remove(oldest!);
  }

  /** The oldest, or the next one where that says when the topology came. */
  #dispensable(own: ReadonlySet<number>): number {
    const [oldest, next] = own;
    return this.#events.get(oldest!)?.kind === 'submitted' ? next! : oldest!;
  }

  #remove(id: number): void {
    const event = this.#events.get(id);
    if (event === undefined) return;
    this.#events.delete(id);
    const scope = scopeOf(event);
    const own = this.#byScope.get(scope);
    own?.delete(id);
    if (own?.size === 0) this.#byScope.delete(scope);
    if (event.sort !== undefined && this.#bySort.get(event.sort) === id) this.#bySort.delete(event.sort);
  }
}

function scopeOf({ topologyId, place }: Pick<ClusterEvent, 'topologyId' | 'place'>): string {
  return topologyId ?? `\n${place ?? ''}`;
}

function raise(marks: Map<string, number>, supervisorId: string, number: number): void {
  marks.set(supervisorId, Math.max(number, marks.get(supervisorId) ?? 0));
}

function byTime(a: StoredEvent, b: StoredEvent): number {
  return a.lastMs - b.lastMs || a.sequence - b.sequence;
}

function shown({ id: _id, sort: _sort, told: _told, ...event }: StoredEvent): ClusterEvent {
  return event;
}

function lineOf(event: StoredEvent): string {
  return `${JSON.stringify(event)}\n`;
}

/** Written by this class; a line that was cut short, or that another hand has written, is none. */
function parseEvent(line: string): StoredEvent | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null) return undefined;
    const { id, sequence, kind, message, count, firstMs, lastMs } = value as Partial<StoredEvent>;
    const numbers = [id, sequence, count, firstMs, lastMs].every((one) => Number.isFinite(one));
    return numbers && typeof kind === 'string' && typeof message === 'string'
      ? (value as StoredEvent)
      : undefined;
  } catch {
    return undefined;
  }
}

async function append(path: string, text: string): Promise<void> {
  const file = await open(path, 'a', 0o600);
  try {
    await file.writeFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
}
