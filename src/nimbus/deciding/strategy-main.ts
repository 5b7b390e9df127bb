/** Entry of a thread that runs one strategy, and nothing else: it answers one question after the other. */
import { pathToFileURL } from 'node:url';
import { workerData } from 'node:worker_threads';
import { IsobarError, toErrorRecord } from '../../base/index.js';
import {
  type ClusterSnapshot,
  readDecision,
  type SchedulingResult,
  type Strategy,
  strategyNamed,
} from '../../scheduling/index.js';
import { ReceivedLists } from './sent-lists.js';
import type {
  PostedDecision,
  StrategyAnswer,
  StrategyQuestion,
  StrategySource,
  StrategyThreadStart,
} from './strategy-messages.js';

const { source, port, answered } = workerData as StrategyThreadStart; // of `StrategyThread`
const count = new Int32Array(answered);
const strategy = await load(source);

const received = new ReceivedLists();

port.on('message', ({ number, snapshot: posted }: StrategyQuestion) => {
  let answer: StrategyAnswer;
  try {
    const snapshot = received.read(posted);
    const result = strategy(snapshot);
    answer = { number, kind: 'decided', decision: toPosted(result, snapshot) };
  } catch (error) {
    answer = { number, kind: 'failed', error: toErrorRecord(error) };
  }
  port.postMessage(answer);
  Atomics.add(count, 0, 1);
  Atomics.notify(count, 0);
});

/** What cannot be loaded says so whenever it is asked. */
async function load(from: StrategySource): Promise<Strategy> {
  if (from.kind === 'own') return strategyNamed(from.name, from.settings);
  const { name, module } = from;
  const refused = (message: string, cause?: unknown): IsobarError =>
    new IsobarError('STRATEGY_FAILED', message, { where: module }, cause);
  let decide: unknown;
  try {
    const loaded = (await import(pathToFileURL(module).href)) as { readonly default?: unknown };
    decide = loaded.default;
    if (typeof decide !== 'function')
      throw refused(`the module of the strategy "${name}" exports no function as its default`);
  } catch (error) {
    const fault =
      error instanceof IsobarError
        ? error
        : refused(`the module of the strategy "${name}" cannot be loaded: ${textOf(error)}`, error);
    return () => {
      throw fault;
    };
  }
  const call = decide as (snapshot: ClusterSnapshot) => unknown; // what it returns is read, whatever it is
  return (snapshot) => {
    let value: unknown;
    // A copy, so that what it does to its argument changes nothing here.
    const shown = structuredClone(snapshot);
    try {
      value = call(shown);
    } catch (error) {
      throw refused(`the strategy "${name}" threw: ${textOf(error)}`, error);
    }
    return readDecision(name, value, snapshot);
  };
}

function toPosted(result: SchedulingResult, snapshot: ClusterSnapshot): PostedDecision {
  const { placement, unplaced, failures, notes, reservedHosts, keepsCapacity, steps } = result;
  return {
    placement: [...placement].map(
      ([id, workers]) => [id, workers === snapshot.placement.get(id) ? null : workers] as const,
    ),
    unplaced,
    failures: [...failures].map(([id, error]) => [id, toErrorRecord(error)] as const),
    ...(notes === undefined ? {} : { notes }),
    ...(reservedHosts === undefined ? {} : { reservedHosts }),
    ...(keepsCapacity === undefined ? {} : { keepsCapacity }),
    steps,
  };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
