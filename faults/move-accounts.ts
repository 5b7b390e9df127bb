/**
 * Reads what the topology of planned moves has written: the sinks' records and the lives of its tasks. Pure but for reading files.
 * A record is 37 bytes: number, how often its key had been counted, and when it was written, in microseconds.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const RECORD_BYTES = 37;
/** As the topology has them. */
const SOURCES = 4;
const KEYS = 97;

export interface RowAccount {
  readonly lost: number;
  readonly duplicates: number;
  /** Rows of one source and one key that came after a later one. */
  readonly outOfOrder: number;
  /** Times that a key was counted anew from less: its state was lost. */
  readonly resets: number;
  /** Longest time without any row, in the window. */
  readonly pauseMs: number;
}

/** Compares the records with 0 … rows − 1. @param window microseconds in which pauses count */
export function accountForRows(
  directory: string,
  rows: number,
  window: readonly [number, number],
): RowAccount {
  const seen = new Uint8Array(rows);
  const lastNumber = new Int32Array(SOURCES * KEYS).fill(-1);
  const lastCount = new Int32Array(KEYS);
  const times: number[] = [];
  let duplicates = 0;
  let outOfOrder = 0;
  let resets = 0;
  for (const file of sinkFiles(directory)) {
    const text = readFileSync(join(directory, file), 'latin1');
    // A sink that was killed in the middle of a write may leave a torn last record.
    for (let at = 0; at + RECORD_BYTES <= text.length; at += RECORD_BYTES) {
      const n = Number(text.slice(at, at + 9));
      const count = Number(text.slice(at + 9, at + 18));
      const micros = Number(text.slice(at + 18, at + 36));
      if (!(n >= 0 && n < rows)) throw new Error(`${file}: number ${n} was never sent`);
      if (seen[n] === 1) duplicates++;
      seen[n] = 1;
      const place = (n % SOURCES) * KEYS + (n % KEYS);
      if (n < lastNumber[place]!) outOfOrder++;
      lastNumber[place] = n;
      if (count <= lastCount[n % KEYS]!) resets++;
      lastCount[n % KEYS] = count;
      if (micros >= window[0] && micros <= window[1]) times.push(micros);
    }
  }
  return {
    lost: seen.filter((mark) => mark === 0).length,
    duplicates,
    outOfOrder,
    resets,
    pauseMs: pauseOf(times),
  };
}

/** The highest number in the sinks so far; −1: none. */
export function highestNumber(directory: string): number {
  let highest = -1;
  for (const file of sinkFiles(directory)) {
    const text = readFileSync(join(directory, file), 'latin1');
    for (let at = 0; at + RECORD_BYTES <= text.length; at += RECORD_BYTES)
      highest = Math.max(highest, Number(text.slice(at, at + 9)));
  }
  return highest;
}

/** In the order in which the lives of each task followed each other. */
function sinkFiles(directory: string): string[] {
  const files = readdirSync(directory).filter((name) => name.startsWith('sink-'));
  const generationOf = (name: string): number => Number(name.split('-')[2]);
  return files.sort((a, b) => generationOf(a) - generationOf(b));
}

function pauseOf(times: number[]): number {
  const sorted = Float64Array.from(times).sort();
  let longest = 0;
  for (let i = 1; i < sorted.length; i++) longest = Math.max(longest, sorted[i]! - sorted[i - 1]!);
  return longest / 1000;
}

export interface LifeAccount {
  /** Lives beyond the first of each task. */
  readonly moves: number;
  /** Pairs of lives of one task of which the later began before the earlier was over. */
  readonly aliveTwice: number;
  /** Lives that followed one in the same thread of the same process: the task need not have stopped. */
  readonly needlessStops: number;
  /** From the last row in the old place to the first in the new one. */
  readonly standstillMsMedian: number | null;
  readonly standstillMsMax: number | null;
}

interface Life {
  readonly task: string;
  readonly begun: number;
  /** 0: none. */
  readonly firstRow: number;
  readonly lastRow: number;
  readonly closed: number;
  readonly place: string;
}

export function accountForLives(directory: string): LifeAccount {
  const lives = new Map<string, Life[]>();
  for (const file of readdirSync(directory).filter((name) => name.startsWith('life-'))) {
    const text = readFileSync(join(directory, file), 'latin1');
    const field = (index: number): number =>
      Number(text.slice(index * 20, index * 20 + 20).replaceAll('\0', ' '));
    const task = file.split('-').slice(1, 3).join(' ');
    const life: Life = {
      task,
      begun: field(0),
      firstRow: field(1),
      lastRow: field(2),
      closed: field(3),
      place: `${field(4)}/${field(5)}`,
    };
    lives.set(task, [...(lives.get(task) ?? []), life]);
  }
  let moves = 0;
  let aliveTwice = 0;
  let needlessStops = 0;
  const standstills: number[] = [];
  for (const ofTask of lives.values()) {
    ofTask.sort((a, b) => a.begun - b.begun);
    for (const [index, life] of ofTask.entries()) {
      const before = ofTask[index - 1];
      if (before === undefined) continue;
      moves++;
      if (Math.max(before.closed, before.lastRow) > life.begun) aliveTwice++;
      if (before.place === life.place) needlessStops++;
      if (before.lastRow > 0 && life.firstRow > 0) standstills.push((life.firstRow - before.lastRow) / 1000);
    }
  }
  standstills.sort((a, b) => a - b);
  return {
    moves,
    aliveTwice,
    needlessStops,
    standstillMsMedian: standstills[Math.floor(standstills.length / 2)] ?? null,
    standstillMsMax: standstills.at(-1) ?? null,
  };
}
