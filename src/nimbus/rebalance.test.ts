import { describe, expect, it } from 'vitest';
import { checkRebalance, desiredAfter, type RebalanceRequest } from './rebalance.js';

const COMPONENTS = ['__acker', 'count', 'lines', 'split'];
const NOTHING: RebalanceRequest = {
  executors: {},
  resources: {},
  waitMs: null,
  fromScratch: false,
  preview: false,
};

describe('what a rebalance asks for', () => {
  it.each([
    [{ workers: 0 }, 'PARALLELISM_ILLEGAL'],
    [{ workers: -2 }, 'PARALLELISM_ILLEGAL'],
    [{ workers: 1.5 }, 'PARALLELISM_ILLEGAL'],
    [{ workers: Number.NaN }, 'PARALLELISM_ILLEGAL'],
    [{ workers: 2_000_000 }, 'PARALLELISM_ILLEGAL'],
    [{ executors: { count: 0 } }, 'PARALLELISM_ILLEGAL'],
    [{ executors: { count: -1 } }, 'PARALLELISM_ILLEGAL'],
    [{ executors: { count: 2.5 } }, 'PARALLELISM_ILLEGAL'],
    [{ executors: { constructor: 2 } }, 'COMPONENT_NOT_FOUND'],
    [{ resources: { nobody: { cpu: 1 } } }, 'COMPONENT_NOT_FOUND'],
    [{ resources: { count: { cpu: -1 } } }, 'PARALLELISM_ILLEGAL'],
  ])('refuses %j', (part, code) => {
    expect(() => checkRebalance({ ...NOTHING, ...part }, COMPONENTS, { asStorm: false })).toThrow(
      expect.objectContaining({ code }) as Error,
    );
  });

  it('accepts more executors than there are tasks, and system components', () => {
    checkRebalance({ ...NOTHING, workers: 7, executors: { count: 99, __acker: 2 } }, COMPONENTS, {
      asStorm: false,
    });
  });

  it('takes any name of a system component as Storm does, where that is wanted', () => {
    const request = { ...NOTHING, executors: { __eventlogger: 2 } };
    expect(() => checkRebalance(request, COMPONENTS, { asStorm: false })).toThrow('__eventlogger');
    checkRebalance(request, COMPONENTS, { asStorm: true });
    expect(() =>
      checkRebalance({ ...NOTHING, executors: { __eventlogger: 0 } }, COMPONENTS, { asStorm: true }),
    ).toThrow('0');
    expect(() =>
      checkRebalance({ ...NOTHING, executors: { cuont: 2 } }, COMPONENTS, { asStorm: true }),
    ).toThrow('cuont');
  });

  it('names the closest component', () => {
    expect(() =>
      checkRebalance({ ...NOTHING, executors: { cuont: 2 } }, COMPONENTS, { asStorm: false }),
    ).toThrow('there is no component "cuont"; did you mean "count"?');
  });
});

describe('the counts after a rebalance', () => {
  it('are those before it but for what was asked', () => {
    const first = desiredAfter(undefined, { ...NOTHING, workers: 3, executors: { count: 2 } }, 10);
    expect(first).toEqual({
      revision: 1,
      workers: 3,
      executors: { count: 2 },
      resources: {},
      placement: 'few-moves',
      changedMs: 10,
    });
    const request = {
      ...NOTHING,
      executors: { split: 5 },
      resources: { count: { cpu: 50 } },
      fromScratch: true,
      requestId: 'r2',
    };
    const second = desiredAfter(first, request, 20);
    expect(second).toEqual({
      revision: 2,
      workers: 3,
      executors: { count: 2, split: 5 },
      resources: { count: { cpu: 50 } },
      placement: 'from-scratch',
      changedMs: 20,
      requestId: 'r2',
    });
    const third = desiredAfter(second, { ...NOTHING, resources: { count: { memory: 1 } } }, 30);
    expect(third).toMatchObject({ resources: { count: { cpu: 50, memory: 1 } }, placement: 'few-moves' });
    expect(third).not.toHaveProperty('requestId');
  });
});
