/** The commands that look into a running topology. */
import { colorsFor } from './colors.js';
import { ClusterCaller, type ClusterSurroundings, OWN_PLACE } from './cluster-caller.js';
import { printLogs } from './logs-command.js';
import type { LogsFlags, ObserveActions } from './observe-program.js';
import { logJson, logLine } from './view/log-lines.js';

export interface ObserveSurroundings extends ClusterSurroundings {
  /** Calls back when the user, or whoever reads the output, has had enough; returns how to stop listening. */
  onInterrupt(callback: () => void): () => void;
}

const LOGS_PATIENCE_MS = 500;

/** Each resolves to its exit code; errors have been shown. */
export class ObserveCommands implements ObserveActions {
  readonly #surroundings: ObserveSurroundings;
  readonly #caller: ClusterCaller;

  constructor(surroundings: ObserveSurroundings) {
    this.#surroundings = surroundings;
    this.#caller = new ClusterCaller(surroundings);
  }

  logs(name: string | undefined, component: string | undefined, flags: LogsFlags): Promise<number> {
    const { out, environment } = this.#surroundings;
    const colors = colorsFor(out, environment);
    return this.#untilInterrupted((signal) =>
      this.#caller.run(
        flags,
        async (client) =>
          printLogs(
            client,
            { name, component, flags, directory: this.#caller.directoryOf(flags) },
            (entry) =>
              out.write(
                `${flags.json === true ? JSON.stringify(logJson(entry)) : logLine(entry, colors, OWN_PLACE)}\n`,
              ),
            signal,
          ),
        // The files say nearly as much.
        { patienceMs: LOGS_PATIENCE_MS },
      ),
    );
  }

  async #untilInterrupted(command: (signal: AbortSignal) => Promise<number>): Promise<number> {
    const interrupted = new AbortController();
    const stop = this.#surroundings.onInterrupt(() => interrupted.abort());
    try {
      return await command(interrupted.signal);
    } finally {
      stop();
    }
  }
}
