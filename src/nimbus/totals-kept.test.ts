/**
 * What workers have counted is in Nimbus's totals, whatever is overwritten before it is read and whoever dies in between:
 * supervisors' last reports, the folded heartbeats, Nimbus's book and the acknowledgements, interleaved at random.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings, silentLogger } from '../base/index.js';
import {
  LAST_REPORT_FILE,
  type FoldedHeartbeat,
  type TopologyRecord,
  type WorkerHeartbeat,
} from '../coordination/index.js';
import { LastReports } from '../supervisor/last-reports.js';
import type { BlobStore } from './blob-store.js';
import { HeartbeatView } from './heartbeat-view.js';
import { KnownTopology } from './known-topology.js';
import { LastReportDesk } from './last-reports.js';

const SUPERVISORS = ['s1', 's2'];
const SLOTS = [
  { supervisor: 's1', port: 1 },
  { supervisor: 's1', port: 2 },
  { supervisor: 's2', port: 1 },
];
const RECORD: TopologyRecord = {
  id: 't',
  name: 't',
  submittedMs: 0,
  codeHash: '',
  descriptionHash: '',
  settings: {},
  secret: '',
  phase: { kind: 'active' },
};

const slotAction = fc.record({
  kind: fc.constantFrom('count', 'beat', 'end', 'kill', 'start'),
  slot: fc.nat(SLOTS.length - 1),
});
const supervisorAction = fc.record({
  kind: fc.constantFrom('publish', 'publish', 'hear', 'restart'),
  supervisor: fc.constantFrom(...SUPERVISORS),
});
const nimbusAction = fc.record({
  kind: fc.constantFrom(
    'read',
    'read',
    'save',
    'save-fails',
    'acknowledge',
    'nimbus-dies',
    'coordinator-dies',
  ),
});
type Action =
  | { kind: 'count' | 'beat' | 'end' | 'kill' | 'start'; slot: number }
  | { kind: 'publish' | 'hear' | 'restart'; supervisor: string }
  | {
      kind: 'read' | 'save' | 'save-fails' | 'acknowledge' | 'nimbus-dies' | 'coordinator-dies';
    };

interface Worker {
  readonly workerId: string;
  readonly generation: number;
  readonly launchFile: string;
  acked: number;
  sequence: number;
}

class Cluster {
  readonly root = mkdtempSync(join(tmpdir(), 'isobar-totals-'));
  readonly #workers: (Worker | undefined)[] = SLOTS.map(() => undefined);
  /** What supervisors have heard, by slot. */
  readonly #heard: (WorkerHeartbeat | null)[] = SLOTS.map(() => null);
  readonly #lastReports = new Map(SUPERVISORS.map((id) => [id, this.#open(id)]));
  readonly #nodes = new Map<string, FoldedHeartbeat>();
  readonly #acknowledged = new Map<string, readonly string[]>();
  #stored: unknown;
  #canWrite = true;
  #generation = 0;
  #sequence = 0;
  /** Of workers that have ended. */
  #counted = 0;
  #view = new HeartbeatView(this.#coordination());
  #known = new KnownTopology({ value: RECORD, version: 0 });
  readonly #desk = new LastReportDesk(this.#coordination());

  async open(): Promise<void> {
    await this.#known.load(this.#blobs(), compileSettings());
  }

  async do(action: Action): Promise<void> {
    switch (action.kind) {
      case 'start': {
        if (this.#workers[action.slot] !== undefined) return;
        const generation = ++this.#generation;
        const directory = join(this.root, `worker-${action.slot}`);
        mkdirSync(directory, { recursive: true });
        const launchFile = join(directory, `launch-${generation}.json`);
        this.#workers[action.slot] = {
          workerId: `t-g${generation}`,
          generation,
          launchFile,
          acked: 0,
          sequence: 0,
        };
        return;
      }
      case 'count': {
        const worker = this.#workers[action.slot];
        if (worker !== undefined) worker.acked += 1 + (worker.generation % 7);
        return;
      }
      case 'beat':
        this.#beat(action.slot);
        return;
      case 'end': {
        const worker = this.#workers[action.slot];
        if (worker === undefined) return;
        // What it sends may be lost with its connection, what it writes is not.
        const report = this.#report(action.slot, worker);
        writeFileSync(join(this.root, `worker-${action.slot}`, LAST_REPORT_FILE), JSON.stringify(report));
        this.#ended(action.slot, worker, worker.acked);
        return;
      }
      case 'kill': {
        const worker = this.#workers[action.slot];
        if (worker === undefined) return;
        // What a killed worker has not said by then nobody can know.
        const acked = this.#heard[action.slot]?.tasks[0]?.acked ?? this.#beat(action.slot);
        this.#ended(action.slot, worker, acked);
        return;
      }
      case 'publish':
        this.#nodes.set(action.supervisor, this.#folded(action.supervisor));
        this.#view.markStale([action.supervisor]);
        return;
      case 'hear':
        this.#lastReports.get(action.supervisor)!.forget(this.#acknowledged.get(action.supervisor) ?? []);
        return;
      case 'restart':
        this.#lastReports.set(action.supervisor, this.#open(action.supervisor));
        SLOTS.forEach(({ supervisor }, slot) => {
          if (supervisor === action.supervisor) this.#heard[slot] = null;
        });
        return;
      case 'read':
        return this.#read();
      case 'save':
        await this.#known.saveTotals(this.#blobs());
        return;
      case 'save-fails':
        this.#canWrite = false;
        await this.#known.saveTotals(this.#blobs()).catch(() => undefined);
        this.#canWrite = true;
        return;
      case 'acknowledge':
        return this.#desk.acknowledge(this.#view.all, () => this.#known, { keeps: () => false });
      case 'nimbus-dies':
        this.#view = new HeartbeatView(this.#coordination());
        this.#known = new KnownTopology({ value: RECORD, version: 0 });
        this.#desk.reset();
        return this.open();
      case 'coordinator-dies':
        this.#nodes.clear();
        this.#acknowledged.clear();
        this.#view.markStale();
        this.#desk.reset();
        return;
    }
  }

  /** Everybody says what there is to say, and it is read. Resolves to what Nimbus then counts, and to what is true. */
  async settle(): Promise<{ readonly told: number; readonly counted: number }> {
    SLOTS.forEach((_, slot) => this.#beat(slot));
    for (const supervisor of SUPERVISORS) await this.do({ kind: 'publish', supervisor });
    await this.#read();
    const live = this.#workers.reduce((sum, worker) => sum + (worker?.acked ?? 0), 0);
    const told = this.#known.facts().totals.components()[0]?.acked ?? 0;
    return { told, counted: this.#counted + live };
  }

  /** How many last reports are still said again and again. */
  get unforgotten(): number {
    return [...this.#lastReports.values()].reduce((sum, reports) => sum + reports.all.length, 0);
  }

  #open(supervisor: string): LastReports {
    const reports = new LastReports(join(this.root, supervisor), silentLogger);
    reports.open();
    return reports;
  }

  #beat(slot: number): number {
    const worker = this.#workers[slot];
    if (worker === undefined) return 0;
    this.#heard[slot] = this.#report(slot, worker);
    return worker.acked;
  }

  #ended(slot: number, worker: Worker, acked: number): void {
    this.#lastReports
      .get(SLOTS[slot]!.supervisor)!
      .keep(worker.workerId, worker.launchFile, this.#heard[slot] ?? null);
    this.#counted += acked;
    this.#workers[slot] = undefined;
    this.#heard[slot] = null;
  }

  #report(slot: number, worker: Worker): WorkerHeartbeat {
    const { supervisor, port } = SLOTS[slot]!;
    const { workerId, generation, acked } = worker;
    return {
      workerId,
      topologyId: 't',
      supervisorId: supervisor,
      port,
      generation,
      pid: 1,
      startedMs: generation,
      assignmentVersion: 1,
      ready: true,
      sequence: ++worker.sequence,
      cpuMicros: 0,
      rssBytes: 0,
      threads: [],
      tasks: [
        {
          task: 1,
          component: 'c',
          emitted: 0,
          transferred: 0,
          executed: 0,
          acked,
          failed: 0,
          replayed: 0,
          deadLetters: 0,
          unreplayable: 0,
          queued: 0,
          pending: 0,
          ended: false,
          stopped: false,
          generation,
        },
      ],
      components: [],
      errors: [],
      lostStates: [],
      oldestPending: null,
      deadLetterFiles: [],
    };
  }

  #folded(supervisorId: string): FoldedHeartbeat {
    return {
      supervisorId,
      pid: 1,
      sequence: ++this.#sequence,
      slots: SLOTS.flatMap(({ supervisor, port }, slot) => {
        if (supervisor !== supervisorId) return [];
        const workerId = this.#workers[slot]?.workerId ?? null;
        return [
          {
            port,
            state: workerId === null ? 'empty' : 'running',
            topologyId: workerId === null ? null : 't',
            workerId,
            pid: null,
            restarts: 0,
            lastProblem: null,
            heartbeat: this.#heard[slot] ?? null,
            heartbeatMs: null,
          },
        ];
      }),
      lastReports: this.#lastReports.get(supervisorId)!.all,
    };
  }

  async #read(): Promise<void> {
    await this.#view.refresh();
    this.#known.noteReports(this.#view.reportsOf('t'));
  }

  #coordination(): ConstructorParameters<typeof HeartbeatView>[0] &
    ConstructorParameters<typeof LastReportDesk>[0] {
    return {
      listHeartbeats: async () => [...this.#nodes.values()],
      readHeartbeat: async (id) => this.#nodes.get(id),
      acknowledgeReports: async (supervisor, workerIds) => {
        this.#acknowledged.set(supervisor, workerIds);
      },
      readTopology: async () => ({ value: RECORD, version: 0 }),
    };
  }

  #blobs(): BlobStore {
    const unused = async (): Promise<never> => {
      throw new Error('not used here');
    };
    return {
      put: unused,
      read: unused,
      blobPath: () => '',
      has: unused,
      remove: unused,
      putSourceMap: unused,
      readSourceMap: unused,
      putState: unused,
      fetchState: unused,
      removeStates: unused,
      removeDocument: unused,
      readDocument: async () => structuredClone(this.#stored),
      writeDocument: async (_name, value) => {
        if (!this.#canWrite) throw new Error('the disk is full');
        this.#stored = structuredClone(value);
      },
    };
  }
}

describe('totals', () => {
  it('are what workers counted, whatever the interleaving', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(slotAction, slotAction, supervisorAction, nimbusAction) as fc.Arbitrary<Action>, {
          minLength: 10,
          maxLength: 120,
        }),
        async (actions) => {
          const cluster = new Cluster();
          try {
            await cluster.open();
            for (const slot of SLOTS.keys()) await cluster.do({ kind: 'start', slot });
            for (const action of actions) await cluster.do(action);
            const { told, counted } = await cluster.settle();
            expect(told).toBe(counted);
            // Once they are kept, nobody says them any more.
            await cluster.do({ kind: 'save' });
            await cluster.do({ kind: 'acknowledge' });
            for (const supervisor of SUPERVISORS) await cluster.do({ kind: 'hear', supervisor });
            expect(cluster.unforgotten).toBe(0);
            await cluster.do({ kind: 'nimbus-dies' });
            expect(await cluster.settle()).toEqual({ told: counted, counted });
          } finally {
            rmSync(cluster.root, { recursive: true, force: true });
          }
        },
      ),
      { seed: 20, numRuns: 40 },
    );
  }, 240_000);
});
