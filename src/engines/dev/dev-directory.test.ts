import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type DevDirectory,
  devDirectory,
  forgetSupervisor,
  readCluster,
  readSupervisors,
  type SupervisorSpec,
  writeCluster,
  writeSupervisor,
} from './dev-directory.js';

let path: string;
let directory: DevDirectory;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'isobar-dev-'));
  directory = devDirectory(path);
});
afterEach(() => rmSync(path, { recursive: true, force: true }));

const CLUSTER = { version: '1.2.3', coordinator: null, together: 'a', settings: {}, workingDirectory: '/' };
const [A, B]: readonly SupervisorSpec[] = [
  { name: 'a', host: 'h1', rack: 'r1', slots: 3 },
  { name: 'b', host: 'h2', rack: 'r1' },
];

describe('the directory of a cluster', () => {
  it('is read as it was written', () => {
    expect(readCluster(directory)).toBeUndefined();
    expect(readSupervisors(directory)).toEqual([]);
    writeCluster(directory, CLUSTER);
    writeSupervisor(directory, B!, false);
    writeSupervisor(directory, A!, true);
    mkdirSync(join(path, 'supervisors', 'a'));
    expect(readCluster(directory)).toEqual({ format: 1, ...CLUSTER });
    expect(readSupervisors(directory)).toEqual([
      { format: 1, spec: A, isWanted: true },
      { format: 1, spec: B, isWanted: false },
    ]);
    forgetSupervisor(directory, 'a');
    expect(readSupervisors(directory)).toHaveLength(1);
  });

  it('says which version wrote what this one cannot read', () => {
    writeFileSync(join(path, 'cluster.json'), '{"format":2,"version":"9.0.0"}');
    expect(() => readCluster(directory)).toThrow(
      expect.objectContaining({
        code: 'STATE_VERSION_UNKNOWN',
        details: expect.objectContaining({
          expected: 'format 1',
          found: 'format 2 (Isobar 9.0.0)',
        }) as unknown,
      }) as Error,
    );
  });

  it.each(['', '{"format":', 'null', '[]', '7'])('reports a damaged file (%j)', (text) => {
    writeFileSync(join(path, 'cluster.json'), text);
    expect(() => readCluster(directory)).toThrow(expect.objectContaining({ code: 'STATE_DAMAGED' }) as Error);
  });

  it('reports what cannot be read', () => {
    mkdirSync(join(path, 'cluster.json'));
    expect(() => readCluster(directory)).toThrow(
      expect.objectContaining({ code: 'STATE_DIRECTORY_UNUSABLE' }) as Error,
    );
  });
});
