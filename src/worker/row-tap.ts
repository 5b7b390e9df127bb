/**
 * Shows live rows of one executor thread to whoever asks, for a moment: samples what a component emits or takes. While nobody
 * asks there is none, and the data path looks at one field.
 *
 * What it may cost is bounded however many rows pass: rows are taken at even distances of time, only so many are compared with
 * a condition in one turn of the loop, and a row is cut where its JSON is long.
 */
import type { TappedRow, TapRequest } from '../coordination/index.js';
import type { Row } from '../topology/index.js';
import { encodePlain } from './acking/plain-values.js';

/** Rows compared with a condition in a millisecond. */
const MAX_COMPARED = 50;
const MAX_ROW_LENGTH = 4096;

export interface RowTapOptions {
  readonly request: TapRequest;
  /** Numbers of the component's tasks. */
  readonly firstTask: number;
  readonly lastTask: number;
  /** Milliseconds of the thread's clock when it began. */
  readonly nowMs: number;
  wallMs(): number;
}

export class RowTap {
  readonly rows: TappedRow[] = [];
  /** Rows of the component that have passed. */
  seen = 0;
  readonly #options: RowTapOptions;
  /** Between two rows that are taken. */
  readonly #stepMs: number;
  #nextMs: number;
  #comparedAtMs = 0;
  #compared = 0;

  constructor(options: RowTapOptions) {
    this.#options = options;
    this.#stepMs = options.request.windowMs / options.request.limit;
    this.#nextMs = options.nowMs;
  }

  /** @param turnMs milliseconds of the thread's clock at the beginning of this turn of its loop */
  onEmitted(task: number, stream: string, row: Row, turnMs: number): void {
    if (!this.#options.request.taken) this.#offer(task, stream, row, turnMs);
  }

  onTaken(task: number, input: string, row: Row, turnMs: number): void {
    if (this.#options.request.taken) this.#offer(task, input, row, turnMs);
  }

  #offer(task: number, stream: string, row: Row, turnMs: number): void {
    const { firstTask, lastTask, request } = this.#options;
    if (task < firstTask || task > lastTask) return;
    this.seen++;
    if (this.rows.length >= request.limit || turnMs < this.#nextMs) return;
    if (request.where !== null && !this.#matches(row, request.where, turnMs)) return;
    // Rows of one turn have one time: the next one is taken in another turn, if the distance asks for it.
    this.#nextMs = Math.max(this.#nextMs, turnMs - this.#stepMs) + this.#stepMs;
    const text = JSON.stringify(encodePlain(row));
    const isCut = text.length > MAX_ROW_LENGTH;
    this.rows.push({
      atMs: this.#options.wallMs(),
      task,
      stream,
      row: isCut ? text.slice(0, MAX_ROW_LENGTH) : text,
      isCut,
    });
  }

  #matches(row: Row, { field, value }: NonNullable<TapRequest['where']>, turnMs: number): boolean {
    if (turnMs - this.#comparedAtMs >= 1) {
      this.#comparedAtMs = turnMs;
      this.#compared = 0;
    }
    if (++this.#compared > MAX_COMPARED) return false;
    return tapText(row[field]) === value;
  }
}

/** A value as a condition names it: text as it is, everything else as JSON. */
function tapText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || typeof value === 'number') return String(value);
  return JSON.stringify(encodePlain(value));
}
