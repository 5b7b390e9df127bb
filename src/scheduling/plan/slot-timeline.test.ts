import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slotTimeline, type TimelineEvent } from './slot-timeline.js';
import { chain, cluster, machines } from './testing/clusters.js';

const words = chain('words', { source: 2, map: 4, sink: 6 });
const three = cluster(machines([3, 3, 3]), [words]);
const OPTIONS = { strategy: 'balanced', offerEveryMs: 200, offersAtMs: new Map<string, number>() };

function brief(event: TimelineEvent): string {
  switch (event.kind) {
    case 'offered':
      return `${event.atMs} ${event.machine} offers ${event.ports.length}`;
    case 'placed':
      return `${event.atMs} placed ${event.loads.map(({ load }) => load).join('/')}${event.isProvisional ? ' provisionally' : ''}, ${event.moved} moved`;
    case 'lacking':
      return `${event.atMs} lacking ${event.executors}`;
    case 'waiting':
      return `${event.atMs} waits with ${event.free} of ${event.slots}`;
    default:
      return `${event.atMs} ${event.kind} ${event.slots}`;
  }
}

describe('slotTimeline', () => {
  it('requests, declares, waits for all slots, and places everything at once', () => {
    const offersAtMs = new Map([
      ['m1', 0],
      ['m2', 700],
      ['m3', 700],
    ]);
    const { events, isSettled } = slotTimeline(three, { ...OPTIONS, offersAtMs });
    expect(events.map(brief)).toEqual([
      '0 m1 offers 3',
      '0 requested 6',
      '0 waits with 3 of 6',
      '20 declared 6',
      '20 waits with 3 of 6',
      '700 m2 offers 3',
      '700 m3 offers 3',
      '700 placed 4/4/4, 0 moved',
    ]);
    expect(isSettled).toBe(true);
  });

  it('uses what is there when the wait is over, says that it is provisional, and restores balance later', () => {
    const offersAtMs = new Map([
      ['m1', 0],
      ['m2', 6000],
      ['m3', 6000],
    ]);
    const { events, after } = slotTimeline(three, { ...OPTIONS, offersAtMs });
    const placed = events.filter(({ kind }) => kind === 'placed').map(brief);
    expect(placed[0]).toBe('5000 placed 12 provisionally, 0 moved');
    expect(after.machineLoad).toMatchObject({ max: 4, min: 4 });
  });

  it('waits for nothing under another strategy', () => {
    const { events } = slotTimeline(three, { ...OPTIONS, strategy: 'even' });
    expect(events.map(brief).slice(0, 2)).toEqual(['0 m1 offers 1', '0 placed 12, 0 moved']);
  });

  it('says what lacks in a cluster without slots, and ends', () => {
    const { events, isSettled } = slotTimeline(cluster([], [words]), OPTIONS);
    expect(events.at(-1)).toMatchObject({ kind: 'lacking', executors: 12, atMs: 5000 });
    expect(isSettled).toBe(true);
  });

  it('ends for any cluster, in order of time, with everything placed if slots suffice', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 2 }),
        fc.integer({ min: 0, max: 3000 }),
        (slots, sizes, offerEveryMs) => {
          const topologies = sizes.map((size, index) => chain(`t${index}`, { a: size, b: size }));
          const { events, isSettled, after } = slotTimeline(cluster(machines(slots), topologies), {
            ...OPTIONS,
            offerEveryMs,
          });
          expect(isSettled).toBe(true);
          const times = events.map(({ atMs }) => atMs);
          expect(times).toEqual([...times].sort((a, b) => a - b));
          const total = slots.reduce((sum, count) => sum + count, 0);
          const wanted = sizes.reduce((sum, size) => sum + 2 * size, 0);
          if (total >= sizes.length) expect(after.executors).toBe(wanted);
        },
      ),
      { seed: 4_711, numRuns: 60 },
    );
  });
});
