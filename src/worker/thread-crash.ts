/** How an executor thread ends itself: it says why, once, and throws, once; the worker's main thread starts it anew with back-off. */
import { toErrorRecord, toIsobarError } from '../base/index.js';
import type { ThreadCrashed } from './thread-messages.js';

/**
 * Makes the function that ends the thread with a reason. Later reasons follow from the first and are dropped.
 *
 * @param later runs a function outside any promise chain, so that what it throws ends the thread and its parent sees it
 */
export function createCrash(
  post: (message: ThreadCrashed) => void,
  later: (run: () => void) => unknown = setImmediate,
): (error: unknown) => void {
  let isOver = false;
  return (error) => {
    if (isOver) return;
    isOver = true;
    const fault = toIsobarError(error, 'USER_CODE_FAILED');
    post({ kind: 'crashed', error: toErrorRecord(fault) });
    later(() => {
      throw fault;
    });
  };
}
