/**
 * The directory of a cluster that `isobar dev` started, and what is kept in it about how it is to be run.
 *
 *     DIRECTORY/cluster.json            format, coordinator, settings ({@link ClusterFile})
 *     DIRECTORY/supervisors/NAME.json   one supervisor, and whether it is to run ({@link SupervisorFile})
 *     DIRECTORY/supervisors/NAME/       its launch records, code, and its workers' files
 *     DIRECTORY/daemons/ID/             which process is that daemon (a directory lock); ID.json: what it was started with
 *     DIRECTORY/logs/ID.log
 *     DIRECTORY/state/                  coordinator, blobs, dead letters
 *     DIRECTORY/s/                      sockets (or below /tmp, see clusterSocketDirectory)
 *
 * Every file is whole or not there; each is one decision, so that nobody overwrites another's.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { clusterSocketDirectory, controlSocketPath } from '../../api/index.js';
import { IsobarError, type RawSettings, writeDurableFile } from '../../base/index.js';

/** Raised when an older Isobar could no longer run what is in the directory. */
const FORMAT = 1;

/** What a user says of one supervisor. */
export interface SupervisorSpec {
  readonly name: string;
  /** Label of the machine that it stands for. */
  readonly host: string;
  readonly rack: string;
  readonly slots?: number;
  readonly firstPort?: number;
  /** An absolute path; not given: in the cluster's directory. */
  readonly directory?: string;
  readonly cores?: number;
  readonly memoryBytes?: number;
}

export interface ClusterFile {
  readonly format: typeof FORMAT;
  /** The version of Isobar that made it. */
  readonly version: string;
  /** Address of the coordinator; null: an embedded one. */
  readonly coordinator: string | null;
  /** The only supervisor shares a process with coordinator and Nimbus: its name. null: every daemon has its own. */
  readonly together: string | null;
  readonly settings: RawSettings;
  /** Where daemons and workers run, if it still exists. */
  readonly workingDirectory: string;
}

export interface SupervisorFile {
  readonly format: typeof FORMAT;
  readonly spec: SupervisorSpec;
  readonly isWanted: boolean;
}

export interface DevDirectory {
  readonly path: string;
  readonly clusterFile: string;
  readonly supervisors: string;
  readonly daemons: string;
  readonly logs: string;
  readonly coordinatorDirectory: string;
  readonly blobDirectory: string;
  readonly deadLetterDirectory: string;
  readonly socketDirectory: string;
  readonly controlSocket: string;
  readonly coordinatorSocket: string;
  readonly keeperSocket: string;
}

/** @param path absolute */
export function devDirectory(path: string): DevDirectory {
  const sockets = clusterSocketDirectory(path);
  const state = join(path, 'state');
  return {
    path,
    clusterFile: join(path, 'cluster.json'),
    supervisors: join(path, 'supervisors'),
    daemons: join(path, 'daemons'),
    logs: join(path, 'logs'),
    coordinatorDirectory: join(state, 'coordinator'),
    blobDirectory: join(state, 'nimbus'),
    deadLetterDirectory: join(state, 'dead-letters'),
    socketDirectory: sockets,
    controlSocket: controlSocketPath(path),
    coordinatorSocket: join(sockets, 'coordinator.sock'),
    keeperSocket: join(sockets, 'keeper.sock'),
  };
}

/** Where a supervisor has its files. */
export function supervisorDirectory(
  directory: DevDirectory,
  { name, directory: own }: SupervisorSpec,
): string {
  return own ?? join(directory.supervisors, name);
}

/** Where the workers of a supervisor find it. */
export function supervisorSocket(directory: DevDirectory, name: string): string {
  return join(directory.socketDirectory, `w-${name}.sock`);
}

// ── what is written down ──

/** What makes a cluster new; the format is added. */
export type ClusterFacts = Omit<ClusterFile, 'format'>;

export function writeCluster(directory: DevDirectory, facts: ClusterFacts): void {
  const file: ClusterFile = { format: FORMAT, ...facts };
  writeDurableFile(directory.clusterFile, JSON.stringify(file, null, 2));
}

/** undefined: there has never been a cluster here. @throws STATE_VERSION_UNKNOWN, STATE_DAMAGED, STATE_DIRECTORY_UNUSABLE */
export function readCluster(directory: DevDirectory): ClusterFile | undefined {
  // Written by this module alone; its format says so.
  return readFormatted(directory.clusterFile) as ClusterFile | undefined;
}

export function writeSupervisor(directory: DevDirectory, spec: SupervisorSpec, isWanted: boolean): void {
  const file: SupervisorFile = { format: FORMAT, spec, isWanted };
  writeDurableFile(join(directory.supervisors, `${spec.name}.json`), JSON.stringify(file, null, 2));
}

/** The supervisor is no part of the cluster any more; its files stay. */
export function forgetSupervisor(directory: DevDirectory, name: string): void {
  rmSync(join(directory.supervisors, `${name}.json`), { force: true });
}

/** By name. @throws STATE_VERSION_UNKNOWN, STATE_DAMAGED, STATE_DIRECTORY_UNUSABLE */
export function readSupervisors(directory: DevDirectory): readonly SupervisorFile[] {
  return namesIn(directory.supervisors).map(
    (name) => readFormatted(join(directory.supervisors, name)) as SupervisorFile,
  );
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path)
      .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw unreadable(path, error);
  }
}

function readFormatted(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unreadable(path, error);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(path, 'no JSON', error);
  }
  if (typeof value !== 'object' || value === null || !('format' in value)) throw damaged(path, 'no format');
  if (value.format === FORMAT) return value;
  throw new IsobarError('STATE_VERSION_UNKNOWN', `${path} was written by another version of Isobar`, {
    expected: `format ${FORMAT}`,
    found: `format ${String(value.format)}${'version' in value ? ` (Isobar ${String(value.version)})` : ''}`,
    where: path,
  });
}

function damaged(path: string, found: string, cause?: unknown): IsobarError {
  return new IsobarError(
    'STATE_DAMAGED',
    `${path} is damaged`,
    { expected: `a file of format ${FORMAT}`, found, where: path },
    cause,
  );
}

function unreadable(path: string, error: unknown): IsobarError {
  const found = error instanceof Error ? error.message : String(error);
  return new IsobarError(
    'STATE_DIRECTORY_UNUSABLE',
    `${path} cannot be read`,
    { expected: 'a directory that can be read and written', found, where: path },
    error,
  );
}
