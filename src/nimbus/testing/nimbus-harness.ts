/**
 * A Nimbus over an embedded coordinator, with a clock that tests move and supervisors that they play: whatever a worker would
 * report is written by hand.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Clock,
  compileSettings,
  processIdentity,
  type RawSettings,
  type Settings,
  silentLogger,
  systemClock,
  VirtualClock,
} from '../../base/index.js';
import {
  connectCoordination,
  type Coordination,
  type EmbeddedCoordinator,
  openEmbeddedCoordinator,
  type SlotReport,
  type TaskReport,
  type TopologyRecord,
} from '../../coordination/index.js';
import type { Assignment, SlotAssignment } from '../../scheduling/index.js';
import { type BlobStore, createBlobStore } from '../blob-store.js';
import { EventJournal } from '../events/event-journal.js';
import { isSettled } from '../moves/advance-move.js';
import { type Nimbus, startNimbus } from '../nimbus.js';

export const HARNESS_SETTINGS: RawSettings = {
  'nimbus.round-interval': 1000,
  'topology.worker-timeout': 5000,
  'topology.worker-launch-timeout': 20_000,
  // Tests of other things place at once.
  'slot.request.max-interval': 0,
  'slot.wait-timeout': 0,
};

const STREAM = { name: 'default', fields: [{ name: 'word', kind: 'string', nullable: false }] };

/** A topology of a spout `lines` and a bolt `count`, with `tasks` tasks and as many executors each. */
export function described(name: string, tasks = 2): unknown {
  const shared = {
    parallelism: tasks,
    tasks: null,
    streams: [STREAM],
    stateful: false,
    movable: false,
    tickMs: null,
    manual: false,
    unordered: false,
  };
  const subscription = {
    input: 'default',
    source: 'lines',
    stream: 'default',
    grouping: { kind: 'shuffle' },
  };
  return {
    format: 1,
    name,
    settings: {},
    components: [
      { ...shared, id: 'lines', kind: 'spout', inputs: [], subscriptions: [] },
      {
        ...shared,
        id: 'count',
        kind: 'bolt',
        inputs: [{ name: 'default', fields: STREAM.fields }],
        subscriptions: [subscription],
      },
    ],
    warnings: [],
  };
}

export class NimbusHarness {
  readonly clock = new VirtualClock();
  readonly blobStore: BlobStore;
  /** Of the supervisors that the tests play. */
  readonly outside: Coordination;
  nimbus: Nimbus;
  readonly #root: string;
  readonly #coordinator: EmbeddedCoordinator;
  readonly #settings: RawSettings;
  #coordination: Coordination;
  #sequence = 0;

  private constructor(parts: {
    root: string;
    coordinator: EmbeddedCoordinator;
    outside: Coordination;
    own: Coordination;
    settings: RawSettings;
  }) {
    this.#root = parts.root;
    this.#coordinator = parts.coordinator;
    this.outside = parts.outside;
    this.#coordination = parts.own;
    this.#settings = parts.settings;
    this.blobStore = createBlobStore(join(parts.root, 'nimbus'));
    this.nimbus = undefined as unknown as Nimbus; // Set by `create` before anybody sees this.
  }

  static async create(settings: RawSettings = {}): Promise<NimbusHarness> {
    const root = mkdtempSync(join(tmpdir(), 'isobar-nimbus-'));
    const coordinator = await openEmbeddedCoordinator({
      directory: join(root, 'coordinator'),
      socketPath: join(root, 'c.sock'),
      clock: systemClock,
      logger: silentLogger,
      sessionTimeoutMs: 10_000,
    });
    const harness = new NimbusHarness({
      root,
      coordinator,
      outside: await connectTo(root),
      own: await connectTo(root),
      settings: { ...HARNESS_SETTINGS, ...settings },
    });
    harness.nimbus = await harness.startNimbus();
    return harness;
  }

  /** Nimbus's session with the coordinator. */
  get own(): Coordination {
    return this.#coordination;
  }

  get settings(): Settings {
    return compileSettings(this.#settings);
  }

  get documents(): string {
    return join(this.#root, 'nimbus', 'documents');
  }

  get blobs(): string {
    return join(this.#root, 'nimbus', 'blobs');
  }

  async close(): Promise<void> {
    await this.nimbus.close();
    await this.#coordination.close();
    await this.outside.close();
    await this.#coordinator.close();
    rmSync(this.#root, { recursive: true, force: true });
  }

  startNimbus(
    coordination: Coordination = this.#coordination,
    clock: Clock = this.clock,
    blobStore: BlobStore = this.blobStore,
  ): Promise<Nimbus> {
    return startNimbus({
      id: 'n1',
      coordination,
      blobStore,
      journal: this.openJournal(),
      settings: this.settings,
      clock,
      logger: silentLogger,
      randomBytes,
    });
  }

  openJournal(): EventJournal {
    return new EventJournal(join(this.#root, 'nimbus', 'events.jsonl'), silentLogger);
  }

  /** As after `kill -9` and a new start: another process with another session. */
  async restartNimbus(wrap: (coordination: Coordination) => Coordination = (same) => same): Promise<void> {
    await this.nimbus.close();
    await this.#coordination.close();
    this.#coordination = await connectTo(this.#root);
    this.nimbus = await this.startNimbus(wrap(this.#coordination));
  }

  async submit(
    name = 'words',
    workers = 2,
    more: { readonly tasks?: number; readonly code?: string; readonly settings?: RawSettings } = {},
  ): Promise<string> {
    const { topologyId } = await this.nimbus.submit({
      description: described(name, more.tasks),
      code: more.code ?? `// ${name}`,
      sourceMap: '{}',
      settings: { 'topology.workers': workers, ...more.settings },
    });
    return topologyId;
  }

  announce(id: string, ports: readonly number[]): Promise<void> {
    return this.outside.announceSupervisor({
      id,
      host: `host-${id}`,
      rack: 'r',
      ports,
      cores: 2,
      memoryBytes: 1,
      owner: 'o',
      startedMs: 0,
    });
  }

  async record(id: string): Promise<TopologyRecord | undefined> {
    return (await this.outside.readTopology(id))?.value;
  }

  assigned(id: string, isRight: (assignment: Assignment) => boolean): Promise<Assignment> {
    return until('an assignment', async () => {
      const assignment = await this.outside.readAssignment(id);
      return assignment !== undefined && isRight(assignment) && assignment;
    });
  }

  /** Publishes, for one supervisor, what ready workers of these assignments would report; nothing: empty slots. */
  async report(
    supervisor: string,
    assignments: readonly Assignment[],
    parts: (component: string) => Partial<TaskReport> = () => ({}),
    life: WorkerLife = FIRST_LIFE,
  ): Promise<void> {
    this.#sequence++;
    const slots = assignments.flatMap((assignment) =>
      assignment.slots
        .filter((slot) => slot.supervisor === supervisor)
        .map((slot) => slotReport(assignment, slot, this.#sequence, this.clock.wallMs(), parts, life)),
    );
    await this.outside.publishHeartbeat({
      supervisorId: supervisor,
      pid: 1,
      sequence: this.#sequence,
      slots,
      lastReports: [],
    });
  }

  /** A further session with the coordinator, to be closed by whoever asked. */
  connect(): Promise<Coordination> {
    return connectTo(this.#root);
  }

  /** The number of the next heartbeat. */
  nextSequence(): number {
    return ++this.#sequence;
  }

  /** Plays supervisors and workers that do what they are told until nothing is under way; resolves to the placement then. */
  async carryOut(id: string, supervisors: readonly string[]): Promise<Assignment> {
    return until('the end of all moves', async () => {
      const assignment = await this.outside.readAssignment(id);
      if (assignment === undefined) return undefined;
      for (const supervisor of supervisors) await this.report(supervisor, [assignment]);
      await this.settle();
      const after = await this.outside.readAssignment(id);
      const isOver = isSettled(assignment) && assignment.slots.every(({ executors }) => executors.length > 0);
      return isOver && after?.version === assignment.version && assignment;
    });
  }

  /** Whatever is under way is over: steps have passed that saw everything. */
  async settle(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      await this.nimbus.list();
      await this.outside.listTopologyIds();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

function connectTo(root: string): Promise<Coordination> {
  return connectCoordination({
    address: join(root, 'c.sock'),
    process: processIdentity(process.pid) ?? { pid: process.pid, startTime: '' },
    clock: systemClock,
    logger: silentLogger,
    settings: { 'coordinator.session-timeout': 10_000 },
  });
}

export async function until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const endMs = performance.now() + 15_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Which of the workers that a slot had one after the other. */
export interface WorkerLife {
  readonly suffix: string;
  readonly generation: number;
  /** Unless it says otherwise, it is. */
  readonly isReady?: boolean;
}

const FIRST_LIFE: WorkerLife = { suffix: '', generation: 1 };

function slotReport(
  assignment: Assignment,
  { supervisor, port, executors }: SlotAssignment,
  sequence: number,
  heartbeatMs: number,
  parts: (component: string) => Partial<TaskReport>,
  { suffix, generation, isReady = true }: WorkerLife,
): SlotReport {
  const { topologyId } = assignment;
  const workerId = `${topologyId}-${supervisor}-${port}${suffix}`;
  return {
    port,
    state: 'running',
    topologyId,
    workerId,
    pid: 1,
    restarts: 0,
    lastProblem: null,
    heartbeatMs,
    heartbeat: {
      workerId,
      topologyId,
      supervisorId: supervisor,
      port,
      generation,
      pid: 1,
      startedMs: 0,
      assignmentVersion: assignment.version,
      ready: isReady,
      sequence,
      cpuMicros: 0,
      rssBytes: 0,
      threads: [
        {
          index: 0,
          generation: 1,
          state: 'idle',
          component: null,
          task: null,
          inCallMs: 0,
          longCalls: [],
          lagMs: 0,
          executors,
          restarts: 0,
        },
      ],
      tasks: executors.flatMap(([first, last]) => taskReports(assignment, first, last, parts)),
      components: [],
      errors: [],
      lostStates: [],
      oldestPending: null,
      deadLetterFiles: [],
      isIdle: executors.length === 0,
    },
  };
}

function taskReports(
  assignment: Assignment,
  first: number,
  last: number,
  parts: (component: string) => Partial<TaskReport>,
): TaskReport[] {
  const component = assignment.tasks.find((one) => one.first <= first && first <= one.last)?.component ?? '';
  if (component.startsWith('__')) return [];
  return Array.from({ length: last - first + 1 }, (_, index): TaskReport => {
    const zero = { emitted: 0, transferred: 0, executed: 0, acked: 0, failed: 0, replayed: 0 };
    return {
      task: first + index,
      component,
      ...zero,
      deadLetters: 0,
      unreplayable: 0,
      queued: 0,
      pending: 0,
      ended: false,
      stopped: false,
      movable: true,
      generation: 1,
      ...parts(component),
    };
  });
}
