/**
 * The whole word count of one place (a thread or a process), hand-written: read a sentence, split it, count the words
 * whose hash says so, send the others to the other place, keep the ledger. No framework, no queue between the steps, no
 * time-out, no counters but the ones needed to check the result.
 *
 * This is what the product is compared with. It does per word what at-least-once needs (an id of 64 random bits, an
 * ack), and nothing else.
 */
import { generateSentences, WORDS_PER_SENTENCE } from '../sentences.js';
import {
  ACK_WORDS,
  ACKED_ROW_WORDS,
  AckBatch,
  ACKS_FRAME,
  HEADER_WORDS,
  UNACKED_ROW_WORDS,
  WordBatch,
  WordCache,
  type FrameSink,
} from './frames.js';
import { Ledger } from './ledger.js';

const PENDING_LIMIT = 8192;
const SENTENCES_PER_STEP = 256;
const FLUSH_MS = 1;
const SHORTEST_SLEEP_MS = 0.2;
/** At full load one tree in 64 is timed: reading the clock for each would be seen. */
const SAMPLE_MASK = 63;

/** Places in a host's totals (float64, may be shared). */
export const EMITTED = 0;
export const ACKED = 1;
export const COUNTED = 2;
export const PENDING = 3;
/** 1 while the host may emit; it takes a step until it knows that it may not. */
export const EMITTING = 4;
export const TOTALS = 5;

export interface Link extends FrameSink {
  /** Hands received frames to the host; returns how many. */
  poll(host: Host): number;
}

export interface HostOptions {
  readonly acking: boolean;
  /** Place of this host among two; ignored when it is alone. */
  readonly index: number;
  /** null: it is alone. */
  readonly link: Link | null;
  /** Sentences per second; 0: as fast as it goes. */
  readonly rate: number;
  readonly totals: Float64Array;
  readonly histogram: Int32Array;
  readonly nowMs: () => number;
}

export class Host {
  readonly #options: HostOptions;
  readonly #link: Link | null;
  readonly #acking: boolean;
  readonly #index: number;
  readonly #sentences = generateSentences();
  readonly #ledger: Ledger;
  readonly #wordsOut: WordBatch;
  readonly #acksOut = new AckBatch(PENDING_LIMIT * WORDS_PER_SENTENCE);
  readonly #cache = new WordCache();
  readonly #counts = new Map<string, { times: number }>();
  readonly #sampleMask: number;
  #highState: number;
  #lowState: number;
  #sequence = 0;
  #nextSentence = 0;
  #emitted = 0;
  #counted = 0;
  #startMs = -1;
  #lastFlushMs = 0;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#link = options.link;
    this.#acking = options.acking;
    this.#index = options.index;
    this.#ledger = new Ledger(PENDING_LIMIT, options.histogram);
    this.#wordsOut = new WordBatch(options.acking);
    this.#sampleMask = options.rate > 0 ? 0 : SAMPLE_MASK;
    this.#highState = 0x2545f491 + options.index;
    this.#lowState = 0x1b873593 - options.index;
  }

  get counts(): Map<string, number> {
    return new Map(Array.from(this.#counts, ([word, { times }]) => [word, times]));
  }

  /** One round; returns the work done, 0: nothing to do now. */
  step(mayEmit: boolean): number {
    let work = this.#link === null ? 0 : this.#link.poll(this);
    const nowMs = this.#options.nowMs();
    if (mayEmit) work += this.#emitDue(nowMs);
    if (this.#link !== null && (work === 0 || nowMs - this.#lastFlushMs >= FLUSH_MS)) {
      this.#lastFlushMs = nowMs;
      if (!this.#wordsOut.flush(this.#link)) work++;
      if (!this.#acksOut.flush(this.#link)) work++;
    }
    const totals = this.#options.totals;
    totals[EMITTED] = this.#emitted;
    totals[ACKED] = this.#ledger.acked;
    totals[COUNTED] = this.#counted;
    totals[PENDING] = this.#ledger.pending;
    totals[EMITTING] = mayEmit ? 1 : 0;
    return work;
  }

  /** How long to sleep when there was nothing to do, ms: shorter than `SHORTEST_SLEEP_MS` costs a core and gains nothing. */
  idleMs(): number {
    const { rate, nowMs } = this.#options;
    if (rate === 0) return FLUSH_MS;
    return Math.max(
      SHORTEST_SLEEP_MS,
      Math.min(FLUSH_MS, this.#startMs + ((this.#emitted + 1) * 1000) / rate - nowMs()),
    );
  }

  /** Reads a frame in place. */
  receive(words: Int32Array, firstWord: number, bytes: Buffer, firstByte: number): void {
    const rows = words[firstWord + 1]!;
    let at = firstWord + HEADER_WORDS;
    if (words[firstWord] === ACKS_FRAME) {
      for (let row = 0; row < rows; row++, at += ACK_WORDS)
        this.#ledger.xor(words[at]!, words[at + 1]!, words[at + 2]!);
      return;
    }
    const rowWords = this.#acking ? ACKED_ROW_WORDS : UNACKED_ROW_WORDS;
    let text = firstByte + (HEADER_WORDS + rows * rowWords) * 4;
    for (let row = 0; row < rows; row++, at += rowWords) {
      const length = words[at + rowWords - 1]!;
      this.#count(this.#cache.get(bytes, text, length));
      text += length;
      if (this.#acking) this.#acksOut.add(words[at]!, words[at + 1]!, words[at + 2]!);
    }
    if (this.#acksOut.isFull) this.#acksOut.flush(this.#link!);
  }

  #emitDue(nowMs: number): number {
    const { rate } = this.#options;
    let due = SENTENCES_PER_STEP;
    if (rate > 0) {
      if (this.#startMs < 0) this.#startMs = nowMs;
      due = Math.min(due, Math.floor(((nowMs - this.#startMs) * rate) / 1000) - this.#emitted);
    }
    let done = 0;
    while (done < due) {
      if (this.#wordsOut.isFull && !this.#wordsOut.flush(this.#link!)) break;
      if (this.#acking) {
        if (!this.#ledger.isFree(this.#sequence)) break;
        this.#emitAcked();
      } else {
        this.#emitUnacked();
      }
      done++;
    }
    this.#emitted += done;
    return done;
  }

  #emitAcked(): void {
    const sequence = this.#sequence;
    this.#sequence = (sequence + 1) | 0;
    const rootHigh = this.#nextHigh();
    const rootLow = this.#nextLow();
    this.#ledger.open(
      sequence,
      rootHigh,
      rootLow,
      (sequence & this.#sampleMask) === 0 ? this.#options.nowMs() : 0,
    );
    let edgesHigh = rootHigh;
    let edgesLow = rootLow;
    const words = this.#takeSentence().split(' ');
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      const high = this.#nextHigh();
      const low = this.#nextLow();
      edgesHigh ^= high;
      edgesLow ^= low;
      if (this.#isMine(word)) {
        this.#count(word);
        this.#ledger.xor(sequence, high, low);
      } else {
        this.#wordsOut.add(word, sequence, high, low);
      }
    }
    this.#ledger.xor(sequence, edgesHigh, edgesLow);
  }

  #emitUnacked(): void {
    const words = this.#takeSentence().split(' ');
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      if (this.#isMine(word)) this.#count(word);
      else this.#wordsOut.add(word, 0, 0, 0);
    }
  }

  #takeSentence(): string {
    const sentence = this.#sentences[this.#nextSentence]!;
    if (++this.#nextSentence === this.#sentences.length) this.#nextSentence = 0;
    return sentence;
  }

  /** Fields grouping over two: a hash of the word (FNV-1a) says who counts it. */
  #isMine(word: string): boolean {
    if (this.#link === null) return true;
    let hash = 0x811c9dc5;
    for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
    return ((hash ^ (hash >>> 15)) & 1) === this.#index;
  }

  #count(word: string): void {
    const entry = this.#counts.get(word);
    if (entry === undefined) this.#counts.set(word, { times: 1 });
    else entry.times++;
    this.#counted++;
  }

  #nextHigh(): number {
    let state = this.#highState;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#highState = state;
    return state;
  }

  #nextLow(): number {
    let state = this.#lowState;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    this.#lowState = state;
    return state;
  }
}
