import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LaunchRecords } from './launch-records.js';

let directory: string;
let records: LaunchRecords;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-records-'));
  records = new LaunchRecords(directory);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const RECORD = {
  workerId: 'words-1-g3',
  port: 6700,
  topologyId: 'words-1',
  generation: 3,
  launchFile: '/somewhere/launch.json',
  tuning: { launchTimeoutMs: 1, timeoutMs: 1, backoffMs: 1, backoffMaxMs: 1 },
  process: { pid: process.pid, startTime: '1' },
};

describe('launch records', () => {
  it('are read as they were written', () => {
    records.write(RECORD);
    expect(records.readAll()).toEqual([expect.objectContaining(RECORD)]);
  });

  it('of an earlier boot name no process: its pid belongs to another one by now', () => {
    records.write(RECORD);
    const path = join(directory, '6700.json');
    const written: unknown = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...(written as object), boot: 'an earlier one' }));
    expect(records.readAll()).toEqual([expect.objectContaining({ ...RECORD, process: null })]);
  });

  it.each(['', 'null', '[]', '{"format":1', '{"format":2}', '{"format":1,"workerId":5}'])(
    'that are damaged (%s) hide no other',
    (text) => {
      records.write(RECORD);
      writeFileSync(join(directory, '6701.json'), text);
      writeFileSync(join(directory, '.6702.json.a-draft'), text);
      expect(records.readAll()).toEqual([expect.objectContaining(RECORD)]);
    },
  );
});
