import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredMoment } from '../base/index.js';
import type { DesiredState, TopologyPhase } from '../coordination/index.js';
import {
  type LifeEvent,
  lifeTimer,
  remainingMs,
  statusOf,
  transition,
  transitionIllegal,
} from './status-machine.js';

const NOW: StoredMoment = { wallMs: 1_700_000_000_000, boot: 'b1', bootMs: 5000 };
const DESIRED: DesiredState = {
  revision: 1,
  workers: 3,
  executors: { count: 2 },
  resources: {},
  placement: 'few-moves',
  changedMs: 1,
};
const WAIT = { since: NOW, waitMs: 7000 };
const PHASES: readonly TopologyPhase[] = [
  { kind: 'active' },
  { kind: 'inactive' },
  { kind: 'rebalancing', previous: 'inactive', wait: WAIT, desired: DESIRED },
  { kind: 'killed', wait: WAIT },
  { kind: 'draining', sinceMs: 1 },
  { kind: 'ending', stage: 0, stages: [['a']] },
  { kind: 'finished', drained: false },
  { kind: 'failed', error: { code: 'INTERNAL', message: 'm', details: {} } },
  { kind: 'stopped' },
  { kind: 'removed' },
];
const EVENTS: readonly LifeEvent[] = [
  { kind: 'activate' },
  { kind: 'inactivate' },
  { kind: 'rebalance', waitMs: 7000, desired: DESIRED },
  { kind: 'do-rebalance' },
  { kind: 'kill', waitMs: 7000 },
  { kind: 'remove' },
  { kind: 'startup' },
];

function outcome(phase: TopologyPhase, event: LifeEvent): string {
  const result = transition(phase, event, NOW);
  return result.kind === 'moved' ? statusOf(result.phase) : result.kind === 'stays' ? '·' : '-';
}

describe('the life of a topology', () => {
  it('has these transitions and no others', () => {
    const table = PHASES.map((phase) =>
      [statusOf(phase), ...EVENTS.map((event) => outcome(phase, event))].join(' '),
    );
    expect(table).toEqual([
      'ACTIVE · INACTIVE REBALANCING - KILLED - ·',
      'INACTIVE ACTIVE · REBALANCING - KILLED - ·',
      'REBALANCING - - - INACTIVE KILLED - ·',
      'KILLED - - - - KILLED REMOVED ·',
      'DRAINING - - - - KILLED - ·',
      'ENDING - - - - KILLED - ·',
      'FINISHED - - - - REMOVED - ·',
      'FAILED - - - - REMOVED - ·',
      'STOPPED - - - - REMOVED - ·',
      'REMOVED - - - - - - ·',
    ]);
  });

  it('rebalances without a wait in the status that it is in', () => {
    for (const kind of ['active', 'inactive'] as const) {
      const result = transition({ kind }, { kind: 'rebalance', waitMs: null, desired: DESIRED }, NOW);
      expect(result).toEqual({ kind: 'moved', phase: { kind }, desired: DESIRED });
    }
  });

  it('brings the new counts into force at the end of the wait, not before', () => {
    const event: LifeEvent = { kind: 'rebalance', waitMs: 7000, desired: DESIRED };
    const waiting = transition({ kind: 'active' }, event, NOW);
    expect(waiting).toEqual({
      kind: 'moved',
      phase: { kind: 'rebalancing', previous: 'active', wait: WAIT, desired: DESIRED },
    });
    const phase = waiting.kind === 'moved' ? waiting.phase : { kind: 'removed' as const };
    expect(transition(phase, { kind: 'do-rebalance' }, NOW)).toEqual({
      kind: 'moved',
      phase: { kind: 'active' },
      desired: DESIRED,
    });
  });

  it('waits for the removal of what is killed, anew after a second kill', () => {
    const later = { ...NOW, wallMs: NOW.wallMs + 4000, bootMs: NOW.bootMs + 4000 };
    const killed: TopologyPhase = { kind: 'killed', wait: WAIT };
    expect(lifeTimer(killed, later)).toEqual({ event: 'remove', afterMs: 3000 });
    const again = transition(killed, { kind: 'kill', waitMs: 9000 }, later);
    expect(again.kind === 'moved' && lifeTimer(again.phase, later)).toEqual({
      event: 'remove',
      afterMs: 9000,
    });
    expect(lifeTimer({ kind: 'active' }, later)).toBeUndefined();
  });

  it('says what could be done instead of what was refused', () => {
    const error = transitionIllegal('words', { kind: 'killed', wait: WAIT }, { kind: 'activate' });
    expect(error).toMatchObject({
      code: 'TRANSITION_ILLEGAL',
      message: 'topology "words" is KILLED: there is no activate for it now',
      details: { expected: 'one of: kill' },
    });
  });
});

describe('a stored wait', () => {
  it('ends after its time, over restarts too', () => {
    expect(remainingMs(WAIT, { ...NOW, wallMs: NOW.wallMs + 5000, bootMs: NOW.bootMs + 5000 })).toBe(2000);
    expect(remainingMs(WAIT, { ...NOW, wallMs: NOW.wallMs + 50_000, bootMs: NOW.bootMs + 50_000 })).toBe(0);
  });

  it('takes no notice of the wall clock while the machine is not rebooted', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -1e12, max: 1e12 }),
        fc.integer({ min: 0, max: 7000 }),
        (jumpMs, passedMs) => {
          const now = { ...NOW, wallMs: NOW.wallMs + jumpMs, bootMs: NOW.bootMs + passedMs };
          expect(remainingMs(WAIT, now)).toBe(7000 - passedMs);
        },
      ),
      { seed: 1 },
    );
  });

  it('is taken from the wall clock after a reboot, and never becomes longer', () => {
    const rebooted = { boot: 'b2', bootMs: 10 };
    expect(remainingMs(WAIT, { ...rebooted, wallMs: NOW.wallMs + 6000 })).toBe(1000);
    expect(remainingMs(WAIT, { ...rebooted, wallMs: NOW.wallMs - 3_600_000 })).toBe(7000);
    const unnamed = { since: { ...NOW, boot: '' }, waitMs: 7000 };
    expect(remainingMs(unnamed, { wallMs: NOW.wallMs + 6000, boot: '', bootMs: 1e9 })).toBe(1000);
  });
});
