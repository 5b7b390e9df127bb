import { describe, expect, it } from 'vitest';
import { EndpointTable, parsePeerMessage } from './endpoints.js';

describe('EndpointTable', () => {
  it('never gives an id twice and tells when a thread was lost', () => {
    const table = new EndpointTable();
    expect(table.replace(-1, [{ index: 0, generation: 1, started: [[1, 2]] }])).toBe(false);
    expect(table.replace(0, [{ index: 0, generation: 2, started: [[3, 3]] }])).toBe(false);
    const before = table.find(0, 0, 2)!.id;
    expect(table.replace(0, [{ index: 0, generation: 5, started: [[3, 3]] }])).toBe(true);
    const after = table.find(0, 0, 5)!.id;
    expect(after).not.toBe(before);
    expect(table.find(0, 0, 2)).toBeUndefined();
    expect([...table.endpointOfTask(4)]).toEqual([
      -1,
      table.find(-1, 0, 1)!.id,
      table.find(-1, 0, 1)!.id,
      after,
      -1,
    ]);
  });

  it('keeps the id of a thread that only starts more executors', () => {
    const table = new EndpointTable();
    table.replace(-1, [{ index: 0, generation: 1, started: [] }]);
    const { id } = table.find(-1, 0, 1)!;
    expect(table.replace(-1, [{ index: 0, generation: 1, started: [[1, 1]] }])).toBe(false);
    expect(table.find(-1, 0, 1)!.id).toBe(id);
    expect([...table.endpointOfTask(1)]).toEqual([-1, id]);
  });

  it('takes the end of a thread that had said that it leaves for no loss', () => {
    const table = new EndpointTable();
    table.replace(0, [{ index: 0, generation: 1, started: [] }]);
    table.replace(0, [{ index: 0, generation: 1, started: [], isLeaving: true }]);
    expect(table.replace(0, [])).toBe(false);
  });

  it('holds tasks that leave a worker until another one has them, and sends to the new place first', () => {
    const table = new EndpointTable();
    const old = { index: 0, generation: 1, started: [[1, 2]] as [number, number][] };
    table.replace(-1, [old], [{ task: 2, id: 9 }]);
    const at = (): number[] => [...table.endpointOfTask(2)];
    const [own] = table.all();
    expect(at()).toEqual([-1, own!.id, own!.id]);
    expect(table.held(table.endpointOfTask(2))).toEqual([{ task: 2, id: 9 }]);
    table.replace(-1, [{ ...old, started: [[1, 1]] }], [{ task: 2, id: 9 }]);
    expect(table.held(table.endpointOfTask(2))).toEqual([{ task: 2, id: 9 }]);
    table.replace(-1, [old], [{ task: 2, id: 9 }]);
    table.replace(0, [{ index: 0, generation: 5, started: [[2, 2]] }]);
    const there = table.find(0, 0, 5)!.id;
    expect(at()).toEqual([-1, own!.id, there]);
    expect(table.held(table.endpointOfTask(2))).toEqual([]);
  });

  it('knows no tasks beyond the last, whatever a peer says that it has or gives up', () => {
    const table = new EndpointTable();
    const most = Number.MAX_SAFE_INTEGER;
    const cuts = [
      { task: 2, id: 1 },
      { task: most, id: 2 },
    ];
    table.replace(0, [{ index: 0, generation: 1, started: [[1, most]] }], cuts);
    const { id } = table.find(0, 0, 1)!;
    expect([...table.endpointOfTask(2)]).toEqual([-1, id, id]);
    expect(table.held(table.endpointOfTask(2))).toEqual([cuts[0]]);
  });

  it('leaves the threads of other workers alone', () => {
    const table = new EndpointTable();
    table.replace(0, [{ index: 0, generation: 1, started: [] }]);
    table.replace(1, [{ index: 0, generation: 1, started: [] }]);
    expect(table.replace(0, [])).toBe(true);
    expect(table.all().map(({ peer }) => peer)).toEqual([1]);
  });
});

function manyThreads(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({ index, generation: 1, started: [] }));
}

describe('what a peer says', () => {
  it('is read', () => {
    for (const message of [
      {
        kind: 'threads',
        number: 4,
        threads: [{ index: 0, generation: 3, started: [[1, 2]] }],
        cuts: [{ task: 2, id: 7 }],
      },
      {
        kind: 'threads',
        number: 1,
        threads: [{ index: 0, generation: 3, started: [], isLeaving: true }],
        cuts: [],
      },
      { kind: 'seen', number: 4 },
      { kind: 'loss' },
      { kind: 'loss', isCut: true },
      { kind: 'ask-quiet' },
      { kind: 'quiet', quietMs: 17, calmMs: 18 },
    ]) {
      expect(parsePeerMessage(message)).toEqual(message);
    }
  });

  it.each([
    null,
    undefined,
    5,
    'loss',
    {},
    { kind: 'toString' },
    Object.create({ kind: 'loss', toString: null }) as unknown,
    { kind: 'quiet' },
    { kind: 'quiet', quietMs: '1', calmMs: 1 },
    { kind: 'quiet', quietMs: 1 },
    { kind: 'threads' },
    { kind: 'threads', number: 1, threads: [] },
    { kind: 'threads', number: 1, threads: [], cuts: [{ task: 1 }] },
    { kind: 'threads', threads: [], cuts: [] },
    { kind: 'seen' },
    { kind: 'threads', number: 1, cuts: [], threads: [null] },
    { kind: 'threads', number: 1, cuts: [], threads: [{ index: -1, generation: 1, started: [] }] },
    { kind: 'threads', number: 1, cuts: [], threads: [{ index: 0, generation: 0.5, started: [] }] },
    { kind: 'threads', number: 1, cuts: [], threads: [{ index: 0, generation: 1, started: [[-5, 1e9]] }] },
    { kind: 'threads', number: 1, cuts: [], threads: [{ index: 0, generation: 1, started: [[2, 1]] }] },
    { kind: 'threads', number: 1, cuts: [], threads: [{ index: 0, generation: 1, started: [[1, 2, 3]] }] },
    { kind: 'threads', number: 1, cuts: [], threads: manyThreads(4097) },
    { kind: 'threads', number: 1, cuts: [], threads: [...manyThreads(2), ...manyThreads(1)] },
  ])('is refused when it is no message (%#)', (value) => {
    expect(() => parsePeerMessage(structuredClone(value))).toThrow(
      expect.objectContaining({ code: 'PEER_PROTOCOL_ERROR' }),
    );
  });
});
