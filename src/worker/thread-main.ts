/** Entry of an executor thread: loads the topology's code, checks it against the description, and runs the loop. */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import {
  ACKER,
  compileSettings,
  createLogger,
  IsobarError,
  LogFile,
  systemClock,
  toErrorRecord,
  toIsobarError,
} from '../base/index.js';
import {
  buildTopology,
  canonicalDescription,
  validateDescription,
  type BuiltTopology,
} from '../topology/index.js';
import { EdgeIds } from './acking/edge-ids.js';
import { createAloneMarks } from './crash-record.js';
import { P_COLLECTION_MS, P_COLLECTIONS } from './counters.js';
import { createFactory } from './executor-factory.js';
import { ExecutorThread } from './executor-thread.js';
import { ThreadContext } from './thread-context.js';
import { createCrash } from './thread-crash.js';
import type { FromThread, ThreadCrashed, ThreadStart, ToThread } from './thread-messages.js';
import { callingTask, followCalls } from './user-calls.js';
import { captureOutput, outputRecords } from './user-output.js';

const start = workerData as ThreadStart;
const port = parentPort!;
const post = (message: FromThread | ThreadCrashed, transfer?: ArrayBuffer[]): void =>
  port.postMessage(message, transfer);
const crash = createCrash(post);

/** Messages that come while the code is loading. */
const early: ToThread[] = [];
let deliver: (message: ToThread) => void = (message) => void early.push(message);
port.on('message', (message: ToThread) => deliver(message));

async function loadTopology(): Promise<BuiltTopology> {
  const expected = validateDescription(JSON.parse(readFileSync(start.descriptionPath, 'utf8')));
  let exported: { default?: unknown };
  try {
    exported = (await import(pathToFileURL(start.codePath).href)) as { default?: unknown };
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    throw toIsobarError(error, missing ? 'MODULE_MISSING_IN_WORKER' : 'EVALUATION_FAILED', {
      where: `topology "${start.topologyName}"`,
    });
  }
  const topology = buildTopology(exported.default);
  if (canonicalDescription(topology.description) !== canonicalDescription(expected)) {
    throw new IsobarError(
      'GRAPH_MISMATCH',
      `the graph of "${start.topologyName}" that this worker built differs from the submitted one`,
      {
        expected: 'the submitted description',
        found: 'another graph',
        where: start.codePath,
      },
    );
  }
  return topology;
}

async function main(): Promise<void> {
  const settings = compileSettings(...start.settings);
  const file = LogFile.of(start.logPath, settings, start.logShared);
  const fields = { topology: start.topologyId, thread: start.index };
  const logger = createLogger({ file, level: settings['log.level'], fields });
  const progress = new Int32Array(start.progress);
  let componentOf = (_task: number): string | undefined => undefined;
  let hasTasks = false;
  const capture = captureOutput(
    { stdout: process.stdout, stderr: process.stderr, console },
    outputRecords(createLogger({ file, level: 'debug', fields }), () => {
      const task = callingTask(progress);
      // Somebody prints behind an await, say: the next time it is known who.
      if (task === undefined && hasTasks) followCalls();
      return task === undefined ? undefined : { component: componentOf(task) ?? '', task };
    }),
  );
  process.on('exit', () => capture.flush());
  countCollections(progress);
  let topology: BuiltTopology;
  try {
    topology = await loadTopology();
  } catch (error) {
    post({ kind: 'unusable', error: toErrorRecord(error) });
    return;
  }
  const tasksKnown = new Promise<Extract<ToThread, { kind: 'tasks' }>>((resolve) => {
    deliver = (message) => {
      if (message.kind === 'tasks') resolve(message);
      else early.push(message);
    };
    for (const message of early.splice(0)) deliver(message);
  });
  post({ kind: 'loaded' });
  const { tasks } = await tasksKnown;
  let wake = (): void => undefined;
  const context = new ThreadContext({
    topology,
    topologyId: start.topologyId,
    settings,
    generation: start.generation,
    clock: systemClock,
    logger,
    edgeIds: new EdgeIds(randomInt(1, 2 ** 31), randomInt(1, 2 ** 31)),
    random: Math.random,
    deadLetterDirectory: start.deadLetterDirectory,
    acking: tasks.some(({ component }) => component === ACKER),
    post,
    wake: () => wake(),
    aloneMarks: createAloneMarks(dirname(start.logPath), logger),
    progress,
  });
  const factory = createFactory(context, tasks, logger);
  componentOf = (task) => factory.componentOf(task);
  hasTasks = true;
  const thread = new ExecutorThread({
    start,
    context,
    factory,
    clock: systemClock,
    logger,
    post,
    onBroken: crash,
  });
  wake = () => thread.wake();
  deliver = (message) => {
    try {
      thread.onMessage(message);
    } catch (error) {
      crash(error);
    }
  };
  for (const message of early.splice(0)) deliver(message);
  await thread.run();
  factory.abort.abort();
  port.close();
}

/** Adds up collections of garbage for the worker's main thread to read. */
function countCollections(progress: Int32Array): void {
  let totalMs = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      progress[P_COLLECTIONS]!++;
      totalMs += duration;
    }
    progress[P_COLLECTION_MS] = Math.round(totalMs);
  }).observe({ entryTypes: ['gc'] });
}

main().catch(crash);
