/**
 * Measured loads that placement can go by: smoothed, and said anew only when they have changed for good, so that noise moves nothing.
 *
 * M1  What is said of an executor changes only if the smoothed value has left a band around it. M2  What is said is a multiple of
 * {@link STEP} and at least that: an executor that does nothing now is not nothing. M3  A counter that starts again (a new worker, a task
 * that moved) is a new beginning to count from, and what was known stays. M4  An executor that is found now busier, now less busy, in turns
 * is smoothed over twice as long with each turn, up to 2^{@link MOST_TURNS} windows, and over half as long again once it rests: a swing as long
 * as a window or two must not move workers to and fro.
 */

/** What a worker reports of one executor. */
export interface LoadSample {
  readonly topologyId: string;
  readonly firstTask: number;
  /** Changes whenever the counter starts again. */
  readonly incarnation: string;
  /** Milliseconds in which it has run rows so far. */
  readonly busyMs: number;
  /** When that was reported, ms by one clock for an incarnation. */
  readonly atMs: number;
}

interface Meter {
  incarnation: string;
  busyMs: number;
  atMs: number;
  smoothed: number;
  /** Time that `smoothed` is made of. */
  observedMs: number;
  /** Undefined: it has not been observed for long enough. */
  said: number | undefined;
  /** M4: how often what is said has turned lately. */
  turns: number;
  /** 1: it rose when it changed last; -1: it fell; 0: it has not changed. */
  direction: number;
  /** `observedMs` when it changed or was calmed last. */
  changedMs: number;
}

/** Grain of what is said: equal loads are equal, so that workers can be exchanged. */
const STEP = 0.05;
/** What is said changes when the smoothed value differs by more than this part of it, and by more than two steps. */
const BAND = 0.25;
/** A change the other way within so many windows is a turn; after as many without a change there is one turn less. */
const TURN_WINDOWS = 10;
const MOST_TURNS = 4;
/** Differences over shorter times say nothing. */
const SHORTEST_MS = 1000;

export class LoadMeter {
  /** By topology, by first task. */
  readonly #meters = new Map<string, Map<number, Meter>>();

  /** `windowMs`: how long a change must last to be seen: after so long 63 % of it are, unless M4 says longer. */
  note({ topologyId, firstTask, incarnation, busyMs, atMs }: LoadSample, windowMs: number): void {
    const meters = this.#meters.get(topologyId) ?? new Map<number, Meter>();
    this.#meters.set(topologyId, meters);
    const meter = meters.get(firstTask);
    if (meter === undefined) {
      const unknown = { smoothed: 0, observedMs: 0, said: undefined, turns: 0, direction: 0, changedMs: 0 };
      meters.set(firstTask, { incarnation, busyMs, atMs, ...unknown });
      return;
    }
    if (meter.incarnation !== incarnation || busyMs < meter.busyMs || atMs < meter.atMs) {
      Object.assign(meter, { incarnation, busyMs, atMs });
      return;
    }
    const elapsedMs = atMs - meter.atMs;
    if (elapsedMs < SHORTEST_MS) return;
    const utilisation = Math.min(1, (busyMs - meter.busyMs) / elapsedMs);
    Object.assign(meter, { busyMs, atMs });
    meter.observedMs += elapsedMs;
    // The plain average at first: nothing is known before.
    const ownWindowMs = windowMs * 2 ** meter.turns;
    const share = Math.max(1 - Math.exp(-elapsedMs / ownWindowMs), elapsedMs / meter.observedMs);
    meter.smoothed += share * (utilisation - meter.smoothed);
    if (meter.observedMs < windowMs) return;
    const { smoothed, said } = meter;
    if (said === undefined) meter.said = inSteps(smoothed);
    else if (Math.abs(smoothed - said) > Math.max(2 * STEP, BAND * said)) change(meter, said, ownWindowMs);
    else if (meter.turns > 0 && meter.observedMs - meter.changedMs > TURN_WINDOWS * ownWindowMs)
      Object.assign(meter, { turns: meter.turns - 1, changedMs: meter.observedMs });
  }

  /** By first task: what is known of a topology. */
  of(topologyId: string): ReadonlyMap<number, number> {
    const known = new Map<number, number>();
    for (const [firstTask, { said }] of this.#meters.get(topologyId) ?? [])
      if (said !== undefined) known.set(firstTask, said);
    return known;
  }

  forget(topologyId: string): void {
    this.#meters.delete(topologyId);
  }

  clear(): void {
    this.#meters.clear();
  }
}

function change(meter: Meter, said: number, ownWindowMs: number): void {
  const direction = Math.sign(meter.smoothed - said);
  const isSoon = meter.observedMs - meter.changedMs < TURN_WINDOWS * ownWindowMs;
  if (isSoon && direction === -meter.direction) meter.turns = Math.min(meter.turns + 1, MOST_TURNS);
  Object.assign(meter, { said: inSteps(meter.smoothed), direction, changedMs: meter.observedMs });
}

function inSteps(load: number): number {
  const steps = Math.max(1, Math.round(load / STEP));
  // 3 * 0.05 is not 0.15.
  return steps / Math.round(1 / STEP);
}
