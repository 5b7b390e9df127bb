/**
 * Who answers a scheduling round: strategies in threads, so that no client waits for them, and nobody hangs with them.
 *
 * What is small is decided at once by the strategies that come with Isobar: handing a snapshot over costs more than deciding
 * it, and a thread costs its start. So is everything by those whose work is about that of handing it over (60,000 executors on 2,000
 * machines: 10 to 60 ms; cloning them: 25 to 45 ms). Installed strategies always run in threads, one each.
 */
import { type Clock, IsobarError, type Settings } from '../../base/index.js';
import {
  type ClusterSnapshot,
  decideInParts,
  type DecisionPart,
  installedStrategies,
  type PartDecision,
  type SchedulingResult,
  strategyNamed,
} from '../../scheduling/index.js';
import type { StrategySource } from './strategy-messages.js';
import { StrategyThread } from './strategy-thread.js';

/** Executors up to which a round is decided at once, unless it searches among constraints: some ms. */
const MOST_AT_ONCE = 2000;
/** Strategies that take several times as long as it takes to hand a large snapshot over. */
const SLOW: ReadonlySet<string> = new Set(['balanced', 'resource-aware']);

export interface DeciderOptions {
  readonly settings: Settings;
  readonly clock: Pick<Clock, 'nowMs' | 'after'>;
}

export class Decider {
  readonly #options: DeciderOptions;
  readonly #installed: ReadonlyMap<string, string>;
  readonly #threads = new Map<string, StrategyThread>();
  #isClosed = false;

  /** @throws SETTINGS_INVALID for modules that are not named as they have to be */
  constructor(options: DeciderOptions) {
    this.#options = options;
    this.#installed = installedStrategies(options.settings);
  }

  /** Never rejects: what goes wrong with a strategy is the failure of its topologies. */
  async decide(snapshot: ClusterSnapshot): Promise<SchedulingResult> {
    const parts = decideInParts(snapshot, this.#options.settings['scheduling.strategy'], this.#installed);
    let step = parts.next();
    while (step.done !== true) step = parts.next(await this.#decidePart(step.value));
    return step.value;
  }

  /** What is being decided fails, and nothing is decided any more. */
  close(): void {
    this.#isClosed = true;
    for (const thread of this.#threads.values()) thread.close();
    this.#threads.clear();
  }

  async #decidePart({ strategy, snapshot }: DecisionPart): Promise<PartDecision> {
    const { settings } = this.#options;
    try {
      if (this.#isClosed) throw new IsobarError('NOT_LEADER', 'this Nimbus has been closed');
      if (!this.#installed.has(strategy) && (!SLOW.has(strategy) || isSmall(snapshot)))
        return strategyNamed(strategy, settings)(snapshot);
      return await this.#thread(strategy).decide(snapshot);
    } catch (failure) {
      return { failure };
    }
  }

  #thread(name: string): StrategyThread {
    const known = this.#threads.get(name);
    if (known !== undefined) return known;
    const { settings, clock } = this.#options;
    const module = this.#installed.get(name);
    const source: StrategySource =
      module === undefined ? { kind: 'own', name, settings } : { kind: 'installed', name, module };
    const deadlineMs = settings['scheduling.deadline'];
    const thread = new StrategyThread({
      source,
      deadlineMs,
      clock,
    });
    this.#threads.set(name, thread);
    return thread;
  }
}

/** Searches among constraints can take long for few executors. */
function isSmall({ topologies }: ClusterSnapshot): boolean {
  let executors = 0;
  for (const topology of topologies) {
    executors += topology.executors.length;
    if (executors > MOST_AT_ONCE || topology.rules?.strategy === 'constraint-solver') return false;
  }
  return true;
}
