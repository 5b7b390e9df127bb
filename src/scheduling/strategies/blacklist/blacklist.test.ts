import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot } from '../../cluster-snapshot.js';
import { validateAssignment } from '../../validate-assignment.js';
import { defaultStrategy } from '../default/default.js';
import {
  type BlacklistMemory,
  type BlacklistRules,
  EMPTY_BLACKLIST,
  planBlacklist,
  underBlacklist,
} from './blacklist.js';

const ROUND_MS = 10_000;
const rules: BlacklistRules = {
  toleranceMs: 30 * ROUND_MS,
  toleranceCount: 3,
  resumeMs: 180 * ROUND_MS,
  roundMs: ROUND_MS,
  countsLostSlots: true,
};

function cluster(ids: readonly string[], workers = 0, ports: readonly number[] = [1, 2]): ClusterSnapshot {
  return {
    supervisors: ids.map((id) => ({ id, host: `host-${id}`, ports })),
    topologies: [
      {
        id: 't',
        workers,
        executors: Array.from({ length: workers }, (_, index) => ({
          range: [index + 1, index + 1],
          component: 'c',
        })),
      },
    ],
    placement: new Map(),
  };
}

/** A round of each snapshot, one round's time apart, from the given memory and round on. */
function rounds(
  snapshots: readonly ClusterSnapshot[],
  start: { readonly memory: BlacklistMemory; readonly round: number } = { memory: EMPTY_BLACKLIST, round: 0 },
): {
  readonly memory: BlacklistMemory;
  readonly round: number;
  readonly hosts: string[][];
  readonly grey: string[][];
} {
  let { memory, round } = start;
  const [hosts, grey]: [string[][], string[][]] = [[], []];
  for (const snapshot of snapshots) {
    const decision = planBlacklist(memory, snapshot, round++ * ROUND_MS, rules);
    memory = decision.memory;
    hosts.push([...decision.hosts]);
    grey.push([...decision.greyListed]);
  }
  return { memory, round, hosts, grey };
}

const all = cluster(['a', 'b', 'c']);
const withoutB = cluster(['a', 'c']);

describe('the blacklist', () => {
  it('lists a supervisor that was away in three rounds of the tolerance time, once it is back', () => {
    expect(rounds([all, withoutB, withoutB, all]).hosts.at(-1)).toEqual([]);
    expect(rounds([all, withoutB, all, withoutB, all, withoutB, all]).hosts.at(-1)).toEqual(['host-b']);
  });

  it('forgets a bad round that is older than the tolerance time', () => {
    const quiet = Array.from({ length: 30 }, () => all);
    const { hosts } = rounds([all, withoutB, withoutB, ...quiet, withoutB, all]);
    expect(hosts.at(-1)).toEqual([]);
  });

  it('resumes a supervisor when its time is over, to the round', () => {
    const listed = rounds([all, withoutB, withoutB, withoutB]);
    const waiting = rounds(
      Array.from({ length: 179 }, () => all),
      listed,
    );
    expect(waiting.hosts.every((hosts) => hosts.includes('host-b'))).toBe(true);
    expect(rounds([all], waiting).hosts).toEqual([[]]);
  });

  it('counts a supervisor as bad that lost slots, unless told not to', () => {
    const short = {
      ...all,
      supervisors: all.supervisors.map((one) => (one.id === 'b' ? { ...one, ports: [1] } : one)),
    };
    expect(rounds([all, short, short, short]).hosts.at(-1)).toEqual(['host-b']);
    let memory = EMPTY_BLACKLIST;
    for (const [round, snapshot] of [all, short, short, short].entries()) {
      const decision = planBlacklist(memory, snapshot, round * ROUND_MS, {
        ...rules,
        countsLostSlots: false,
      });
      expect(decision.hosts.size).toBe(0);
      ({ memory } = decision);
    }
  });

  it('counts rounds that follow one another at once as one', () => {
    let memory = planBlacklist(EMPTY_BLACKLIST, all, 0, rules).memory;
    for (let step = 0; step < 50; step++)
      ({ memory } = planBlacklist(memory, withoutB, ROUND_MS + step, rules));
    expect(planBlacklist(memory, all, ROUND_MS + 60, rules).hosts.size).toBe(0);
  });

  it('forgets a supervisor that was away for the whole tolerance time, so that it starts afresh', () => {
    const away = rounds([all, ...Array.from({ length: 30 }, () => withoutB)]);
    expect(away.memory.known.has('b')).toBe(false);
    expect(away.memory.known.has('a')).toBe(true);
  });

  it('releases hosts in order of name where slots are short, and grey-lists their supervisors', () => {
    const listed = rounds([all, cluster(['c']), cluster(['c']), cluster(['c'])]);
    const enough = planBlacklist(listed.memory, cluster(['a', 'b', 'c'], 2), listed.round * ROUND_MS, rules);
    expect([[...enough.hosts], [...enough.greyListed]]).toEqual([['host-a', 'host-b'], []]);
    const short = planBlacklist(listed.memory, cluster(['a', 'b', 'c'], 3), listed.round * ROUND_MS, rules);
    expect([[...short.hosts], [...short.greyListed]]).toEqual([['host-b'], ['a']]);
    expect(short.memory.listedUntilMs.has('a')).toBe(false);
  });

  it('keeps whatever runs and places nothing new on listed hosts, whatever comes and goes', () => {
    const ids = ['a', 'b', 'c', 'd'];
    fc.assert(
      fc.property(
        fc.array(fc.subarray(ids, { minLength: 1 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 9 }),
        (presences, workers) => {
          let memory = EMPTY_BLACKLIST;
          let placement: ClusterSnapshot['placement'] = new Map();
          for (const [round, present] of presences.entries()) {
            const gone = new Set(ids.filter((id) => !present.includes(id)));
            const alive = [...placement].map(
              ([id, list]) => [id, list.filter(({ supervisor }) => !gone.has(supervisor))] as const,
            );
            const snapshot = { ...cluster(present, workers), placement: new Map(alive) };
            let hosts: ReadonlySet<string> = new Set();
            const decision = planBlacklist(memory, snapshot, round * ROUND_MS, rules);
            ({ memory, hosts } = decision);
            const result = defaultStrategy({ fillLiveWorkers: true })(underBlacklist(snapshot, decision));
            expect([...validateAssignment({ ...snapshot, blacklistedHosts: hosts }, result)]).toEqual([]);
            ({ placement } = result);
          }
        },
      ),
      { seed: 5, numRuns: 200 },
    );
  });
});
