/**
 * What a worker's main thread knows of who is where: it tells its executor threads (routes) and its peers (announcements),
 * sees losses through, and finds out when nobody sends to a task any more that is about to move.
 *
 * Invariants
 * W1  When a thread or a peer is lost, every thread gets routes without it and marks its trees; once all threads have applied
 *     them, nobody sends to the lost one any more, and a second mark goes to all threads and peers, so that a row sent in
 *     between belongs to a marked tree too.
 * W2  A task is cut off from new rows when every peer has told its threads of the cut, and every thread that is known by then
 *     has said so in order behind its last row. A peer announces a thread before the thread can send, so none is missed.
 * W3  A task that has left stays announced as such until another worker announces that it has it.
 */
import type { ComponentTasks } from '../scheduling/index.js';
import { EndpointTable, type AnnouncedThread, type PeerMessage } from './endpoints.js';
import { rangesOf } from './task-book.js';
import type { ThreadHost } from './thread-host.js';
import type { ToThread } from './thread-messages.js';

export interface RouteKeeperOptions {
  readonly ringBytes: number;
  /** Threads that have loaded the code and have not left. */
  hosts(): readonly ThreadHost[];
  /** Numbering of all tasks; undefined: not known yet. */
  tasks(): readonly ComponentTasks[] | undefined;
  tell(peer: string, message: PeerMessage): void;
  /** Routes have been sent: what others wait for may have come true. */
  onRoutes(): void;
}

interface Cut {
  readonly id: number;
  /** Number of the first announcement that has it; undefined: not announced yet. */
  announced: number | undefined;
  /** Endpoints that send nothing more. */
  readonly done: Set<number>;
}

export class RouteKeeper {
  readonly #options: RouteKeeperOptions;
  readonly #table = new EndpointTable();
  readonly #peerKeys: string[] = [];
  /** Peers with a session, by index, and the last of our announcements that each has seen through. */
  readonly #seen = new Map<number, number>();
  /** Announcements of peers that are to be confirmed once our threads know. */
  readonly #toConfirm = new Map<string, number>();
  readonly #cuts = new Map<number, Cut>();
  #nextCut = 1;
  #announcement: Extract<PeerMessage, { kind: 'threads' }> = {
    kind: 'threads',
    number: 0,
    threads: [],
    cuts: [],
  };
  #version = 0;
  #isScheduled = false;
  #isLossPending = false;
  /** Among what has been lost since the last routes is a thread, or a peer that may have ended. */
  #hasEnded = false;
  /** Version of routes with a loss that threads have yet to apply, by thread key. */
  readonly #applying = new Map<string, number>();
  #needsSecondMark = false;
  /** What the second mark is about is only sessions that were lost. */
  #isSecondCut = true;
  #endpointOfTask: Int32Array = new Int32Array(0);

  constructor(options: RouteKeeperOptions) {
    this.#options = options;
  }

  /** Endpoint id by task; -1: nowhere. As of the last routes. */
  get endpointOfTask(): Int32Array {
    return this.#endpointOfTask;
  }

  /** Sends routes soon; `isLoss`: something has been lost; `hasEnded`: and it is more than a session. */
  schedule(isLoss = false, hasEnded = isLoss): void {
    this.#isLossPending ||= isLoss;
    this.#hasEnded ||= hasEnded;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  // ── peers ──

  peerIndex(peer: string): number {
    const known = this.#peerKeys.indexOf(peer);
    if (known >= 0) return known;
    this.#peerKeys.push(peer);
    return this.#peerKeys.length - 1;
  }

  peerAt(index: number): string | undefined {
    return this.#peerKeys[index];
  }

  get peers(): readonly string[] {
    return this.#peerKeys;
  }

  /** Peers that host threads. */
  get peersWithThreads(): ReadonlySet<string> {
    return new Set(this.#table.all().flatMap(({ peer }) => this.#peerKeys[peer] ?? []));
  }

  endpointId(peer: string, thread: number, generation: number): number {
    return this.#table.find(this.peerIndex(peer), thread, generation)?.id ?? -1;
  }

  /** Only these are peers from now on. What is dropped here is as lost as what died, unless it has left. */
  keepPeers(keys: ReadonlySet<string>): void {
    for (const [index, key] of this.#peerKeys.entries()) {
      if (keys.has(key)) continue;
      this.#seen.delete(index);
      this.schedule(this.#table.replace(index, []));
    }
  }

  onPeerUp(peer: string): void {
    this.#seen.set(this.peerIndex(peer), -1);
    if (this.#announcement.number > 0) this.#options.tell(peer, this.#announcement);
  }

  /** `hasEnded`: its process may have. */
  onPeerLost(peer: string, hasEnded: boolean): void {
    const index = this.peerIndex(peer);
    this.#seen.delete(index);
    this.#toConfirm.delete(peer);
    this.#table.replace(index, []);
    this.schedule(true, hasEnded);
  }

  onAnnouncement(peer: string, { number, threads, cuts }: Extract<PeerMessage, { kind: 'threads' }>): void {
    if (cuts.length > 0) this.#toConfirm.set(peer, number);
    this.schedule(this.#table.replace(this.peerIndex(peer), threads, cuts));
  }

  onSeen(peer: string, number: number): void {
    const index = this.peerIndex(peer);
    if (this.#seen.has(index)) this.#seen.set(index, number);
    this.#options.onRoutes();
  }

  /** A peer has lost something. */
  onLoss(hasEnded: boolean): void {
    this.#tellHosts({ kind: 'mark', hasEnded });
  }

  // ── tasks that move ──

  /** Senders hold rows for a task of this worker from now on. Returns the cut's number. */
  cut(task: number): number {
    const id = this.#nextCut++;
    this.#cuts.set(task, { id, announced: undefined, done: new Set() });
    this.schedule();
    return id;
  }

  /** Senders send to it again, wherever it is. */
  uncut(task: number): void {
    if (this.#cuts.delete(task)) this.schedule();
  }

  /** A thread sends nothing more to a task. */
  onCut(task: number, id: number, endpoint: number): void {
    const cut = this.#cuts.get(task);
    if (cut?.id === id) cut.done.add(endpoint);
  }

  /** Does nobody send to it any more? (W2) */
  isCutOff(task: number): boolean {
    const cut = this.#cuts.get(task);
    if (cut?.announced === undefined) return false;
    for (const seen of this.#seen.values()) if (seen < cut.announced) return false;
    return this.#table.all().every(({ id }) => cut.done.has(id));
  }

  /** Does a peer say that it has that task? */
  isElsewhere(task: number): boolean {
    const place = this.#endpointOfTask[task] ?? -1;
    return this.#table.all().some(({ id, peer }) => id === place && peer >= 0);
  }

  // ── routes ──

  onApplied(threadKey: string, version: number): void {
    const waited = this.#applying.get(threadKey);
    if (waited === undefined || version < waited) return;
    this.#applying.delete(threadKey);
    this.#finishLoss();
  }

  #send(): void {
    const tasks = this.#options.tasks();
    if (tasks === undefined) {
      // No thread of this worker sends anything yet.
      this.#confirm();
      return;
    }
    const hosts = this.#options.hosts();
    const threads = hosts.map(
      (host): AnnouncedThread => ({
        index: host.index,
        generation: host.generation,
        started: rangesOf(host.started),
        ...(host.isLeaving ? { isLeaving: true } : {}),
      }),
    );
    const cuts = [...this.#cuts].map(([task, { id }]) => ({ task, id }));
    const lostHere = this.#table.replace(-1, threads, cuts);
    const isLoss = this.#isLossPending || lostHere;
    const hasEnded = this.#hasEnded || lostHere;
    this.#isLossPending = false;
    this.#hasEnded = false;
    const version = ++this.#version;
    const endpointOfTask = this.#table.endpointOfTask(lastTask(tasks));
    this.#endpointOfTask = endpointOfTask;
    const held = this.#table.held(endpointOfTask);
    const endpoints = this.#table.all();
    for (const host of hosts) {
      if (isLoss) this.#applying.set(host.key, version);
      host.post({
        kind: 'routes',
        version,
        tasks,
        endpointOfTask,
        held,
        lost: isLoss,
        hasEnded,
        endpoints: endpoints.map((endpoint) => {
          const other =
            endpoint.peer >= 0
              ? undefined
              : hosts.find(
                  ({ index, generation }) => index === endpoint.thread && generation === endpoint.generation,
                );
          const near = other !== undefined && other !== host;
          return {
            id: endpoint.id,
            thread: endpoint.thread,
            generation: endpoint.generation,
            peer: endpoint.peer,
            outgoing: near ? host.ringTo(other, this.#options.ringBytes) : null,
            incoming: near ? other.ringTo(host, this.#options.ringBytes) : null,
            doorbell: near ? other.doorbell : null,
          };
        }),
      });
    }
    if (isLoss) {
      this.#isSecondCut = !hasEnded && (this.#isSecondCut || !this.#needsSecondMark);
      this.#needsSecondMark = true;
    }
    this.#announce(threads, cuts);
    this.#confirm();
    this.#finishLoss();
    this.#options.onRoutes();
  }

  #confirm(): void {
    for (const [peer, number] of this.#toConfirm) this.#options.tell(peer, { kind: 'seen', number });
    this.#toConfirm.clear();
  }

  #announce(
    threads: readonly AnnouncedThread[],
    cuts: Extract<PeerMessage, { kind: 'threads' }>['cuts'],
  ): void {
    const before = this.#announcement;
    if (JSON.stringify([threads, cuts]) !== JSON.stringify([before.threads, before.cuts])) {
      this.#announcement = { kind: 'threads', number: before.number + 1, threads, cuts };
      for (const index of this.#seen.keys()) this.#options.tell(this.#peerKeys[index]!, this.#announcement);
    }
    for (const { task } of cuts) {
      const cut = this.#cuts.get(task);
      if (cut !== undefined) cut.announced ??= this.#announcement.number;
    }
  }

  /** Second mark of W1. */
  #finishLoss(): void {
    if (!this.#needsSecondMark || this.#applying.size > 0) return;
    this.#needsSecondMark = false;
    const isCut = this.#isSecondCut;
    this.#tellHosts({ kind: 'mark', hasEnded: !isCut });
    const message: PeerMessage = isCut ? { kind: 'loss', isCut } : { kind: 'loss' };
    for (const index of this.#seen.keys()) this.#options.tell(this.#peerKeys[index]!, message);
  }

  #tellHosts(message: Extract<ToThread, { kind: 'mark' }>): void {
    for (const host of this.#options.hosts()) host.post(message);
  }
}

function lastTask(tasks: readonly ComponentTasks[]): number {
  return tasks.reduce((last, entry) => Math.max(last, entry.last), 0);
}
