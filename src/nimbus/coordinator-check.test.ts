import { describe, expect, it } from 'vitest';
import { IsobarError, VirtualClock } from '../base/index.js';
import { coordinatorProblem } from './coordinator-check.js';

describe('the coordinator', () => {
  const asked = (readTopology: () => Promise<undefined>, clock = new VirtualClock()) =>
    coordinatorProblem({ readTopology }, clock);

  it('has no problem when it answers', async () => {
    expect(await asked(() => Promise.resolve(undefined))).toBeNull();
  });

  it.each(['COORDINATOR_UNAVAILABLE', 'COORDINATOR_DATA_LOST', 'COORDINATOR_ACCESS_DENIED'] as const)(
    'has the problem that it answers with: %s',
    async (code) => {
      const problem = await asked(() => Promise.reject(new IsobarError(code, 'so it is')));
      expect(problem).toEqual({ code, message: 'so it is' });
    },
  );

  it('has one when it says nothing for a second', async () => {
    const clock = new VirtualClock();
    const told = asked(() => new Promise<undefined>(() => undefined), clock);
    clock.advance(1000);
    expect(await told).toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
  });
});
