import { describe, expect, it } from 'vitest';
import { formatZooKeeperAddress, parseZooKeeperAddress, withoutCredentials } from './address.js';

describe('the address of a ZooKeeper ensemble', () => {
  it('names servers and chroot', () => {
    expect(parseZooKeeperAddress('zookeeper://zk1:2182,10.0.0.7:2183/teams/stream')).toEqual({
      servers: [
        { host: 'zk1', port: 2182 },
        { host: '10.0.0.7', port: 2183 },
      ],
      chroot: '/teams/stream',
    });
  });

  it('has port 2181 and chroot /isobar where nothing is said', () => {
    for (const address of ['zookeeper://zk1', 'zookeeper://zk1/', 'zookeeper://ZK1:2181/isobar/']) {
      expect(formatZooKeeperAddress(parseZooKeeperAddress(address))).toBe('zookeeper://zk1:2181/isobar');
    }
  });

  it('takes IPv6 addresses in brackets', () => {
    const address = parseZooKeeperAddress('zookeeper://[::1]:2182,[fe80::2]/a');
    expect(address.servers).toEqual([
      { host: '::1', port: 2182 },
      { host: 'fe80::2', port: 2181 },
    ]);
    expect(formatZooKeeperAddress(address)).toBe('zookeeper://[::1]:2182,[fe80::2]:2181/a');
  });

  it.each([
    ['zookeeper:zk1:2181/a', 'zookeeper://'],
    ['zookeeper://', 'a host is missing'],
    ['zookeeper:///a', 'a host is missing'],
    ['zookeeper://zk1,', 'a host is missing'],
    ['zookeeper://zk1:port', '"port" is no port'],
    ['zookeeper://zk1:0', '"0" is no port'],
    ['zookeeper://zk1:65536', '"65536" is no port'],
    ['zookeeper://zk1:', '"" is no port'],
    ['zookeeper://::1', 'brackets'],
    ['zookeeper://[::g]', 'no IPv6 address'],
    ['zookeeper://zk1,zk2,zk1:2181', 'zk1:2181 twice'],
    ['zookeeper://-zk', 'no name of a host'],
    ['zookeeper://zk 1', 'the character " "'],
    ['zookeeper://zk1/a?b=c', 'the character "?"'],
    ['zookeeper://zk1/a//b', 'no path of a node'],
    ['zookeeper://zk1/a/../b', 'no path of a node'],
    ['zookeeper://zk1/zookeeper/quota', "ZooKeeper's own"],
  ])('is refused with the reason: %s', (address, reason) => {
    expect(() => parseZooKeeperAddress(address)).toThrow(
      expect.objectContaining({
        code: 'COORDINATOR_ADDRESS_INVALID',
        message: expect.stringContaining(reason) as string,
      }),
    );
  });

  it('is refused with credentials in it, and they are not repeated', () => {
    try {
      parseZooKeeperAddress('zookeeper://isobar:se@cret@zk1:2181/a');
      expect.unreachable();
    } catch (error) {
      const all = JSON.stringify([String(error), error]);
      expect(all).toContain('credentials');
      expect(all).not.toContain('cret');
    }
    expect(withoutCredentials('isobar:secret@zk1')).toBe('…@zk1');
    expect(withoutCredentials('/run/isobar/c.sock')).toBe('/run/isobar/c.sock');
  });
});
