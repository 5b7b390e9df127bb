/** The strategies of a plan: those of Isobar's are called, installed ones run in threads with a deadline, as in a cluster. */
import { type Settings, systemClock } from '../../base/index.js';
import { StrategyThread } from '../../nimbus/index.js';
import { installedStrategies, type Strategy, strategyNamed } from '../../scheduling/index.js';

export class PlannedStrategies {
  readonly #settings: Settings;
  readonly #modules: ReadonlyMap<string, string>;
  readonly #threads = new Map<string, StrategyThread>();

  /** @throws SETTINGS_INVALID for modules that are not named as they have to be */
  constructor(settings: Settings) {
    this.#settings = settings;
    this.#modules = installedStrategies(settings);
  }

  /** Their names. */
  get installed(): Iterable<string> {
    return this.#modules.keys();
  }

  /** @throws SETTINGS_INVALID for a name that no strategy has */
  named(name: string): Strategy {
    const module = this.#modules.get(name);
    if (module === undefined) return strategyNamed(name, this.#settings);
    let thread = this.#threads.get(name);
    if (thread === undefined) {
      const deadlineMs = this.#settings['scheduling.deadline'];
      thread = new StrategyThread({
        source: { kind: 'installed', name, module },
        deadlineMs,
        clock: systemClock,
      });
      this.#threads.set(name, thread);
    }
    const { decideNow } = thread;
    return decideNow;
  }

  close(): void {
    for (const thread of this.#threads.values()) thread.close();
  }
}
