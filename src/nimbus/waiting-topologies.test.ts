import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WaitingTopologies } from './waiting-topologies.js';

it('counts what others lack as a sum over all of them would', () => {
  const id = fc.constantFrom<string>('a', 'b', 'c', 'd');
  const step = fc.record({ id, lack: fc.option(fc.nat(5), { nil: null }) });
  fc.assert(
    fc.property(fc.array(step), fc.uniqueArray(id), (steps, these) => {
      const waiting = new WaitingTopologies();
      const lacks = new Map<string, number>();
      for (const { id: one, lack } of steps) {
        if (lack === null) {
          waiting.delete(one);
          lacks.delete(one);
        } else {
          waiting.set(one, lack);
          lacks.set(one, lack);
        }
      }
      const others = [...lacks].filter(([one]) => !these.includes(one));
      expect(waiting.lackingBeside(these)).toBe(others.reduce((sum, [, lack]) => sum + lack, 0));
      expect(waiting.isAny).toBe(lacks.size > 0);
      waiting.clear();
      expect([waiting.isAny, waiting.lackingBeside([])]).toEqual([false, 0]);
    }),
    { seed: 20261130 },
  );
});
