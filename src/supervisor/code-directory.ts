/**
 * The code that a supervisor has on disk: what its slots are given, and what goes because nobody uses it any more (topologies that
 * are gone, code that was built anew).
 *
 * C1 Code that a worker was started with stays while the worker is there: a thread that starts again loads it again.
 * C2 Code that was last asked for at a port stays, from before it is fetched.
 * C3 What has changed a moment ago stays, whoever it was. Where it is not known what a worker uses, everything stays.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Clock, type Logger, readJsonFile } from '../base/index.js';
import { type Blobs, type CodeHashes, codeName, localise, type LocalisedCode } from './localiser.js';

const GRACE_MS = 10 * 60_000;

export class CodeDirectory {
  readonly #directory: string;
  readonly #blobs: Blobs;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** By port. */
  readonly #wanted = new Map<number, string>();

  constructor(options: { directory: string; blobs: Blobs; clock: Clock; logger: Logger }) {
    this.#directory = options.directory;
    this.#blobs = options.blobs;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /**
   * Makes the code of a topology present and whole for a worker at `port`.
   *
   * @throws TOPOLOGY_CODE_LOST, STATE_DIRECTORY_UNUSABLE
   */
  localise(port: number, topology: CodeHashes & { readonly name: string }): Promise<LocalisedCode> {
    this.#wanted.set(port, codeName(topology));
    return localise({ ...topology, directory: this.#directory, blobs: this.#blobs });
  }

  /** Removes what is neither used nor new. @param launchFiles of all workers that hold slots */
  prune(launchFiles: readonly string[]): void {
    const used = new Set(this.#wanted.values());
    for (const launchFile of launchFiles) {
      const codePath = codePathOf(launchFile);
      if (codePath === undefined) return;
      used.add(basename(dirname(codePath)));
    }
    try {
      for (const name of readdirSync(this.#directory)) {
        const path = join(this.#directory, name);
        if (used.has(name) || this.#clock.wallMs() - statSync(path).mtimeMs < GRACE_MS) continue;
        rmSync(path, { recursive: true, force: true });
        this.#logger.info('code.pruned', { name });
      }
    } catch (error) {
      // Tried again when the next worker comes or goes.
      this.#logger.warn('code.not-pruned', { message: String(error) });
    }
  }
}

function codePathOf(launchFile: string): string | undefined {
  const launch = readJsonFile(launchFile);
  if (typeof launch !== 'object' || launch === null || !('codePath' in launch)) return undefined;
  return typeof launch.codePath === 'string' ? launch.codePath : undefined;
}
