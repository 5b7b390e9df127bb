/**
 * Which topologies wait until they can be placed as a whole, under the strategy `balanced` and the mode `tasks`: placing each
 * worker as a slot turns up would give the first machine everything.
 */
import type { Logger, Settings } from '../base/index.js';
import {
  type PlacementNeed,
  slotWaitOptions,
  type SlotWaitState,
  waitBySettings,
} from '../scheduling/index.js';
import { DueTimes } from './due-times.js';

export class SlotWaits {
  readonly #logger: Logger;
  readonly #waits = new Map<string, SlotWaitState>();
  /** When a waiting topology must be looked at again, ms. */
  readonly #due = new DueTimes();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Topologies whose waits must be looked at by `nowMs`; each is told once. */
  takeDue(nowMs: number): readonly string[] {
    return this.#due.takeDue(nowMs);
  }

  /** When the next one is due. */
  get nextDueMs(): number | undefined {
    return this.#due.nextMs;
  }

  /** Why the topology is not placed now, or null: it is to be placed. */
  hold({ topologyId, ...need }: PlacementNeed, settings: Settings, nowMs: number): string | null {
    const before = this.#waits.get(topologyId);
    const step = waitBySettings(before, need, settings, nowMs);
    if (step === undefined) return null;
    const { state, decision } = step;
    this.#waits.set(topologyId, state);
    const { wanted, isRunning } = need;
    const waitedMs = nowMs - state.sinceMs;
    if (before === undefined) this.#logger.info('slots.requested', { topology: topologyId, wanted });
    if (state.declarations > (before?.declarations ?? 0))
      this.#logger.info('slots.declared', { topology: topologyId, wanted, waitedMs });
    if (decision.kind === 'place') {
      this.#due.delete(topologyId);
      if (decision.isProvisional && before?.isOver !== true)
        this.#logger.warn(isRunning ? 'slots.short' : 'slots.waited-in-vain', {
          topology: topologyId,
          wanted,
          waitedMs,
        });
      return null;
    }
    this.#due.set(topologyId, decision.dueMs);
    const { slotWaitTimeoutMs: timeoutMs } = slotWaitOptions(settings);
    if (decision.free >= decision.wanted || (isRunning && timeoutMs !== null))
      return 'is placed in a moment: what else is asked for now is placed together with it.';
    const bound =
      timeoutMs === null
        ? 'It waits as long as it takes, because slot.wait-timeout is not set, or scheduling.compatibility is flink.'
        : `After slot.wait-timeout (${timeoutMs} ms) it is placed on those that are there.`;
    return `waits to be placed as a whole: ${decision.free} of ${decision.wanted} slots are free. ${bound}`;
  }

  /** Every executor has a slot, or the topology is gone: the next need is a new one. */
  forget(topologyId: string): void {
    this.#waits.delete(topologyId);
    this.#due.delete(topologyId);
  }

  clear(): void {
    this.#waits.clear();
    this.#due.clear();
  }
}
