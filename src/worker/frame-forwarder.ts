/**
 * Passes frames on between the executor threads of this worker and its peers, without decoding them. Used by the worker's
 * main thread.
 *
 * What comes from a peer is checked as far as the main thread can tell: its sender is announced, its receiver lives, and no
 * more rows are under way than credit allows. The executor thread checks what a frame says (frame-receiver.ts).
 */
import { setImmediate as immediate, setTimeout as pause } from 'node:timers/promises';
import { type ErrorRecord, IsobarError, type Logger } from '../base/index.js';
import {
  decodeControlFrame,
  type Doorbell,
  H_ENDPOINT,
  H_KIND,
  H_SOURCE_GENERATION,
  H_SOURCE_THREAD,
  H_TARGET_GENERATION,
  H_TARGET_THREAD,
  KIND_CONTROL,
  KIND_CREDIT,
  KIND_DATA,
  type PeerConnections,
} from '../messaging/index.js';
import { parsePeerMessage, type PeerMessage } from './endpoints.js';
import type { ExecutorThreads } from './executor-threads.js';
import type { RouteKeeper } from './route-keeper.js';
import type { ThreadHost } from './thread-host.js';

/** Bytes forwarded in one go that mean load, and how long to gather more of them then. */
const BUSY_BYTES = 8192;
const BUSY_PAUSE_MS = 1;
/** Frames of one thread that are forwarded before the next thread's. */
const FRAMES_AT_ONCE = 256;
/** The bell wakes the loop; looking again is a precaution. */
const LONGEST_SLEEP_MS = 1000;
/** Frames that a thread has no room for are offered again after 1 ms, and later each time. */
const LONGEST_OFFER_MS = 16;

export interface FrameForwarderOptions {
  readonly threads: ExecutorThreads;
  readonly routes: RouteKeeper;
  readonly peers: PeerConnections;
  /** Of the main thread. */
  readonly doorbell: Doorbell;
  /** What an honest peer's thread may have under way to one of ours at most (peer-credit.ts). */
  readonly mostUnderWay: number;
  readonly logger: Logger;
  onMessage(peer: string, message: PeerMessage): void;
}

export class FrameForwarder {
  readonly #options: FrameForwarderOptions;
  /** Number of the newest session with each peer. */
  readonly #sessions = new Map<string, number>();
  #lastSession = 0;

  constructor(options: FrameForwarderOptions) {
    this.#options = options;
  }

  /** A session with a peer has begun. */
  onPeerUp(peer: string): void {
    this.#sessions.set(peer, ++this.#lastSession);
  }

  /** A frame of a peer. Throws PEER_PROTOCOL_ERROR for what no honest peer sends. */
  receive(peer: string, frame: Buffer): void {
    const { threads, routes, mostUnderWay } = this.#options;
    const words = new Int32Array(frame.buffer, frame.byteOffset, frame.byteLength >> 2);
    if (words[H_KIND] === KIND_CONTROL) {
      this.#options.onMessage(peer, parsePeerMessage(decodeControlFrame(frame)));
      return;
    }
    const host = threads.at(words[H_TARGET_THREAD]!);
    if (host === undefined || host.generation !== words[H_TARGET_GENERATION]) return;
    const endpoint = routes.endpointId(peer, words[H_SOURCE_THREAD]!, words[H_SOURCE_GENERATION]!);
    if (words[H_KIND] === KIND_DATA) {
      // A thread is announced before it sends: rows of one that is not are nobody's.
      if (endpoint < 0) return;
      const underWay = host.peerCredit.take(endpoint, words, 0);
      if (underWay > mostUnderWay)
        throw new IsobarError('PEER_PROTOCOL_ERROR', 'a peer sends rows without credit', {
          expected: `at most ${mostUnderWay} under way to one thread`,
          found: `${underWay}`,
          where: peer,
        });
    }
    words[H_ENDPOINT] = endpoint;
    // The thread knows who it is; what it may have to tell is in which session the frame came.
    words[H_TARGET_THREAD] = this.#sessions.get(peer) ?? 0;
    host.forward(frame);
    this.#options.doorbell.wakeSelf();
  }

  /** One of our threads cannot make sense of a frame; a session that has ended meanwhile is not blamed twice. */
  onBrokenFrame(session: number, error: ErrorRecord): void {
    const peer = [...this.#sessions].find(([, newest]) => newest === session)?.[0];
    if (peer === undefined) return;
    this.#options.logger.warn('peer.broken-frame', { peer, code: error.code, reason: error.message });
    this.#options.peers.reject(peer, error.message);
  }

  /**
   * Forwards as long as the process lives. Being woken by a bell costs the ringing thread some 100 µs, so under load this
   * loop does not sleep by the bell but looks again after a moment: that also makes for fewer, larger socket writes. At low
   * rates the bell keeps the latency low.
   */
  async run(): Promise<never> {
    const { threads, routes, peers, doorbell } = this.#options;
    let bytesSeen = 0;
    let offerMs = 1;
    let sender: ThreadHost | undefined;
    const onFrame = (
      words: Int32Array,
      at: number,
      bytes: Buffer,
      byteStart: number,
      byteLength: number,
    ): void => {
      bytesSeen += byteLength;
      const peer = routes.peerAt(words[at + H_ENDPOINT]!);
      if (peer === undefined) return;
      if (words[at + H_KIND] === KIND_CREDIT)
        sender?.peerCredit.giveBack(
          routes.endpointId(peer, words[at + H_TARGET_THREAD]!, words[at + H_TARGET_GENERATION]!),
          words,
          at,
        );
      peers.send(peer, bytes.subarray(byteStart, byteStart + byteLength));
    };
    for (;;) {
      let frames = 0;
      let waiting = false;
      bytesSeen = 0;
      for (const host of threads.all()) {
        sender = host;
        frames += host.fromThread.drain(onFrame, FRAMES_AT_ONCE);
        waiting = host.forwardBacklog() || waiting;
      }
      if (bytesSeen >= BUSY_BYTES) await pause(BUSY_PAUSE_MS);
      else if (frames > 0) await immediate();
      else {
        const hasSlept = await doorbell.sleep(waiting ? offerMs : LONGEST_SLEEP_MS, () =>
          threads.all().some((host) => !host.fromThread.isEmpty),
        );
        offerMs = waiting ? Math.min(2 * offerMs, LONGEST_OFFER_MS) : 1;
        if (!hasSlept) await immediate();
      }
    }
  }
}
