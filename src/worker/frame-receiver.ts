/**
 * Takes the frames that come to a thread and gives their rows, acks, failures and credit to whom they are for.
 *
 * Frames of peers are checked as far as nothing else would notice: `checkFrame` has seen that a frame is whole, this is
 * about what it says. A frame that says what no sender of this topology can mean is the end of the session with that
 * peer (its trees are then replayed); what came before it stands.
 */
import { IsobarError, toErrorRecord, toIsobarError } from '../base/index.js';
import {
  ACK_WORDS,
  ByteReader,
  CREDIT_WORDS,
  END_MARK,
  EXTRA_MARK,
  H_COUNT,
  H_ENDPOINT,
  H_KIND,
  H_TARGET_THREAD,
  HEADER_WORDS,
  KIND_ACK,
  KIND_CREDIT,
  KIND_DATA,
  KIND_FAIL,
  KIND_PRESSURE,
  KIND_MOVE,
  MOVE_CUT,
  MOVE_PASS,
  MOVE_PASSED,
  MOVE_WORDS,
  R_BLOB_BYTES,
  R_ROOT_GENERATION,
  R_ROOT_SEQUENCE,
  R_ROOT_TASK,
  R_SOURCE_TASK,
  R_SUBSCRIPTION,
  R_TARGET_TASK,
  ROW_WORDS,
  readSeveral,
  SUBSCRIPTION_MASK,
} from '../messaging/index.js';
import type { Row } from '../topology/index.js';
import { FAILURE_REASONS } from './counters.js';
import type { ExecutorFactory } from './executor-factory.js';
import { rowCost } from './link.js';
import type { Edge } from './outputs.js';
import { SEVERAL, SEVERAL_WORDS, type ThreadContext } from './thread-context.js';
import type { FromThread } from './thread-messages.js';

export interface FrameReceiverOptions {
  post(message: FromThread): void;
  /** All rows that a task of this thread had sent to an endpoint are in the queues of their receivers. */
  onPassed(task: number, id: number, endpoint: number): void;
}

export class FrameReceiver {
  readonly #context: ThreadContext;
  readonly #factory: ExecutorFactory;
  readonly #options: FrameReceiverOptions;
  readonly #reader = new ByteReader();
  /** By task number: acks for a system task would wait for ever to be sent. */
  readonly #canBeRoot: Uint8Array;

  constructor(context: ThreadContext, factory: ExecutorFactory, options: FrameReceiverOptions) {
    this.#context = context;
    this.#factory = factory;
    this.#options = options;
    this.#canBeRoot = new Uint8Array(factory.lastTask + 1);
    // Task 0 stands for no root.
    this.#canBeRoot[0] = 1;
    for (const { id } of context.options.topology.description.components) {
      const tasks = factory.tasksOf(id);
      if (tasks !== undefined) this.#canBeRoot.fill(1, tasks.first, tasks.last + 1);
    }
  }

  /** A frame of a thread of this worker, by the id of its endpoint. */
  receive(words: Int32Array, at: number, bytes: Buffer, byteStart: number, origin: number): void {
    const count = words[at + H_COUNT]!;
    const first = at + HEADER_WORDS;
    switch (words[at + H_KIND]!) {
      case KIND_DATA: {
        const blobStart = byteStart + (HEADER_WORDS + count * ROW_WORDS) * 4;
        this.#receiveRows(words, first, count, bytes, blobStart, origin);
        return;
      }
      case KIND_ACK:
        for (let i = 0, row = first; i < count; i++, row += ACK_WORDS) {
          const root = this.#context.localRoots[words[row]!];
          if (root !== undefined && root.generation === words[row + 1])
            root.onAck(words[row + 2]!, words[row + 3]!, words[row + 4]!);
        }
        return;
      case KIND_FAIL:
        for (let i = 0, row = first; i < count; i++, row += ACK_WORDS) {
          const root = this.#context.localRoots[words[row]!];
          const reason = FAILURE_REASONS[words[row + 3]!] ?? 'lost';
          if (root !== undefined && root.generation === words[row + 1])
            root.onFail(words[row + 2]!, reason, words[row + 4]!);
        }
        return;
      case KIND_MOVE:
        for (let i = 0, row = first; i < count; i++, row += MOVE_WORDS)
          this.#receiveMark(words[row]!, words[row + 1]!, words[row + 2]!, origin);
        return;
      case KIND_CREDIT: {
        const link = this.#context.links.get(origin);
        for (let i = 0, row = first; i < count; i++, row += CREDIT_WORDS)
          this.#receiveCredit(words[row]!, words[row + 1]!, link);
        return;
      }
      case KIND_PRESSURE:
        for (let i = 0, row = first; i < count; i++, row += CREDIT_WORDS)
          this.#receivePressure(words[row]!, words[row + 1]!, origin);
        return;
    }
  }

  /** A frame of a peer: the main thread has written into it which endpoint sent it, and in which session. */
  receiveFromPeer(words: Int32Array, at: number, bytes: Buffer, byteStart: number): void {
    try {
      this.receive(words, at, bytes, byteStart, words[at + H_ENDPOINT]!);
    } catch (error) {
      const fault = toIsobarError(error);
      if (fault.code !== 'PEER_PROTOCOL_ERROR') throw error;
      this.#options.post({
        kind: 'broken-frame',
        session: words[at + H_TARGET_THREAD]!,
        error: toErrorRecord(fault),
      });
    }
  }

  #receiveMark(mark: number, task: number, id: number, origin: number): void {
    switch (mark) {
      case MOVE_CUT:
        return this.#options.post({ kind: 'cut', task, id, endpoint: origin });
      case MOVE_PASS:
        return this.#context.answerPass(origin, task, id);
      case MOVE_PASSED:
        return this.#options.onPassed(task, id, origin);
      default:
        throw broken('a mark of a move', `${mark} for task ${task}`);
    }
  }

  #receiveCredit(
    creditClass: number,
    cost: number,
    link: { onGrant(creditClass: number, cost: number): void } | undefined,
  ): void {
    if (creditClass < 0 || creditClass >= this.#context.creditClasses || cost <= 0) {
      throw broken('credit for a component', `${cost} for ${creditClass}`);
    }
    link?.onGrant(creditClass, cost);
  }

  #receivePressure(number: number, state: number, origin: number): void {
    const cycle = this.#context.cycles[number];
    if (cycle === undefined || (state !== 0 && state !== 1)) {
      throw broken('the state of a cycle', `${state} for ${number}`);
    }
    // An endpoint that routes have not named yet says it again at its next maintenance; one that is gone holds nothing.
    if (this.#context.links.has(origin)) cycle.onOther(origin, state === 1);
  }

  #receiveRows(
    words: Int32Array,
    first: number,
    count: number,
    bytes: Buffer,
    blobStart: number,
    origin: number,
  ): void {
    const reader = this.#reader;
    let position = blobStart;
    for (let i = 0, row = first; i < count; i++, row += ROW_WORDS) {
      const length = words[row + R_BLOB_BYTES]!;
      const task = words[row + R_TARGET_TASK]!;
      const edge = this.#edgeOf(words[row + R_SUBSCRIPTION]!, task);
      const several = this.#severalOf(words[row + R_ROOT_TASK]!, bytes, position, position + length);
      const executor = this.#factory.boltOfTask[task];
      if (executor === undefined) {
        this.#context.grant(origin, edge.creditClass, rowCost(length));
        this.#refuseRow(words, row, several, task);
      } else if ((words[row + R_SUBSCRIPTION]! & END_MARK) !== 0) {
        words[row + R_SUBSCRIPTION]! &= ~END_MARK;
        this.#checkSender(edge, words[row + R_SOURCE_TASK]!);
        executor.acceptRemote(null, null, words, row, origin, rowCost(length));
      } else {
        if (several === null) reader.reset(bytes, position);
        const value = decode(edge, reader, position + length);
        executor.acceptRemote(value, several, words, row, origin, rowCost(length));
      }
      position += length;
    }
  }

  #edgeOf(marked: number, task: number): Edge {
    const subscription = marked & SUBSCRIPTION_MASK;
    const edge = this.#factory.edges[subscription];
    if (
      marked < 0 ||
      edge === undefined ||
      task < edge.firstTask ||
      task >= edge.firstTask + edge.taskCount
    ) {
      throw broken('a row for a task that has subscribed', `subscription ${subscription}, task ${task}`);
    }
    if ((marked & EXTRA_MARK) !== 0 && !edge.inCycle) {
      throw broken('extra rows in cycles only', `one of subscription ${subscription}`);
    }
    return edge;
  }

  /** The anchors of a row that has several, whose fields the reader then stands at; null: it has one or none. */
  #severalOf(rootTask: number, bytes: Buffer, position: number, end: number): Int32Array | null {
    if (rootTask !== SEVERAL) {
      this.#checkRoot(rootTask);
      return null;
    }
    this.#reader.reset(bytes, position);
    const several = readSeveral(this.#reader, end);
    if (several.length % SEVERAL_WORDS !== 0)
      throw broken('whole anchors', `${several.length} words of them`);
    for (let at = 0; at < several.length; at += SEVERAL_WORDS) this.#checkRoot(several[at]!);
    return several;
  }

  /** Ends are counted by sender: one more would end a task early. */
  #checkSender(edge: Edge, task: number): void {
    const senders = this.#factory.tasksOf(edge.source);
    if (senders === undefined || task < senders.first || task > senders.last)
      throw broken(`an end of a task of "${edge.source}"`, `one of task ${task}`);
  }

  #checkRoot(task: number): void {
    if (this.#canBeRoot[task] !== 1) throw broken('a root task', `${task}`);
  }

  /** A row for a task that is not here (any more): its tree fails as moved, and its credit goes back. */
  #refuseRow(words: Int32Array, row: number, several: Int32Array | null, task: number): void {
    const rootTask = words[row + R_ROOT_TASK]!;
    if (several !== null) this.#context.failSeveral(several, 'moved', task);
    else if (rootTask !== 0) {
      const [generation, sequence] = [words[row + R_ROOT_GENERATION]!, words[row + R_ROOT_SEQUENCE]!];
      this.#context.fail(rootTask, generation, sequence, 'moved', task);
    }
  }
}

/** Decodes a row that must end where its frame says. */
function decode(edge: Edge, reader: ByteReader, end: number): Row {
  let row: Row;
  try {
    row = edge.codec.decode(reader);
  } catch (error) {
    throw broken(`a row of stream "${edge.stream}" of "${edge.source}"`, 'bytes that are none', error);
  }
  if (reader.position !== end) {
    throw broken(`a row that ends at its length`, `one that is ${reader.position - end} bytes longer`);
  }
  return row;
}

function broken(expected: string, found: string, cause?: unknown): IsobarError {
  const message = `a frame says what no sender can mean: expected ${expected}, found ${found}`;
  return new IsobarError('PEER_PROTOCOL_ERROR', message, { expected, found }, cause);
}
