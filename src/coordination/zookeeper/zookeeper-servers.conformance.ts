/**
 * Test support: real ZooKeeper servers of Debian's package, on free ports of the loopback and temporary directories. The package is
 * installed when it is missing and this process may; otherwise tests that need it say why they are skipped.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const JAR = '/usr/share/java/zookeeper.jar';
const INSTALL_LOCK = join(tmpdir(), 'isobar-zookeeper-install');
const INSTALL_MS = 600_000;
const START_MS = 60_000;
const TICK_MS = 100;

/** Why there can be no ZooKeeper server here; undefined when there can. Installs the package where that is possible. */
export async function zooKeeperMissing(): Promise<string | undefined> {
  if (isInstalled()) return undefined;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    return "no ZooKeeper here, and no right to install Debian's package";
  }
  const untilMs = Date.now() + INSTALL_MS;
  while (!isInstalled()) {
    try {
      mkdirSync(INSTALL_LOCK);
    } catch {
      // Another test file installs it.
      if (Date.now() > untilMs) return `${INSTALL_LOCK} is in the way`;
      await sleep(500);
      continue;
    }
    try {
      const options = {
        stdio: 'ignore',
        timeout: INSTALL_MS,
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      } as const;
      execFileSync('apt-get', ['update', '-qq'], options);
      execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'zookeeper'], options);
    } catch (error) {
      return `Debian's package of ZooKeeper cannot be installed: ${String(error)}`;
    } finally {
      rmSync(INSTALL_LOCK, { recursive: true, force: true });
    }
  }
  return undefined;
}

function isInstalled(): boolean {
  return existsSync(JAR) && existsSync('/usr/bin/java');
}

interface ServerPlan {
  readonly id: number;
  readonly port: number;
  readonly directory: string;
  /** Lines `server.N=…` of all servers of an ensemble. */
  readonly members: readonly string[];
}

export class TestZooKeeperServer {
  readonly port: number;
  readonly #plan: ServerPlan;
  #child: ChildProcess | undefined;

  constructor(plan: ServerPlan) {
    this.#plan = plan;
    this.port = plan.port;
  }

  get dataDirectory(): string {
    return join(this.#plan.directory, 'data');
  }

  /** Starts the process; it may not serve yet. */
  start(): void {
    const { directory, id, members } = this.#plan;
    const data = this.dataDirectory;
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, 'myid'), String(id));
    const configuration = [
      `tickTime=${TICK_MS}`,
      'minSessionTimeout=200',
      'maxSessionTimeout=120000',
      'initLimit=100',
      'syncLimit=30',
      `dataDir=${data}`,
      `clientPort=${this.port}`,
      'clientPortAddress=127.0.0.1',
      'admin.enableServer=false',
      '4lw.commands.whitelist=*',
      'maxClientCnxns=0',
      ...members,
    ];
    writeFileSync(join(directory, 'zoo.cfg'), `${configuration.join('\n')}\n`);
    writeFileSync(
      join(directory, 'log4j.properties'),
      'log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n' +
        'log4j.appender.out.layout=org.apache.log4j.PatternLayout\nlog4j.appender.out.layout.ConversionPattern=%d %p %m%n\n',
    );
    const log = openSync(join(directory, 'server.log'), 'a');
    const command = [
      'java',
      ...['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto'],
      ...['-Djava.net.preferIPv4Stack=true', '-Dzookeeper.preAllocSize=1024', '-Dzookeeper.forceSync=no'],
      ...['-cp', `${directory}:${JAR}`, 'org.apache.zookeeper.server.quorum.QuorumPeerMain'],
      join(directory, 'zoo.cfg'),
    ];
    // The server must not outlive the test, whatever ends it.
    const [program, ...rest] = existsSync('/usr/bin/setpriv')
      ? ['/usr/bin/setpriv', '--pdeathsig', 'KILL', ...command]
      : command;
    this.#child = spawn(program!, rest, { stdio: ['ignore', log, log] });
    closeSync(log);
  }

  /** Waits until it serves. */
  async ready(): Promise<void> {
    const untilMs = Date.now() + START_MS;
    while ((await this.mode()) === undefined) {
      if (Date.now() > untilMs || this.#child?.exitCode != null) {
        throw new Error(`ZooKeeper does not serve; see ${join(this.#plan.directory, 'server.log')}`);
      }
      await sleep(20);
    }
  }

  /** `standalone`, `leader` or `follower`; undefined while it does not serve. */
  async mode(): Promise<string | undefined> {
    return /^Mode: (\w+)$/m.exec(await this.ask('srvr'))?.[1];
  }

  /** The number of changes that the server has seen, failed ones among them. */
  async changes(): Promise<number> {
    const zxid = /^Zxid: 0x([0-9a-f]+)$/m.exec(await this.ask('srvr'))?.[1];
    return Number(BigInt(`0x${zxid ?? '0'}`) & 0xffffffffn);
  }

  /** The answer to one of its four-letter words; empty while it does not serve. */
  ask(word: string): Promise<string> {
    return new Promise((resolve) => {
      const socket = net.connect(this.port, '127.0.0.1');
      let answer = '';
      socket.setTimeout(1000, () => socket.destroy());
      socket.on('connect', () => socket.write(word));
      socket.on('data', (chunk) => {
        answer += chunk.toString();
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(answer));
    });
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    await exited;
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Removes all that it has stored; only while it is stopped. */
  wipe(): void {
    rmSync(this.dataDirectory, { recursive: true, force: true });
  }
}

/** One server, serving. */
export async function startZooKeeper(directory: string): Promise<TestZooKeeperServer> {
  const [port] = await freePorts(1);
  const server = new TestZooKeeperServer({
    id: 1,
    port: port!,
    directory: join(directory, 'zk1'),
    members: [],
  });
  server.start();
  await server.ready();
  return server;
}

/** An ensemble, serving. */
export async function startEnsemble(
  directory: string,
  size: number,
): Promise<readonly TestZooKeeperServer[]> {
  const ports = await freePorts(size * 3);
  const of = (server: number, which: number): number => ports[server * 3 + which]!;
  const ids = Array.from({ length: size }, (_, index) => index);
  const members = ids.map((id) => `server.${id + 1}=127.0.0.1:${of(id, 1)}:${of(id, 2)}`);
  const servers = ids.map(
    (id) =>
      new TestZooKeeperServer({
        id: id + 1,
        port: of(id, 0),
        directory: join(directory, `zk${id + 1}`),
        members,
      }),
  );
  for (const server of servers) server.start();
  await Promise.all(servers.map((server) => server.ready()));
  return servers;
}

/** Ports that were free a moment ago. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = net.createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  return Promise.all(
    servers.map(async (server) => {
      const address = server.address();
      const closed = once(server, 'close');
      server.close();
      await closed;
      return typeof address === 'object' && address !== null ? address.port : 0;
    }),
  );
}
