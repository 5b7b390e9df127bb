/** Runs the word count of `wordcount/app.ts` as the harness wants it, through `isobar run`. */
import { setTimeout as pause } from 'node:timers/promises';
import { within } from '../child.js';
import type { Quantiles } from '../histogram.js';
import { WORDS_PER_SENTENCE } from '../sentences.js';
import type { Placement, Sample, Subject, SubjectOptions } from '../subject.js';
import { component, parseCounts, type CountsLine } from './lines.js';
import { ProductRun } from './run.js';

const FIRST_ROW_MS = 60_000;
const LINE_MS = 15_000;
const POLL_MS = 20;
/** As many as a host of the ceiling has. */
const PENDING_LIMIT = 8192;

const PLACES: Readonly<Record<Placement, { workers: number; threads: number; parallelism: number }>> = {
  'one-thread': { workers: 1, threads: 1, parallelism: 1 },
  'two-threads': { workers: 1, threads: 2, parallelism: 2 },
  'two-workers': { workers: 2, threads: 1, parallelism: 2 },
};

/** Starts a run and resolves when words are counted. */
export async function startProduct(options: SubjectOptions): Promise<Subject> {
  const product = new Product(options);
  try {
    await within(FIRST_ROW_MS, 'Starting the topology', product.untilCounting());
    return product;
  } catch (error) {
    product.kill();
    throw error;
  }
}

interface ProductSample extends Sample {
  readonly quantiles: Quantiles | undefined;
}

class Product implements Subject<ProductSample> {
  readonly #acking: boolean;
  readonly #run: ProductRun;
  #newest: CountsLine | undefined;
  #problem: string | undefined;

  constructor({ placement, acking, rate }: SubjectOptions) {
    this.#acking = acking;
    const { workers, threads, parallelism } = PLACES[placement];
    const settings = [
      `topology.workers=${workers}`,
      `topology.executor-threads=${threads}`,
      `topology.max-spout-pending=${PENDING_LIMIT}`,
      'supervisor.heartbeat-interval=100ms',
      ...(acking ? [] : ['topology.ackers=0']),
    ];
    this.#run = new ProductRun({
      app: 'bench/wordcount/app.ts',
      arguments: ['--no-check', ...settings.flatMap((setting) => ['--set', setting])],
      environment: {
        ISOBAR_BENCH_PARALLELISM: String(parallelism),
        ISOBAR_BENCH_RATE: String(rate),
        ISOBAR_BENCH_ACKING: acking ? 'on' : 'off',
      },
    });
    this.#run.onLine = (line) => this.#read(line);
  }

  pids(): readonly number[] {
    return this.#run.pids();
  }

  async untilCounting(): Promise<void> {
    await this.#until((counts) => component(counts, 'count').executed > 0);
    this.#run.lookUpProcesses();
  }

  async sample(): Promise<ProductSample> {
    const before = this.#newest;
    const counts = await within(
      LINE_MS,
      'The next line of isobar run --json',
      this.#until((line) => line !== before),
    );
    const words = component(counts, 'count').executed;
    const { p50Micros, p99Micros } = component(counts, 'sentences').latency;
    return {
      atMs: counts.atMs,
      words,
      sentences: this.#acking ? counts.totals.acked : words / WORDS_PER_SENTENCE,
      quantiles:
        p50Micros === null || p99Micros === null
          ? undefined
          : { p50Ms: p50Micros / 1000, p99Ms: p99Micros / 1000 },
    };
  }

  /** The product tells the quantiles of its last seconds, so the later sample has those of the window. */
  latency(_before: ProductSample, after: ProductSample): Quantiles | undefined {
    return after.quantiles;
  }

  async finish(): Promise<void> {
    await this.#run.interrupt();
    if (this.#problem !== undefined) throw new Error(this.#problem);
    const end = this.#newest;
    if (end?.type !== 'summary' || end.outcome !== 'drained') {
      throw new Error(
        `isobar run was to drain; it ended as "${end?.outcome ?? 'unknown'}".\n${this.#run.errors}`,
      );
    }
    const { emitted, replayed, acked, failed } = end.totals;
    const sentences = emitted - replayed;
    const counted = component(end, 'count').executed;
    if (this.#acking && acked !== sentences) {
      throw new Error(`isobar run read ${sentences} sentences, but ${acked} are acked (${failed} failed).`);
    }
    const expected = sentences * WORDS_PER_SENTENCE;
    if (counted < expected || (failed === 0 && counted !== expected)) {
      throw new Error(
        `isobar run counted ${counted} words of ${sentences} sentences; ${expected} were read.`,
      );
    }
  }

  kill(): void {
    this.#run.kill();
  }

  #read(line: unknown): void {
    try {
      this.#newest = parseCounts(line) ?? this.#newest;
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
    }
  }

  async #until(isWanted: (counts: CountsLine) => boolean): Promise<CountsLine> {
    for (;;) {
      if (this.#problem !== undefined) throw new Error(this.#problem);
      if (this.#newest !== undefined && isWanted(this.#newest)) return this.#newest;
      if (this.#run.hasClosed) throw new Error(`isobar run ended too early.\n${this.#run.errors}`);
      await pause(POLL_MS);
    }
  }
}
