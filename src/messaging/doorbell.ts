/**
 * How a thread that waits is woken by the threads that send to it: one word of shared memory per receiving thread.
 *
 * The word is a futex with memory, as thread parking has it: AWAKE → (owner announces) ASLEEP → (somebody rings) RUNG →
 * (owner looks) AWAKE. Ringing an owner who is awake leaves RUNG behind, so the next sleep ends at once; a bell is never
 * lost, whatever the order of ringing, looking and falling asleep. Ringing again costs one read.
 *
 * V8 keeps a waiter until it is notified or timed out: so a sleep that ends in another way notifies its own waiter. Nor
 * does Atomics.waitAsync keep Node's event loop alive: the owner has something else that does.
 */
import { IsobarError } from '../base/index.js';

const AWAKE = 0;
const ASLEEP = 1;
const RUNG = 2;

/**
 * Up to this long V8 itself ends a sleep, at half the cost of a timer of Node's. It keeps its own timers to their end, even
 * if the sleep is over long before: too many where long sleeps are short.
 */
const SHORT_SLEEP_MS = 100;

/** `Atomics.waitAsync` is in V8 since Node 16, but not in the ES2023 declarations. */
interface AsyncAtomics {
  waitAsync(
    words: Int32Array,
    index: number,
    value: number,
    timeoutMs: number,
  ): { async: false; value: 'not-equal' | 'timed-out' } | { async: true; value: Promise<'ok' | 'timed-out'> };
}
const asyncAtomics = Atomics as unknown as AsyncAtomics;

export class Doorbell {
  readonly buffer: SharedArrayBuffer;
  readonly #word: Int32Array;
  /** Ends the sleep of this thread, if it sleeps. */
  #wake: (() => void) | null = null;

  static allocate(): SharedArrayBuffer {
    // A cache line of its own.
    return new SharedArrayBuffer(64);
  }

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#word = new Int32Array(buffer);
  }

  /** Wakes the owner, or keeps it from falling asleep. Call it after what it should see has been published. */
  ring(): void {
    if (Atomics.load(this.#word, 0) === RUNG) return;
    if (Atomics.exchange(this.#word, 0, RUNG) === ASLEEP) Atomics.notify(this.#word, 0);
  }

  /** Owner: as `ring`, from its own event loop (a promise settled, a message came); a sleep ends with this turn. */
  wakeSelf(): void {
    this.ring();
    this.#wake?.();
  }

  /**
   * Owner: sleeps until rung or for `timeoutMs`; not at all if it was rung since the last sleep, or if `hasWork` says so
   * after the sleep has been announced. One sleep at a time. Resolves to whether it slept: otherwise it has not given
   * way to timers and sockets, and the caller's loop must do that.
   */
  async sleep(timeoutMs: number, hasWork: () => boolean): Promise<boolean> {
    if (this.#wake !== null)
      throw new IsobarError('INTERNAL', 'the owner of a doorbell sleeps once at a time');
    const word = this.#word;
    if (Atomics.compareExchange(word, 0, AWAKE, ASLEEP) !== AWAKE || timeoutMs <= 0 || hasWork()) {
      Atomics.store(word, 0, AWAKE);
      return false;
    }
    const isShort = timeoutMs <= SHORT_SLEEP_MS;
    const waiting = asyncAtomics.waitAsync(word, 0, ASLEEP, isShort ? timeoutMs : Infinity);
    if (waiting.async) {
      const timer = isShort ? undefined : setTimeout(() => this.#wake?.(), timeoutMs);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        void waiting.value.then(() => resolve());
      });
      this.#wake = null;
      clearTimeout(timer);
    }
    // Order matters: awake first, then the owner looks for work; a bell in between makes the next sleep short.
    if (Atomics.exchange(word, 0, AWAKE) === ASLEEP) Atomics.notify(word, 0);
    return waiting.async;
  }
}
