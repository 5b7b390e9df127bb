/**
 * From a file to what Nimbus wants: the type check runs beside bundling and evaluation, and nothing is handed out before
 * both have passed.
 */
import { join } from 'node:path';
import { hasCode, writeWorkFile } from '../../base/index.js';
import type { TopologyDescription } from '../../topology/index.js';
import { bundleTopology, type Bundle } from './bundle.js';
import { describeInChild } from './evaluate.js';
import { typeCheck } from './type-check.js';

export interface Submission {
  readonly bundle: Bundle;
  readonly description: TopologyDescription;
}

export interface SubmissionOptions {
  readonly file: string;
  readonly check: boolean;
  readonly evaluationTimeoutMs: number;
  /** A directory to put the bundle into for its evaluation. */
  readonly workDirectory: string;
  readonly signal?: AbortSignal;
  /** Told the files to watch as soon as they are known, even if the submission fails later. */
  readonly onInputs?: (inputs: readonly string[]) => void;
}

/**
 * Checks, bundles and evaluates a file.
 *
 * Type errors win over what the same mistake does at run time; a file that cannot be bundled is reported at once.
 *
 * @throws FILE_NOT_FOUND, BUNDLE_FAILED, TYPE_CHECK_FAILED, and STATE_DIRECTORY_UNUSABLE, and the codes of {@link describeInChild}
 */
export async function prepareSubmission(options: SubmissionOptions): Promise<Submission> {
  const { file, evaluationTimeoutMs, workDirectory } = options;
  const stop = new AbortController();
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, options.signal]);
  const checked = options.check ? typeCheck(file, { signal }) : Promise.resolve();
  const made = (async (): Promise<Submission> => {
    const bundle = await bundleTopology(file);
    options.onInputs?.(bundle.inputs);
    const path = join(workDirectory, 'bundle.mjs');
    writeWorkFile(`${path}.map`, bundle.sourceMap);
    writeWorkFile(path, bundle.code);
    return {
      bundle,
      description: await describeInChild(path, { file, timeoutMs: evaluationTimeoutMs, signal }),
    };
  })();
  try {
    const [submission] = await Promise.all([
      made.catch(async (error: unknown) => {
        if (!hasCode(error, 'BUNDLE_FAILED') && !hasCode(error, 'FILE_NOT_FOUND')) await checked;
        throw error;
      }),
      checked,
    ]);
    return submission;
  } finally {
    stop.abort(new Error('the submission ended'));
    await Promise.allSettled([made, checked]);
  }
}
