import { describe, expect, it } from 'vitest';
import { toIsobarError } from '../../base/index.js';
import { checkStrategies, type PlanFlags, readPlanFlags } from './plan-options.js';

function refusal(flags: PlanFlags): string {
  try {
    readPlanFlags(flags);
  } catch (error) {
    const { code, message, details } = toIsobarError(error);
    return `${code}: ${message}; expected ${details.expected ?? ''}`;
  }
  return 'accepted';
}

describe('readPlanFlags', () => {
  it('reads machines to add, workers that fall silent, and settings of all and of one topology', () => {
    const request = readPlanFlags({
      addSupervisor: ['rack=r1,slots=4,count=2,cpu=400,memory=8000', 'name=x'],
      killWorker: ['fe80::1:6700'],
      set: ['topology.workers=2', 'words:load-balance.mode=slots'],
    });
    expect(request.added).toEqual([
      { rack: 'r1', slots: 4, count: 2, cpuPercent: 400, memoryMb: 8000 },
      { id: 'x', slots: 4, count: 1 },
    ]);
    expect(request.killed).toEqual([{ machine: 'fe80::1', port: 6700 }]);
    expect(request.settings.all).toEqual({ 'topology.workers': '2' });
    expect([...request.settings.byTopology]).toEqual([['words', { 'load-balance.mode': 'slots' }]]);
  });

  it.each<[PlanFlags, string]>([
    [{ compare: 'balanced' }, 'at least two strategies'],
    [{ compare: 'balanced,even', explain: 't/a' }, 'one of them'],
    [{ addSupervisor: ['slot=4'] }, 'did you mean "slots"?'],
    [{ addSupervisor: ['slots=0'] }, 'a whole number from 1 to 10000'],
    [{ addSupervisor: ['slots=4,slots=5'] }, 'each key once'],
    [{ addSupervisor: ['r1'] }, 'key=value'],
    [{ killWorker: ['m1'] }, 'HOST:PORT'],
    [{ killWorker: ['m1:99999'] }, 'a whole number from 1 to 65535'],
    [{ rounds: '0' }, 'a whole number from 1 to 1000'],
    [{ set: ['scheduling.strategy=even'] }, '--strategy NAME'],
  ])('refuses %j and says what is expected', (flags, expected) => {
    expect(refusal(flags)).toContain(expected);
    expect(refusal(flags)).toMatch(/^USAGE: /);
  });

  it.each([
    [{ strategy: 'balance', compared: [] }, 'did you mean "balanced"?'],
    [{ strategy: undefined, compared: ['balanced', 'evne'] }, 'did you mean "even"?'],
    [{ strategy: 'mines', compared: [] }, 'did you mean "mine"?'],
  ])('refuses the strategies of %j, knowing those that are installed', (request, expected) => {
    expect(() => checkStrategies(request, ['mine'])).toThrow(
      expect.objectContaining({ code: 'USAGE', details: expect.objectContaining({ expected }) as object }),
    );
    expect(() => checkStrategies({ strategy: 'mine', compared: ['even'] }, ['mine'])).not.toThrow();
  });
});
