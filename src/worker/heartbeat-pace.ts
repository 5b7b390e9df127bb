/**
 * When a worker's heartbeat is worth sending: when it says something new, and otherwise so seldom that an idle worker costs
 * next to nothing and still is heard of long before anybody takes it for dead. One that is costly, since it speaks of thousands
 * of tasks, is followed by a rest in proportion. One that takes long alone is not, since that says more of what else the machine
 * does, as at the start, when a decision waits for each. Pure.
 */
import type { WorkerHeartbeat } from '../coordination/index.js';

/** Move on by themselves while nothing happens. */
const RESTLESS: ReadonlySet<string> = new Set([
  ...['sequence', 'cpuMicros', 'rssBytes', 'inCallMs', 'ageMs'],
  ...['activeMs', 'collections', 'collectionMs'],
]);

/** Heartbeats take at most one part in so many of the main thread's time. */
const PARTS_OF_TIME = 5;
/** What heartbeats cost is the least that any of so many has cost. */
const COSTS = 3;

export class HeartbeatPace {
  readonly #quietIntervalMs: number;
  #sent: WorkerHeartbeat | undefined;
  #sentMs = 0;
  #restUntilMs = 0;
  /** What the last heartbeats have taken, ms. */
  readonly #costs: number[] = [];

  /** @param quietIntervalMs longest time between two heartbeats that say the same */
  constructor(quietIntervalMs: number) {
    this.#quietIntervalMs = quietIntervalMs;
  }

  isDue(heartbeat: WorkerHeartbeat, nowMs: number): boolean {
    if (this.#sent === undefined || nowMs - this.#sentMs >= this.#quietIntervalMs) return true;
    return !isSame(this.#sent, heartbeat);
  }

  noteSent(heartbeat: WorkerHeartbeat, nowMs: number): void {
    this.#sent = heartbeat;
    this.#sentMs = nowMs;
  }

  /** The last one has just taken so long. Others rest for no longer than what is the same may. */
  noteCost(costMs: number, nowMs: number): void {
    this.#costs.push(costMs);
    if (this.#costs.length > COSTS) this.#costs.shift();
    const least = this.#costs.length < COSTS ? 0 : Math.min(...this.#costs);
    this.#restUntilMs = nowMs + Math.min((PARTS_OF_TIME - 1) * least, this.#quietIntervalMs);
  }

  /** How long the next one is to wait, ms. */
  restMs(nowMs: number): number {
    return Math.max(0, this.#restUntilMs - nowMs);
  }

  /** Nobody has heard anything: what has been sent went to somebody who is gone. */
  reset(): void {
    this.#sent = undefined;
    this.#restUntilMs = 0;
  }
}

/** Deep equality of plain data but for what is restless; ends at the first difference. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => isSame(item, b[index]));
  }
  const before: Readonly<Record<string, unknown>> = { ...a };
  const after: Readonly<Record<string, unknown>> = { ...b };
  const names = Object.keys(after);
  if (Object.keys(before).length !== names.length) return false;
  return names.every((name) => RESTLESS.has(name) || isSame(before[name], after[name]));
}
