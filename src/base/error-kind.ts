/**
 * Which errors are of one kind, and so are counted together: those with the same code, in the same component, from the same
 * place in the code. Messages often name the row, and would make a kind of each.
 */
import type { ErrorRecord } from './errors.js';

/** Two errors with the same text are of one kind. */
export function errorKind(component: string, error: ErrorRecord): string {
  return [component, error.code, firstFrame(error) ?? error.message].join('\n');
}

/** Of the innermost cause: the outer ones are stacks of Isobar's. */
function firstFrame(error: ErrorRecord): string | undefined {
  const inner = error.cause === undefined ? undefined : firstFrame(error.cause);
  return (
    inner ??
    error.stack
      ?.split('\n')
      .map((line) => line.trim())
      .find((line) => line.startsWith('at '))
  );
}
