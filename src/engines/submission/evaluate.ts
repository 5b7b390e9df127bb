/** Describes a bundle's topology by evaluating it in a child process with a deadline. */
import { IsobarError, packageEntry } from '../../base/index.js';
import type { TopologyDescription } from '../../topology/index.js';
import { runChild } from './child.js';
import type { Evaluation } from './evaluate-main.js';

const EVALUATE_ENTRY = packageEntry('engines/submission/evaluate-main');
/** How Node ends a process whose top-level await is still pending when nothing is left to do. */
const NEVER_SETTLED = 'exit code 13';

export interface EvaluateOptions {
  /** `submit.evaluation-timeout`. */
  readonly timeoutMs: number;
  /** How the user calls the file, for messages. */
  readonly file: string;
  readonly signal?: AbortSignal;
}

/**
 * The description of what the bundle exports as its default.
 *
 * @throws EVALUATION_TIMEOUT, EVALUATION_FAILED, NO_DEFAULT_EXPORT, NOT_A_TOPOLOGY, BUILDER_THREW, GRAPH_NOT_DETERMINISTIC,
 * and whatever the builder refuses; what the file printed is in `details.output`
 */
export async function describeInChild(
  bundlePath: string,
  options: EvaluateOptions,
): Promise<TopologyDescription> {
  const { timeoutMs, file, signal } = options;
  const ended = await runChild<Evaluation>({
    entry: EVALUATE_ENTRY,
    arguments: [bundlePath],
    timeoutMs,
    ...(signal === undefined ? {} : { signal }),
  });
  const output = ended.output === '' ? {} : { output: ended.output };
  switch (ended.kind) {
    case 'answered': {
      if (ended.answer.kind === 'described') return ended.answer.description;
      const { error } = ended.answer;
      throw IsobarError.from({ ...error, details: { ...error.details, ...output, file } });
    }
    case 'timeout':
      throw new IsobarError('EVALUATION_TIMEOUT', `evaluating ${file} took longer than ${timeoutMs} ms`, {
        expected: `an end within submit.evaluation-timeout (${timeoutMs} ms)`,
        found: 'it was still running and was ended',
        where: file,
        ...output,
      });
    case 'ended':
      throw new IsobarError('EVALUATION_FAILED', `evaluating ${file} ended its process (${ended.how})`, {
        expected: 'a file that can be evaluated to its end',
        found: ended.how === NEVER_SETTLED ? 'an await at its top that nothing will ever settle' : ended.how,
        where: file,
        ...output,
      });
  }
}
