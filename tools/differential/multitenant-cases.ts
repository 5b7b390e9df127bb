/**
 * Random inputs of the multitenant scheduler in the shape of the vectors: users with and without pools, topologies that ask for machines of
 * their own, and what is left of an earlier placement. None spreads components: the peer's renamings leave that list as it is.
 */
import fc from 'fast-check';
import { multitenantStrategy } from '../../src/scheduling/index.js';
import { snapshotSchema, toSnapshot } from '../vectors/operations/snapshot.js';
import type { CaseInput } from './resource-cases.js';

const OWNERS = ['ann', 'bob', 'cho'];

const topology = fc.record({
  owner: fc.nat(2),
  workers: fc.integer({ min: 1, max: 6 }),
  components: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
  machines: fc.constantFrom(0, 0, 0, 1, 2, 3),
});

const cluster = fc.record({
  ports: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 8 }),
  topologies: fc.array(topology, { minLength: 1, maxLength: 5 }),
  pools: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 0, maxLength: 2 }),
  blacklisted: fc.nat(30),
});

type Drawn<T> = T extends fc.Arbitrary<infer Value> ? Value : never;

export const freshMultitenant: fc.Arbitrary<CaseInput> = cluster.map(toInput);

/** Some time later: a supervisor and some workers are gone, a topology is new. */
export const laterMultitenant: fc.Arbitrary<CaseInput> = fc
  .record({
    drawn: cluster,
    lost: fc.nat(12),
    late: fc.nat(4),
    kept: fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
  })
  .map(({ drawn, lost, late, kept }) => {
    const input = toInput(drawn);
    const snapshot = toSnapshot(snapshotSchema.parse(input));
    const userPools = new Map(Object.entries(poolsOf(drawn)));
    const { placement } = multitenantStrategy({ userPools, fillLiveWorkers: false })({
      ...snapshot,
      topologies: snapshot.topologies.filter((_, index) => index !== late),
    });
    let turn = 0;
    const assignments = [...placement].map(([id, workers]): readonly [string, readonly unknown[]] => [
      id,
      workers
        .filter(({ supervisor }) => supervisor !== `s${lost}` && (kept[turn++ % kept.length] ?? true))
        .map(({ supervisor: node, port, executors }) => ({ node, port, executors })),
    ]);
    return {
      ...input,
      supervisors: (input['supervisors'] as { readonly id: string }[]).filter(({ id }) => id !== `s${lost}`),
      assignments: Object.fromEntries<unknown>(assignments.filter(([, workers]) => workers.length > 0)),
    };
  });

function toInput(drawn: Drawn<typeof cluster>): CaseInput {
  return {
    op: 'schedule',
    conf: { 'multitenant.scheduler.user.pools': poolsOf(drawn) },
    supervisors: drawn.ports.map((ports, index) => ({
      id: `s${index}`,
      host: `h${index}`,
      ports: Array.from({ length: ports }, (_, port) => 6700 + port),
    })),
    topologies: drawn.topologies.map(({ owner, workers, components, machines }, index) => {
      let task = 0;
      return {
        id: `t${index}`,
        owner: OWNERS[owner],
        numWorkers: workers,
        executors: components.flatMap((count, component) =>
          Array.from({ length: count }, () => {
            task++;
            return [task, task, `c${component}`];
          }),
        ),
        conf: machines > 0 ? { 'topology.isolate.machines': machines } : {},
      };
    }),
    blacklistedHosts: [`h${drawn.blacklisted}`],
  };
}

function poolsOf({ pools }: Drawn<typeof cluster>): Record<string, number> {
  return Object.fromEntries<number>(pools.map((most, index) => [OWNERS[index] ?? '', most]));
}
