/**
 * How much work a pure function does, in operations and not in time: every block of the scheduler's code that is entered, loop bodies and
 * callbacks included, and every element that a built-in search or shift of a list goes through. The same call counts the same anywhere.
 */
import { Session } from 'node:inspector';
import { setFlagsFromString } from 'node:v8';

// Optimised code leaves counts out.
for (const flag of ['--no-opt', '--no-maglev', '--no-sparkplug']) setFlagsFromString(flag);

/** Built-ins whose cost is the length of the list and that run no code of ours. */
const LINEAR = [
  'includes',
  'indexOf',
  'lastIndexOf',
  'shift',
  'unshift',
  'splice',
  'slice',
  'concat',
] as const;

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

/** Operations of one call. Blocks are counted by the engine itself, so nothing has to be built into the code for it. */
export function countedWork(call: () => unknown): number {
  const session = new Session();
  session.connect();
  let elements = 0;
  const restore = LINEAR.map((name) => countElements(name, (length) => (elements += length)));
  try {
    // Answers within one thread come at once.
    session.post('Profiler.enable');
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    session.post('Profiler.takePreciseCoverage');
    call();
    let blocks = 0;
    session.post('Profiler.takePreciseCoverage', (error, coverage: Coverage) => {
      if (error !== null) throw error;
      for (const { url, functions } of coverage.result) {
        if (!url.includes('/src/scheduling/')) continue;
        for (const { ranges } of functions) for (const { count } of ranges) blocks += count;
      }
    });
    session.post('Profiler.stopPreciseCoverage');
    return blocks + elements;
  } finally {
    for (const undo of restore) undo();
    session.disconnect();
  }
}

function countElements(name: (typeof LINEAR)[number], count: (length: number) => void): () => void {
  const prototype = Array.prototype as unknown as Record<string, (...parameters: unknown[]) => unknown>; // by name
  const own = prototype[name]!;
  prototype[name] = function counted(this: unknown[], ...parameters: unknown[]): unknown {
    count(this.length);
    return own.apply(this, parameters);
  };
  return () => {
    prototype[name] = own;
  };
}
