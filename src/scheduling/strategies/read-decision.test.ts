import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot } from '../cluster-snapshot.js';
import { readDecision } from './read-decision.js';

const snapshot: ClusterSnapshot = {
  supervisors: [{ id: 's', host: 'h', ports: [1, 2] }],
  topologies: ['words', 'clicks'].map((id) => ({
    id,
    workers: 1,
    executors: [1, 2].map((task) => ({ range: [task, task] as const, component: 'a' })),
  })),
  placement: new Map([['clicks', [{ supervisor: 's', port: 2, executors: [[1, 1]] }]]]),
};
const worker = {
  supervisor: 's',
  port: 1,
  executors: [
    [2, 2],
    [1, 1],
  ],
};

describe('what an installed strategy returns', () => {
  it.each([
    ['a plain object', { words: [worker] }],
    ['a map', new Map([['words', [worker]]])],
  ])(
    'is read from %s; who is left out keeps what they have, and what is missing has a reason',
    (_, placement) => {
      const result = readDecision('mine', { placement, reasons: { clicks: 'is to wait.' } }, snapshot);
      expect(result.placement.get('words')).toEqual([
        {
          supervisor: 's',
          port: 1,
          executors: [
            [1, 1],
            [2, 2],
          ],
        },
      ]);
      expect(result.placement.get('clicks')).toBe(snapshot.placement.get('clicks'));
      expect([...result.unplaced]).toEqual([
        ['clicks', { executors: [{ range: [2, 2], component: 'a' }], reason: 'is to wait.' }],
      ]);
    },
  );

  it.each<[unknown, string, string]>([
    [undefined, 'its result', 'undefined'],
    [Promise.resolve({ placement: {} }), 'placement', 'undefined'],
    [{}, 'placement', 'undefined'],
    [{ placement: [] }, 'placement', '[]'],
    [{ placement: {}, reasons: 'none' }, 'reasons', '"none"'],
    [{ placement: {}, reasons: { words: 3 } }, 'reasons.words', '3'],
    [{ placement: { word: [] } }, 'placement', 'word'],
    [{ placement: { words: {} } }, 'placement.words', '{}'],
    [{ placement: { words: [null] } }, 'placement.words[0]', 'null'],
    [{ placement: { words: [{ ...worker, supervisor: 7 }] } }, 'placement.words[0].supervisor', '7'],
    [{ placement: { words: [{ ...worker, port: 1.5 }] } }, 'placement.words[0].port', '1.5'],
    [{ placement: { words: [{ ...worker, executors: 'all' }] } }, 'placement.words[0].executors', '"all"'],
    [
      { placement: { words: [{ ...worker, executors: [[1, 1], [2]] }] } },
      'placement.words[0].executors[1]',
      '[2]',
    ],
  ])('is refused if it is %j, with the place at fault', (value, where, found) => {
    const refused = (): unknown => readDecision('mine', value, snapshot);
    expect(refused).toThrow(
      expect.objectContaining({
        code: 'STRATEGY_FAILED',
        details: expect.objectContaining({
          where,
          found: expect.stringContaining(found) as string,
        }) as object,
      }),
    );
  });
});
