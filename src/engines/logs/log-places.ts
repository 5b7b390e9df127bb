/**
 * Where the logs of a cluster on this machine are: those of `isobar dev` and of `isobar run`. It reads names only; what a
 * supervisor of another machine has is not here.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { idNameOf } from '../../nimbus/index.js';
import { devDirectory, readCluster, readSupervisors, supervisorDirectory } from '../dev/dev-directory.js';

/** Files that one process after the other has written, such as those of the worker of a slot. */
export interface LogPlace {
  /** `supervisor:port` of a worker, the name of a daemon. */
  readonly name: string;
  readonly directory: string;
  /** Matches names of files; its first group is the number of renames, if any. */
  readonly files: RegExp;
}

export interface LogFilePath {
  readonly path: string;
  readonly changedMs: number;
}

const WORKER_LOG = /^worker\.log(?:\.(\d+))?$/;
const OUTPUT_LOG = /^output\.log(?:\.(\d+))?$/;
/** Of the only supervisor of a run. */
const RUN_SUPERVISOR = 'local';

/** Logs of the workers of a topology, in order of name. */
export function workerLogs(directory: string, topologyId: string): readonly LogPlace[] {
  return supervisorsOf(directory).flatMap(({ name, path }) =>
    namesIn(join(path, 'workers')).flatMap((worker) => {
      if (!worker.startsWith(`${topologyId}-`)) return [];
      const port = worker.slice(topologyId.length + 1);
      if (!/^\d+$/.test(port)) return [];
      const place = { name: `${name}:${port}`, directory: join(path, 'workers', worker) };
      return [
        { ...place, files: WORKER_LOG },
        { ...place, files: OUTPUT_LOG },
      ];
    }),
  );
}

/** The id of the last submitted topology of a name that has left logs; undefined: none has. */
export function topologyWithLogs(directory: string, name: string): string | undefined {
  const prefix = `${idNameOf(name)}-`;
  const ids = supervisorsOf(directory)
    .flatMap(({ path }) => namesIn(join(path, 'workers')))
    .map((worker) => worker.slice(0, worker.lastIndexOf('-')))
    .filter((id) => id.startsWith(prefix) && /^\d+-\d+$/.test(id.slice(prefix.length)));
  const submitted = (id: string): number => Number(id.slice(id.lastIndexOf('-') + 1));
  const counter = (id: string): number => Number(id.slice(prefix.length, id.lastIndexOf('-')));
  return ids.sort((a, b) => submitted(b) - submitted(a) || counter(b) - counter(a))[0];
}

/** Logs of daemons, in order of name. */
export function daemonLogs(directory: string): readonly LogPlace[] {
  const isDev = readCluster(devDirectory(directory)) !== undefined;
  const logs = isDev ? devDirectory(directory).logs : directory;
  const names = new Set(namesIn(logs).flatMap((file) => /^(.+)\.log(?:\.\d+)?$/.exec(file)?.[1] ?? []));
  return [...names]
    .filter((name) => isDev || name === 'daemon')
    .sort()
    .map((name) => ({ name, directory: logs, files: daemonFile(name) }));
}

/** Files of a place, the oldest first. */
export function filesOf({ directory, files }: LogPlace): readonly LogFilePath[] {
  return namesIn(directory)
    .flatMap((name) => {
      const match = files.exec(name);
      return match === null ? [] : [{ path: join(directory, name), renames: Number(match[1] ?? 0) }];
    })
    .sort((a, b) => b.renames - a.renames)
    .flatMap(({ path }) => {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? [] : [{ path, changedMs: stats.mtimeMs }];
    });
}

function daemonFile(name: string): RegExp {
  return new RegExp(`^${name.replaceAll(/[^\w-]/g, String.raw`\$&`)}\\.log(?:\\.(\\d+))?$`);
}

function supervisorsOf(path: string): readonly { readonly name: string; readonly path: string }[] {
  const directory = devDirectory(path);
  if (readCluster(directory) === undefined) return [{ name: RUN_SUPERVISOR, path: join(path, 'supervisor') }];
  return readSupervisors(directory).map(({ spec }) => ({
    name: spec.name,
    path: supervisorDirectory(directory, spec),
  }));
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    // Nothing has been logged there.
    return [];
  }
}
