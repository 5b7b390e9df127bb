/**
 * Test support: a worker that speaks the protocol of coordination/worker-link.ts and runs nothing. What it does is
 * written in its "bundle": good, crash, deaf (does not stop), mute (no heartbeat), unusable, busy N (counts of N tasks grow with
 * each heartbeat, and a tenth of them have positions).
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';

const launch = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const [mode, count = '0'] = readFileSync(launch.codePath, 'utf8').trim().split(' ');
if (mode === 'crash') {
  process.stderr.write('first line\nthe reason of the crash\n');
  process.exit(3);
}
const stat = readFileSync('/proc/self/stat', 'utf8');
const identity = { pid: process.pid, startTime: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] };
const logPath = join(launch.directory, 'events.log');
const log = (line) => appendFileSync(logPath, `${process.pid} ${line}\n`);
log('started');

let sequence = 0;
let assignmentVersion = 0;
let socket;
let nextId = 1;
const waiting = new Map();

const send = (message) => {
  const payload = serialize(message);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(payload.length);
  socket.write(Buffer.concat([head, payload]));
};
const request = (method, body) =>
  new Promise((resolve, reject) => {
    const id = nextId++;
    waiting.set(id, { resolve, reject });
    send({ kind: 'request', id, method, body });
  });
const busyTask = (_, task) => {
  const counts = { emitted: sequence, transferred: sequence, executed: sequence, acked: sequence };
  const none = { failed: 0, replayed: 0, deadLetters: 0, unreplayable: 0, queued: 0, pending: 0 };
  const state = { ended: false, stopped: false, movable: true, generation: launch.generation };
  return { task, component: 'count', ...counts, ...none, ...state };
};
const report = () => {
  const { workerId, topologyId, supervisorId, port, generation } = launch;
  return {
    ...{ workerId, topologyId, supervisorId, port, generation, assignmentVersion },
    ...{ pid: process.pid, startedMs: 0, ready: assignmentVersion > 0, sequence: ++sequence },
    ...{ cpuMicros: 0, rssBytes: 0, threads: [], components: [], errors: [], lostStates: [] },
    tasks: Array.from({ length: Number(count) }, busyTask),
    ...{ oldestPending: null, deadLetterFiles: [] },
  };
};
const beat = () => {
  if (mode === 'mute' || socket?.readyState !== 'open') return;
  send({ kind: 'event', name: 'heartbeat', body: report() });
  if (mode !== 'busy') return;
  const { generation } = launch;
  const positions = Array.from({ length: Number(count) / 10 }, (_, task) => ({
    task,
    generation,
    position: sequence,
  }));
  request('store-positions', positions).catch(() => {});
};
const onEvent = ({ name, body }) => {
  log(`${name} ${JSON.stringify(body?.version ?? body?.kind ?? null)}`);
  if (name === 'assignment') assignmentVersion = body.version;
  if (name === 'stop' && mode !== 'deaf') {
    sequence += 1000;
    writeFileSync(join(launch.directory, 'last-report.json'), JSON.stringify(report()));
    beat();
    socket.end(() => process.exit(0));
  }
};
const hello = async () => {
  try {
    const { workerId, topologyId, port, generation } = launch;
    const welcome = await request('hello', { workerId, topologyId, port, generation, process: identity });
    assignmentVersion = welcome.assignment.version;
    log(`welcome ${welcome.assignment.version} ${welcome.phase.kind}`);
    if (mode === 'unusable') {
      const error = { code: 'GRAPH_MISMATCH', message: 'another graph', details: {} };
      send({ kind: 'event', name: 'unusable', body: error });
      socket.end(() => process.exit(1));
      return;
    }
    beat();
    const task = launch.port;
    await request('store-positions', [{ task, generation: launch.generation, position: process.pid }]);
    const [own] = (await request('read-positions', null)).filter((entry) => entry.task === task);
    log(`position ${own.generation} ${await request('next-generation', null)}`);
  } catch (error) {
    log(`refused ${error.code}`);
    if (error.code === 'GENERATION_OUTDATED') process.exit(0);
  }
};
const connect = () => {
  let received = Buffer.alloc(0);
  socket = net.connect(launch.supervisorSocket, () => void hello());
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 4 && received.length >= 4 + received.readUInt32BE(0)) {
      const length = received.readUInt32BE(0);
      const message = deserialize(received.subarray(4, 4 + length));
      received = received.subarray(4 + length);
      if (message.kind === 'event') onEvent(message);
      else if (message.kind === 'answer') waiting.get(message.id)?.resolve(message.body);
      else if (message.kind === 'failure') waiting.get(message.id)?.reject(message.error);
    }
  });
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(connect, 20));
};

process.on('SIGTERM', () => {
  if (mode !== 'deaf') process.exit(0);
});
setInterval(beat, mode === 'busy' ? 100 : 30);
connect();
