import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutputTail } from './output-tail.js';

let directory: string;
let seen: string[];
let lost: string[];
let tail: OutputTail;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-tail-'));
  seen = [];
  lost = [];
  tail = new OutputTail({
    supervisorDirectory: directory,
    topologyId: 'words-1-99',
    onLine: (worker, line) => seen.push(`${worker} ${line}`),
    onLost: (worker, { details }) => lost.push(`${worker} ${details.found}`),
  });
});
afterEach(() => rmSync(directory, { recursive: true }));

function file(worker: string, name = 'output.log'): string {
  const own = join(directory, 'workers', worker);
  mkdirSync(own, { recursive: true });
  return join(own, name);
}

describe('OutputTail', () => {
  it('hands out whole lines once, and what has no end at the end', () => {
    tail.poll();
    appendFileSync(file('words-1-99-6700'), 'one\ntw');
    tail.poll();
    appendFileSync(file('words-1-99-6700'), 'o\r\nthr');
    tail.poll();
    expect(seen).toEqual(['6700 one', '6700 two']);
    tail.end();
    expect(seen).toEqual(['6700 one', '6700 two', '6700 thr']);
  });

  it('loses and repeats nothing when files are rotated between two looks', () => {
    const path = file('words-1-99-6700');
    writeFileSync(path, 'a\n');
    tail.poll();
    appendFileSync(path, 'b\n');
    renameSync(path, `${path}.1`);
    writeFileSync(path, 'c\n');
    renameSync(`${path}.1`, `${path}.2`);
    renameSync(path, `${path}.1`);
    writeFileSync(path, 'd\n');
    tail.poll();
    tail.poll();
    expect(seen).toEqual(['6700 a', '6700 b', '6700 c', '6700 d']);
  });

  it('keeps characters whole that are cut between two looks', () => {
    const bytes = Buffer.from('grüße\n');
    writeFileSync(file('words-1-99-6700'), bytes.subarray(0, 3));
    tail.poll();
    appendFileSync(file('words-1-99-6700'), bytes.subarray(3));
    tail.poll();
    expect(seen).toEqual(['6700 grüße']);
  });

  it('hands out what records of the log say was printed, and no other record', () => {
    const records = [
      { msg: 'worker.started' },
      { output: 'log', msg: 'one\ntwo' },
      { component: 'split', msg: 'it says "output":"log"' },
      { output: 'warn', msg: '' },
    ];
    writeFileSync(
      file('words-1-99-6700', 'worker.log'),
      `${records.map((one) => JSON.stringify(one)).join('\n')}\n{"output":"log","msg":"cu\n`,
    );
    expect(tail.poll()).toBe(3);
    expect(tail.poll()).toBe(0);
    expect(seen).toEqual(['6700 one', '6700 two', '6700 ']);
  });

  it('notices that logs came and went between two looks, and nothing while one is left that it knows', () => {
    const path = file('words-1-99-6700', 'worker.log');
    const print = (msg: string): void => appendFileSync(path, `${JSON.stringify({ output: 'log', msg })}\n`);
    print('a');
    tail.poll();
    print('b');
    renameSync(path, `${path}.1`);
    print('c');
    tail.poll();
    expect(lost).toEqual([]);
    print('d');
    rmSync(`${path}.1`);
    renameSync(path, `${path}.1`);
    print('e');
    tail.poll();
    expect(lost).toEqual([]);
    rmSync(`${path}.1`);
    rmSync(path);
    print('g');
    tail.poll();
    expect(seen).toEqual(['a', 'b', 'c', 'd', 'e', 'g'].map((text) => `6700 ${text}`));
    expect(lost).toEqual(['6700 a full log that was removed before all of it had been shown']);
    rmSync(path);
    tail.poll();
    expect(lost).toHaveLength(1);
  });

  it('says that a log dropped records', () => {
    writeFileSync(file('words-1-99-6700', 'worker.log'), '{"level":40,"count":7,"msg":"log.dropped"}\n');
    tail.poll();
    expect(lost).toEqual(['6700 a log that could not be written']);
  });

  it('leaves other topologies and other files alone', () => {
    writeFileSync(file('words-1-98-6700'), 'other\n');
    writeFileSync(file('words-1-99-6701', 'worker.log'), '{}\n');
    writeFileSync(file('words-1-99-6701'), 'mine\n');
    tail.poll();
    expect(seen).toEqual(['6701 mine']);
  });
});
