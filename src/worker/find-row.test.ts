import { describe, expect, it } from 'vitest';
import type { BoltExecutor } from './bolt-executor.js';
import { findRow } from './find-row.js';
import type { Link } from './link.js';
import { OrderLines } from './order-lines.js';

type Visit = (words: Int32Array, at: number) => boolean;

/** Words of a row in a queue: root task, generation and sequence stand at places 3 to 5. */
const words = (rootTask: number, sequence: number): Int32Array =>
  Int32Array.of(0, 0, 0, rootTask, 1, sequence);

function bolt(parts: {
  queued?: Int32Array;
  call?: { rootTask: number; rootSequence: number };
  behind?: { rootTask: number; rootSequence: number };
}): BoltExecutor {
  const { queued, call, behind } = parts;
  const lines = new OrderLines();
  lines.hold(1);
  if (behind !== undefined) lines.enter(1, { ...behind, several: null, start: () => undefined });
  const task = {
    number: 7,
    lines,
    openCalls: new Set(call === undefined ? [] : [{ ...call, sinceMs: 500 }]),
  };
  const someQueued = (visit: Visit): boolean => queued !== undefined && visit(queued, 0);
  // What is not read is left out.
  return { component: { id: 'fetch' }, tasks: [task], someQueued } as unknown as BoltExecutor;
}

const link = (held?: Int32Array): Link =>
  // What is not read is left out.
  ({ targetThread: 3, someHeld: (visit: Visit) => held !== undefined && visit(held, 0) }) as unknown as Link;

describe('looking for a row', () => {
  it.each([
    ['in a queue', [bolt({ queued: words(4, 9) })], [], 'fetch (queued)'],
    [
      'in a call that lasts',
      [bolt({ call: { rootTask: 4, rootSequence: 9 } })],
      [],
      'fetch[7] (in process for 2.0 s)',
    ],
    [
      'behind another row',
      [bolt({ behind: { rootTask: 4, rootSequence: 9 } })],
      [],
      'fetch[7] (behind another row of its key)',
    ],
    ['held for want of credit', [bolt({})], [link(), link(words(4, 9))], 'held for thread 3 (no credit)'],
    [
      'nowhere here',
      [
        bolt({
          queued: words(4, 8),
          call: { rootTask: 5, rootSequence: 9 },
          behind: { rootTask: 4, rootSequence: 8 },
        }),
      ],
      [link(words(5, 9))],
      null,
    ],
  ] as const)('finds it %s', (_, bolts, links, expected) => {
    expect(findRow(bolts, links, 4, 9, 2500)).toBe(expected);
  });
});
