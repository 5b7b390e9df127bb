/**
 * The workers' side of a supervisor: the control socket that they say hello on, ask for generations and positions, and
 * report to. The protocol is described in coordination/worker-link.ts.
 */
import {
  type Channel,
  type ChannelHandlers,
  type ChannelServer,
  type ErrorRecord,
  IsobarError,
  type Logger,
  serveChannels,
  isSameProcessAlive,
} from '../base/index.js';
import {
  areHandovers,
  arePositions,
  type Coordination,
  isStateCopy,
  isStateFile,
  isSlotSearch,
  isSlotTap,
  isWorkerHeartbeat,
  type StateFile,
  type SlotSearch,
  type SlotTap,
  type WorkerHello,
  type WorkerWelcome,
} from '../coordination/index.js';
import type { AssignmentView } from './assignment-view.js';
import type { HandoverKeeper } from './handover-keeper.js';
import { decisionKey } from './heartbeat-publisher.js';
import { judgeHello } from './hello.js';
import { isProcessIdentity } from './launch-records.js';
import type { Blobs } from './localiser.js';
import type { PositionFold } from './position-fold.js';
import type { Slot } from './slot.js';
import type { SlotWorker, WorkerTuning } from './slot-plan.js';

/** For what only a worker knows; it is asked about once a second at most. */
const WORKER_TIMEOUT_MS = 2000;

export interface WorkerServerOptions {
  readonly socketPath: string;
  readonly slots: ReadonlyMap<number, Slot>;
  readonly view: AssignmentView;
  readonly coordination: Coordination;
  readonly positions: PositionFold;
  readonly handovers: HandoverKeeper;
  readonly blobs: Blobs;
  readonly logger: Logger;
  /** Tuning of a topology that has a slot here. */
  tuningOf(topologyId: string): WorkerTuning;
  /** A worker that no record told of has been taken over: write one. */
  onAdopted(worker: SlotWorker, port: number): void;
  /** A heartbeat came; `isUrgent` if a decision may wait for what it says. */
  onHeartbeat(isUrgent: boolean): void;
}

export function serveWorkers(options: WorkerServerOptions): Promise<ChannelServer> {
  const startConversation = (): ChannelHandlers => {
    const conversation = new Conversation(options);
    return {
      onRequest: (method, body, channel) => conversation.onRequest(method, body, channel),
      onEvent: (name, body, channel) => conversation.onEvent(name, body, channel),
      onClose: (channel) => conversation.onClose(channel),
    };
  };
  return serveChannels(options.socketPath, startConversation, options.logger);
}

/** One connection: silent until its hello was accepted. */
class Conversation {
  readonly #options: WorkerServerOptions;
  #slot: Slot | undefined;
  #topologyId = '';
  #decisionKey = '';

  constructor(options: WorkerServerOptions) {
    this.#options = options;
  }

  async onRequest(method: string, body: unknown, channel: Channel): Promise<unknown> {
    if (method === 'hello') return this.#hello(parseHello(body), channel);
    if (method === 'tap' || method === 'find-row') return this.#passOn(method, body);
    if (this.#slot?.isAttached(channel) !== true) {
      throw new IsobarError('GENERATION_OUTDATED', `"${method}" came from a process that holds no slot here`);
    }
    const { coordination, positions } = this.#options;
    switch (method) {
      case 'next-generation':
        return coordination.nextGeneration(this.#topologyId);
      case 'read-positions':
        await positions.settled(this.#topologyId);
        return coordination.readPositions(this.#topologyId);
      case 'store-positions':
        if (!arePositions(body)) throw noSuch('positions', 'a list of task, generation and position');
        await positions.store(this.#topologyId, body);
        return null;
      case 'store-state':
        if (!isStateFile(body)) throw noSuch('state', 'a task, its move and a path');
        return this.#storeState(body);
      case 'fetch-state':
        if (!isStateCopy(body)) throw noSuch('state', 'a hash and a path');
        await this.#options.blobs.fetchState(this.#topologyId, body.hash, body.path);
        return null;
      case 'hand-over':
        if (!areHandovers(body)) throw noSuch('handovers', 'a list of task, move and step');
        await this.#options.handovers.record(this.#topologyId, body);
        return null;
      default:
        throw new IsobarError('INTERNAL', `a supervisor does not answer "${method}"`);
    }
  }

  onEvent(name: string, body: unknown, channel: Channel): void {
    const slot = this.#slot;
    if (slot?.isAttached(channel) !== true) return;
    switch (name) {
      case 'heartbeat': {
        // It goes on to everybody who decides: one that cannot be read must stop here.
        if (!isWorkerHeartbeat(body)) throw noSuch('heartbeat', 'the fields of a heartbeat');
        slot.heartbeat(body);
        const key = decisionKey(body);
        // The end of a drain is a matter of depths, which the key leaves out.
        const isDraining = this.#options.view.topology(this.#topologyId)?.record.phase.kind === 'draining';
        this.#options.onHeartbeat(isDraining || key !== this.#decisionKey);
        this.#decisionKey = key;
        break;
      }
      case 'unusable':
        slot.unusable(IsobarError.from(body as ErrorRecord));
        break;
      default:
        this.#options.logger.warn('worker.unknown-event', { name, port: slot.port });
    }
  }

  onClose(channel: Channel): void {
    this.#slot?.detach(channel);
  }

  async #storeState({ task, move, path }: StateFile): Promise<string> {
    const { blobs, handovers } = this.#options;
    const { hash, bytes } = await blobs.putState(this.#topologyId, path);
    handovers.noteStored(this.#topologyId, task, move, { kind: 'saved', hash, bytes });
    return hash;
  }

  /** Asked by a daemon: whoever reaches this socket is of the same user. */
  #passOn(method: 'tap' | 'find-row', body: unknown): Promise<unknown> {
    const isReadable = method === 'tap' ? isSlotTap(body) : isSlotSearch(body);
    if (!isReadable) throw new IsobarError('USAGE', `a "${method}" that cannot be read`);
    // Checked just now.
    const { topologyId, port } = body as SlotTap | SlotSearch;
    const slot = this.#options.slots.get(port);
    if (slot === undefined || slot.worker?.topologyId !== topologyId) {
      const where = `port ${port}`;
      throw new IsobarError('TOPOLOGY_NOT_ALIVE', `${topologyId} has no worker there`, { where });
    }
    if (!isSlotTap(body)) return slot.ask(method, body, WORKER_TIMEOUT_MS);
    return slot.ask(method, body.request, body.request.windowMs + WORKER_TIMEOUT_MS);
  }

  async #hello(hello: WorkerHello, channel: Channel): Promise<WorkerWelcome> {
    const { slots, view, handovers, logger } = this.#options;
    await Promise.all([view.known, handovers.known]);
    const slot = slots.get(hello.port);
    const assigned = view.topology(hello.topologyId);
    if (slot === undefined || assigned === undefined) throw refusal(hello, 'its topology has no slot here');
    const verdict = judgeHello(
      slot.state,
      view.desired(hello.port),
      hello,
      slot.newestGeneration(hello.topologyId),
    );
    if (verdict === 'refuse' || !isSameProcessAlive(hello.process)) {
      logger.warn('worker.refused', { worker: hello.workerId, port: hello.port, state: slot.state.kind });
      throw refusal(hello, `port ${hello.port} is ${slot.state.kind}`);
    }
    if (verdict === 'adopt') {
      const { workerId, topologyId, generation, process } = hello;
      const worker: SlotWorker = {
        workerId,
        topologyId,
        generation,
        process,
        tuning: this.#options.tuningOf(topologyId),
      };
      slot.adopt(worker);
      this.#options.onAdopted(worker, hello.port);
      logger.info('worker.adopted', { worker: workerId, port: hello.port, pid: process.pid });
    }
    if (channel.isClosed) throw new IsobarError('CONNECTION_LOST', 'the worker left before it was welcomed');
    const { assignment, record } = assigned;
    this.#slot = slot;
    this.#topologyId = hello.topologyId;
    const welcome = { assignment, phase: record.phase, handovers: handovers.of(hello.topologyId) };
    slot.attach(channel, welcome);
    return welcome;
  }
}

function refusal(hello: WorkerHello, reason: string): IsobarError {
  return new IsobarError(
    'GENERATION_OUTDATED',
    `worker ${hello.workerId} (generation ${hello.generation}) is not wanted any more: ${reason}`,
    { found: `generation ${hello.generation}`, where: `port ${hello.port}` },
  );
}

function noSuch(what: string, expected: string): IsobarError {
  return new IsobarError('PEER_PROTOCOL_ERROR', `a worker sent no valid ${what}`, { expected });
}

function parseHello(body: unknown): WorkerHello {
  const hello = body as Partial<WorkerHello> | null;
  if (
    typeof hello?.workerId === 'string' &&
    typeof hello.topologyId === 'string' &&
    typeof hello.port === 'number' &&
    typeof hello.generation === 'number' &&
    isProcessIdentity(hello.process)
  ) {
    return hello as WorkerHello;
  }
  throw new IsobarError('PEER_PROTOCOL_ERROR', 'a process sent a hello that lacks a part', {
    expected: 'workerId, topologyId, port, generation and process',
  });
}
