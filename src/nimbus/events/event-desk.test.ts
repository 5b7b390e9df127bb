import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WorkerEvent } from '../../coordination/index.js';
import { NimbusHarness, until } from '../testing/nimbus-harness.js';

let harness: NimbusHarness;

beforeEach(async () => {
  harness = await NimbusHarness.create();
});

afterEach(async () => {
  await harness.close();
});

const LIVE = { executors: {}, resources: {}, waitMs: null, fromScratch: false, preview: false };

async function told(name: string | null = 'words'): Promise<readonly string[]> {
  const { events } = await harness.nimbus.events({ name, sinceMs: null, after: null });
  return events.map(({ kind, message }) => `${kind}: ${message}`);
}

async function kinds(name: string | null = 'words'): Promise<readonly string[]> {
  return (await told(name)).map((text) => text.split(':')[0]!);
}

describe('what has happened', () => {
  it('is told of a whole life: asked, placed, rebalanced with its moves, killed, removed', async () => {
    await harness.announce('s1', [1, 2, 3]);
    const id = await harness.submit('words', 1);
    await harness.carryOut(id, ['s1']);
    const tick = (): void => harness.clock.advance(1000);
    tick();
    await harness.nimbus.deactivate('words');
    tick();
    await harness.nimbus.activate('words');
    tick();
    await harness.nimbus.rebalance('words', { ...LIVE, workers: 2, executors: { count: 2 } });
    await harness.carryOut(id, ['s1']);
    tick();
    await harness.nimbus.kill('words', 60_000);
    expect(await told()).toEqual([
      `submitted: submitted as ${id}`,
      expect.stringMatching(/^placed: \d+ tasks: on s1:1$/),
      'deactivated: its spouts read no more',
      'activated: its spouts read again',
      expect.stringMatching(/^(rebalanced: rebalance 1: 2 workers, executors count=2|move.*)$/),
      expect.stringMatching(/^(rebalanced|moved|move-done): /),
      expect.stringMatching(/^(rebalanced|moved|move-done): /),
      'killed: killed, to be removed after 60 s',
    ]);
    expect(await told()).toContainEqual(
      expect.stringMatching(/^moved: \d+ tasks? for rebalance 1: .*s1:1 → s1:2/),
    );
    expect((await harness.nimbus.describe('words')).events).toHaveLength(5);
    await harness.nimbus.kill('words', 0);
    harness.clock.advance(10);
    await harness.report('s1', []);
    await until('the removal', async () => (await harness.record(id)) === undefined);
    expect((await kinds()).at(-1)).toBe('removed');
    await expect(told('nobody')).rejects.toMatchObject({ code: 'TOPOLOGY_NOT_ALIVE' });
  });

  it('is made up for where Nimbus ended before it was noted, and told once', async () => {
    await harness.announce('s1', [1]);
    await harness.submit('words', 1);
    await until('a place', async () => (await kinds()).includes('placed'));
    await harness.nimbus.close();
    const record = (await harness.record((await harness.outside.listTopologyIds())[0]!))!;
    await harness.outside.updateTopology(
      { ...record, phase: { kind: 'inactive' }, phaseSinceMs: record.submittedMs + 5 },
      (await harness.outside.readTopology(record.id))!.version,
    );
    await harness.restartNimbus();
    expect([...(await kinds())].sort()).toEqual(['deactivated', 'placed', 'submitted']);
  });

  it('names the machine that is gone, what it had, where that went, and its return', async () => {
    await harness.announce('s1', [1]);
    const lost = await harness.connect();
    await lost.announceSupervisor({
      ...{ id: 's2', host: 'h2', rack: 'r', ports: [1], cores: 2, memoryBytes: 1, owner: 'o', startedMs: 5 },
    });
    const id = await harness.submit('words', 2);
    await harness.carryOut(id, ['s1', 's2']);
    await lost.withdrawSupervisor('s2');
    await lost.close();
    await until('the loss', async () => {
      harness.clock.advance(500);
      return (await kinds()).includes('moved');
    });
    expect(await told(null)).toContain('machine-gone: neither supervisor nor workers answer; it had words');
    expect((await told()).at(-1)).toMatch(/^moved: \d+ tasks? as s2 is gone: .*s2:1 → s1:1/);
    await harness.announce('s2', [1]);
    await until('the return', async () => {
      harness.clock.advance(500);
      return (await kinds(null)).includes('machine-returned');
    });
  });

  it('has what supervisors tell of workers, which they hear once it is on disk', async () => {
    await harness.announce('s1', [1]);
    const id = await harness.submit('words', 1);
    await harness.carryOut(id, ['s1']);
    const event: WorkerEvent = {
      ...{ number: 7, kind: 'worker-died', topologyId: id, port: 1, code: 'WORKER_LOST', detail: '' },
      ...{ reason: 'was ended by SIGKILL', count: 1, firstMs: 1, lastMs: 1 },
    };
    const heartbeat = (await harness.outside.readHeartbeat('s1'))!;
    await harness.outside.publishHeartbeat({ ...heartbeat, sequence: 1000, events: [event] });
    await until('the acknowledgement', async () =>
      (await harness.outside.readAcknowledged('s1')).includes('event 7'),
    );
    expect(await told()).toContain('worker-died: was ended by SIGKILL');
    await harness.restartNimbus();
    expect((await kinds()).filter((kind) => kind === 'worker-died')).toHaveLength(1);
  });

  it('says what could not be placed and since when', async () => {
    await harness.submit('words', 1);
    await until('the lack', async () => (await kinds()).includes('not-placed'));
    const { topologies } = await harness.nimbus.list();
    expect(topologies[0]?.problem).toMatchObject({ code: 'NO_FREE_SLOT', atMs: harness.clock.wallMs() });
  });
});
