// A supervisor in a process of its own that kills itself with -9 just before the step that it is told: a file that comes to its
// place or goes, a worker that is spawned, a signal. Argument: JSON with build, root, workerEntry, settings and dieAt (0: never).
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

const { build, root, workerEntry, settings, dieAt } = JSON.parse(process.argv[2]);
const [kill, append] = [process.kill.bind(process), fs.appendFileSync];
let steps = 0;
const step = (what) => {
  append(join(root, 'steps.log'), `${what}\n`);
  if (++steps === dieAt) kill(process.pid, 'SIGKILL');
};
const { renameSync, rmSync, existsSync } = fs;
const nameOf = (path) =>
  String(path)
    .slice(root.length)
    .replace(/[0-9a-f-]{36,}/u, 'HASH');
fs.renameSync = (from, to) => {
  step(`rename to ${nameOf(to)}`);
  renameSync(from, to);
};
fs.rmSync = (path, options) => {
  if (existsSync(path)) step(`remove ${nameOf(path)}`);
  rmSync(path, options);
};
const { spawn } = childProcess;
childProcess.spawn = (...words) => {
  step('spawn');
  return spawn(...words);
};
process.kill = (pid, signal) => {
  if (signal !== 0) step(`signal ${signal}`);
  return kill(pid, signal);
};
syncBuiltinESMExports();

const { compileSettings, processIdentity, silentLogger, systemClock } = await import(
  `${build}/base/index.js`
);
const { connectCoordination } = await import(`${build}/coordination/index.js`);
const { startSupervisor } = await import(`${build}/supervisor/index.js`);
const common = { clock: systemClock, logger: silentLogger };
const coordination = await connectCoordination({
  ...common,
  address: join(root, 'c.sock'),
  process: processIdentity(process.pid),
  settings: { 'coordinator.session-timeout': 10_000 },
});
await startSupervisor({
  ...common,
  id: 's1',
  host: 'localhost',
  rack: 'r1',
  cores: 2,
  memoryBytes: 1e9,
  owner: 'me',
  directory: join(root, 'supervisor'),
  socketPath: join(root, 's.sock'),
  coordination,
  coordinatorAddress: join(root, 'c.sock'),
  workerEntry,
  settings: compileSettings(settings),
  keeper: null,
  socketDirectory: join(root, 'peers'),
  deadLetterDirectory: join(root, 'dead'),
  blobs: {
    read: (hash) => Promise.resolve(fs.readFileSync(join(root, 'blobs', hash))),
    readSourceMap: () => Promise.resolve(Buffer.from('{"version":3}')),
    putState: () => Promise.reject(new Error('no state here')),
    fetchState: () => Promise.reject(new Error('no state here')),
  },
});
