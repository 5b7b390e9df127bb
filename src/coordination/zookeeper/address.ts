/**
 * The address of a ZooKeeper ensemble: `zookeeper://host:port,host:port/chroot`. Pure.
 *
 * Hosts are names, IPv4 addresses or IPv6 addresses in brackets; the port is 2181 where it is left out, the chroot
 * `/isobar`. An address holds no credentials, so that it can be logged and seen in a list of processes.
 */
import { isIPv6 } from 'node:net';
import { IsobarError } from '../../base/index.js';

export interface ZooKeeperServer {
  /** A name, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface ZooKeeperAddress {
  /** One or more, each once. */
  readonly servers: readonly ZooKeeperServer[];
  /** Starts with a slash and does not end with one. */
  readonly chroot: string;
}

const SCHEME = 'zookeeper://';
const DEFAULT_PORT = 2181;
const DEFAULT_CHROOT = '/isobar';
const EXPECTED = 'zookeeper://HOST:PORT,HOST:PORT/CHROOT';

/** Is this meant to be the address of a ZooKeeper ensemble, right or wrong? */
export function isZooKeeperAddress(address: string): boolean {
  return address.startsWith('zookeeper:');
}

/** @throws COORDINATOR_ADDRESS_INVALID */
export function parseZooKeeperAddress(address: string): ZooKeeperAddress {
  if (!address.startsWith(SCHEME)) throw invalid(address, 'it does not start with zookeeper://');
  const rest = address.slice(SCHEME.length);
  if (rest.includes('@')) {
    throw invalid(address, 'it holds credentials; name their file with coordinator.credentials-file');
  }
  const unexpected = /[^\x21-\x7e]|[?#\\]/.exec(rest);
  if (unexpected !== null) throw invalid(address, `it holds the character ${JSON.stringify(unexpected[0])}`);
  const slash = rest.indexOf('/');
  const hosts = slash === -1 ? rest : rest.slice(0, slash);
  const servers = hosts.split(',').map((server) => parseServer(address, server));
  const names = servers.map(formatServer);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(address, `it names ${twice} twice`);
  return { servers, chroot: parseChroot(address, slash === -1 ? '' : rest.slice(slash)) };
}

/** As people write it, with every default spelled out. */
export function formatZooKeeperAddress({ servers, chroot }: ZooKeeperAddress): string {
  return `${SCHEME}${servers.map(formatServer).join(',')}${chroot}`;
}

export function formatServer({ host, port }: ZooKeeperServer): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** An address without what may be a password, for messages. */
export function withoutCredentials(address: string): string {
  return address.replace(
    /^([a-z][a-z0-9+.-]*:\/\/)?.*@/i,
    (_, scheme: string | undefined) => `${scheme ?? ''}…@`,
  );
}

function parseServer(address: string, server: string): ZooKeeperServer {
  const parts = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(server);
  if (parts === null)
    throw invalid(address, `"${server}" is no host and port (IPv6 addresses go in brackets)`);
  const [, ipv6, name, port] = parts;
  if (ipv6 !== undefined && !isIPv6(ipv6)) throw invalid(address, `"${ipv6}" is no IPv6 address`);
  if (name !== undefined && !/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?$/i.test(name)) {
    throw invalid(address, name === '' ? 'a host is missing' : `"${name}" is no name of a host`);
  }
  return { host: (ipv6 ?? name ?? '').toLowerCase(), port: parsePort(address, port) };
}

function parsePort(address: string, port: string | undefined): number {
  if (port === undefined) return DEFAULT_PORT;
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number < 1 || number > 65_535) throw invalid(address, `"${port}" is no port`);
  return number;
}

function parseChroot(address: string, path: string): string {
  const chroot = path.replace(/\/$/, '');
  if (chroot === '') return DEFAULT_CHROOT;
  const names = chroot.slice(1).split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..')) {
    throw invalid(address, `"${chroot}" is no path of a node`);
  }
  if (names[0] === 'zookeeper') throw invalid(address, "/zookeeper is ZooKeeper's own");
  return chroot;
}

function invalid(address: string, fault: string): IsobarError {
  const shown = withoutCredentials(address);
  return new IsobarError('COORDINATOR_ADDRESS_INVALID', `${shown} is no address of a coordinator: ${fault}`, {
    expected: EXPECTED,
    found: shown,
    where: 'address of the coordinator',
  });
}
