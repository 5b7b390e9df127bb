/** Runs a ceiling as the harness wants it: starts its processes, adds their totals up and checks the counts at the end. */
import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { killProcess, within } from '../child.js';
import { bucketsBetween, HISTOGRAM_BUCKETS, quantiles, type Quantiles } from '../histogram.js';
import { expectedCounts, generateSentences, WORDS_PER_SENTENCE } from '../sentences.js';
import type { Sample, Subject, SubjectOptions } from '../subject.js';
import { ACKED, COUNTED, EMITTED, EMITTING, PENDING, TOTALS } from './host.js';
import type { CeilingStart, FromCeiling, HostSample, ToCeiling } from './protocol.js';

const ANSWER_MS = 10_000;
const DRAIN_MS = 20_000;

/** Starts a ceiling and resolves when all its hosts run. */
export async function startCeiling(options: SubjectOptions): Promise<Subject> {
  const hosts = options.placement === 'one-thread' ? 1 : 2;
  const common = { acking: options.acking, ratePerHost: options.rate / hosts };
  const directory = mkdtempSync(join(tmpdir(), 'isobar-bench-'));
  const ceiling = new Ceiling(options.acking, directory);
  try {
    if (options.placement === 'two-workers') {
      const socketPath = join(directory, 'link');
      const first = ceiling.fork({ ...common, place: { kind: 'process', index: 0, socketPath } });
      await first.next('listening');
      const second = ceiling.fork({ ...common, place: { kind: 'process', index: 1, socketPath } });
      await Promise.all([first.next('running'), second.next('running')]);
    } else {
      const only = ceiling.fork({ ...common, place: { kind: 'threads', count: hosts } });
      await only.next('running');
    }
    return ceiling;
  } catch (error) {
    ceiling.kill();
    throw error;
  }
}

interface CeilingSample extends Sample {
  readonly histogram: Int32Array;
}

class Ceiling implements Subject<CeilingSample> {
  readonly #acking: boolean;
  readonly #directory: string;
  readonly #processes: CeilingProcess[] = [];

  constructor(acking: boolean, directory: string) {
    this.#acking = acking;
    this.#directory = directory;
  }

  fork(start: CeilingStart): CeilingProcess {
    const child = new CeilingProcess(start);
    this.#processes.push(child);
    return child;
  }

  pids(): readonly number[] {
    return this.#processes.map(({ pid }) => pid);
  }

  async sample(): Promise<CeilingSample> {
    const { atMs, totals, histogram } = await this.#totals();
    const words = totals[COUNTED]!;
    return {
      atMs,
      words,
      sentences: this.#acking ? totals[ACKED]! : words / WORDS_PER_SENTENCE,
      histogram,
    };
  }

  latency(before: CeilingSample, after: CeilingSample): Quantiles | undefined {
    return quantiles(bucketsBetween(before.histogram, after.histogram));
  }

  async finish(): Promise<void> {
    try {
      for (const child of this.#processes) child.send({ kind: 'drain' });
      const emittedByHost = await this.#drained();
      const emitted = emittedByHost.reduce((sum, count) => sum + count, 0);
      const { totals } = await this.#totals();
      for (const child of this.#processes) child.send({ kind: 'stop' });
      const counts = await Promise.all(this.#processes.map((child) => child.next('counts')));
      if (this.#acking && totals[ACKED] !== emitted) {
        throw new Error(`The ceiling emitted ${emitted} sentences, but ${totals[ACKED]!} are acked.`);
      }
      checkCounts(
        emittedByHost,
        counts.flatMap((message) => message.hosts),
      );
    } finally {
      this.kill();
    }
  }

  kill(): void {
    for (const child of this.#processes.splice(0)) killProcess(child.pid);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Waits until nothing is under way; sentences that each host has emitted. */
  async #drained(): Promise<number[]> {
    const deadlineMs = Date.now() + DRAIN_MS;
    for (;;) {
      const { totals, hosts } = await this.#totals();
      const owed = this.#acking ? totals[PENDING]! : totals[EMITTED]! * WORDS_PER_SENTENCE - totals[COUNTED]!;
      if (totals[EMITTING] === 0 && owed === 0) return hosts.map((host) => host.totals[EMITTED]!);
      if (Date.now() > deadlineMs)
        throw new Error(`The ceiling did not drain: ${owed} still under way after 20 s.`);
      await pause(10);
    }
  }

  async #totals(): Promise<{
    atMs: number;
    totals: Float64Array;
    histogram: Int32Array;
    hosts: readonly HostSample[];
  }> {
    for (const child of this.#processes) child.send({ kind: 'sample' });
    const samples = await Promise.all(this.#processes.map((child) => child.next('sample')));
    const totals = new Float64Array(TOTALS);
    const histogram = new Int32Array(HISTOGRAM_BUCKETS);
    const hosts = samples.flatMap((sample) => sample.hosts);
    for (const host of hosts) {
      host.totals.forEach((value, place) => (totals[place]! += value));
      host.histogram.forEach((count, bucket) => (histogram[bucket]! += count));
    }
    return { atMs: Math.max(...samples.map((sample) => sample.atMs)), totals, histogram, hosts };
  }
}

/** One forked process; its messages are read in the order in which they come. */
class CeilingProcess {
  readonly #child: ChildProcess;
  readonly #unread: FromCeiling[] = [];
  #onMessage: () => void = () => undefined;
  #exited: string | undefined;

  constructor(start: CeilingStart) {
    this.#child = fork(new URL('./process.js', import.meta.url), { serialization: 'advanced' });
    this.#child.on('message', (message) => {
      // Only our own process writes here, and only these.
      this.#unread.push(message as FromCeiling);
      this.#onMessage();
    });
    this.#child.on('exit', (code, signal) => {
      this.#exited = `code ${code ?? 'none'}, signal ${signal ?? 'none'}`;
      this.#onMessage();
    });
    this.send({ kind: 'start', ...start });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  send(message: ToCeiling): void {
    this.#child.send(message);
  }

  /** The next message, which must be of this kind. */
  async next<K extends FromCeiling['kind']>(kind: K): Promise<Extract<FromCeiling, { kind: K }>> {
    return within(ANSWER_MS, `The answer "${kind}" of a ceiling's process`, this.#next(kind));
  }

  async #next<K extends FromCeiling['kind']>(kind: K): Promise<Extract<FromCeiling, { kind: K }>> {
    for (;;) {
      const message = this.#unread.shift();
      if (message !== undefined) {
        if (isOfKind(message, kind)) return message;
        throw new Error(`A ceiling's process said "${message.kind}" where "${kind}" was expected.`);
      }
      if (this.#exited !== undefined)
        throw new Error(`A ceiling's process ended (${this.#exited}) before "${kind}".`);
      await new Promise<void>((resolve) => {
        this.#onMessage = resolve;
      });
    }
  }
}

function isOfKind<K extends FromCeiling['kind']>(
  message: FromCeiling,
  kind: K,
): message is Extract<FromCeiling, { kind: K }> {
  return message.kind === kind;
}

function checkCounts(
  emittedByHost: readonly number[],
  counted: readonly ReadonlyMap<string, number>[],
): void {
  const expected = expectedCounts(generateSentences(), emittedByHost);
  const found = new Map<string, number>();
  for (const counts of counted)
    for (const [word, times] of counts) found.set(word, (found.get(word) ?? 0) + times);
  for (const word of new Set([...expected.keys(), ...found.keys()])) {
    const want = expected.get(word) ?? 0;
    const have = found.get(word) ?? 0;
    if (want !== have)
      throw new Error(`The ceiling counted "${word}" ${have} times; it was read ${want} times.`);
  }
}
