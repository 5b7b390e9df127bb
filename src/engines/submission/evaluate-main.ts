/**
 * Evaluates a bundle and builds its graph twice, in a process that may hang, exit or crash as it likes.
 * Argument: the bundle. Sends one {@link Evaluation} to its parent.
 */
import { pathToFileURL } from 'node:url';
import { IsobarError, toErrorRecord, toIsobarError, type ErrorRecord } from '../../base/index.js';
import { buildTopology, canonicalDescription, type TopologyDescription } from '../../topology/index.js';

/** What the child found. */
export type Evaluation =
  | { readonly kind: 'described'; readonly description: TopologyDescription }
  | { readonly kind: 'failed'; readonly error: ErrorRecord };

async function evaluate(bundlePath: string): Promise<Evaluation> {
  let exported: { default?: unknown };
  try {
    exported = (await import(pathToFileURL(bundlePath).href)) as { default?: unknown };
  } catch (error) {
    return { kind: 'failed', error: toErrorRecord(evaluationFailed(error)) };
  }
  try {
    const first = buildTopology(exported.default).description;
    const second = buildTopology(exported.default).description;
    const difference = firstDifference(canonicalDescription(first), canonicalDescription(second));
    if (difference === undefined) return { kind: 'described', description: first };
    throw new IsobarError(
      'GRAPH_NOT_DETERMINISTIC',
      `building topology "${first.name}" twice gave two graphs`,
      {
        expected: difference.expected,
        found: difference.found,
        where: `topology "${first.name}"`,
      },
    );
  } catch (error) {
    return { kind: 'failed', error: toErrorRecord(error) };
  }
}

/** Definitions are checked while the file is evaluated: those errors keep their own code. */
function evaluationFailed(error: unknown): IsobarError {
  const wrapped = toIsobarError(error, 'EVALUATION_FAILED');
  if (wrapped.code !== 'EVALUATION_FAILED') return wrapped;
  const text = describeThrown(error);
  const failure = new IsobarError(
    'EVALUATION_FAILED',
    `evaluating the file threw ${text}`,
    { found: text },
    error,
  );
  if (wrapped.stack !== undefined) failure.stack = wrapped.stack;
  return failure;
}

function describeThrown(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    // It has a getter or a toString of its own that throws.
    return 'an object that cannot be looked at';
  }
}

/** Where two texts begin to differ, with what surrounds it. */
function firstDifference(a: string, b: string): { expected: string; found: string } | undefined {
  if (a === b) return undefined;
  let at = 0;
  while (a[at] === b[at]) at++;
  const excerpt = (text: string): string => `… ${text.slice(Math.max(0, at - 40), at + 40)} …`;
  return { expected: excerpt(a), found: excerpt(b) };
}

const [bundlePath] = process.argv.slice(2);
const send = process.send?.bind(process);
if (bundlePath === undefined || send === undefined) {
  process.stderr.write('usage: started by isobar run\n');
  process.exit(2);
}
// The channel is ours: a file that tells "its" process manager that it is ready must not answer in our place.
delete process.send;
process.disconnect = (): void => undefined;

function answer(evaluation: Evaluation): void {
  send!(evaluation, undefined, {}, () => process.exit(0));
}

process.on('disconnect', () => process.exit(0));
// A file that awaits what nothing will ever settle ends the process at once, instead of at the deadline.
process.channel?.unref();
// A promise that nobody awaits, or a timer's callback, of the user's file.
process.on('uncaughtException', (error) =>
  answer({ kind: 'failed', error: toErrorRecord(evaluationFailed(error)) }),
);
const evaluation = await evaluate(bundlePath);
// A rejection that nobody awaits is reported when the microtasks are done: before the next turn of the loop.
await new Promise((resolve) => setImmediate(resolve));
answer(evaluation);
