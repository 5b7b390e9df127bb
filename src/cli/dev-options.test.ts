import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type DevStartFlags, readDevOptions, readSupervisor } from './dev-options.js';

describe('what isobar dev is asked for', () => {
  it('is nothing where nothing is said, so that what was said before holds', () => {
    expect(readDevOptions({})).toEqual({});
  });

  it('names numbered supervisors, each a host of its own', () => {
    expect(readDevOptions({ supervisors: '2' })).toEqual({
      supervisors: [
        { name: 's1', host: 's1', rack: 'default-rack' },
        { name: 's2', host: 's2', rack: 'default-rack' },
      ],
    });
  });

  it('takes everything that can be said of a supervisor', () => {
    const text = 'name=a, host=h1,rack=r1,slots=3,port=7000,cores=1.5,memory=2GB,directory=data/a';
    expect(readSupervisor(text)).toEqual({
      name: 'a',
      host: 'h1',
      rack: 'r1',
      slots: 3,
      firstPort: 7000,
      cores: 1.5,
      memoryBytes: 2 * 1024 ** 3,
      directory: resolve('data/a'),
    });
  });

  it('keeps an address of a coordinator, and knows the embedded one by name', () => {
    expect(readDevOptions({ coordinator: 'embedded' })).toEqual({ coordinator: null });
    const coordinator = 'zookeeper://one:2181,two:2181/isobar';
    expect(readDevOptions({ coordinator })).toEqual({ coordinator });
  });

  it.each([
    [{ supervisors: '0' }, 'USAGE'],
    [{ supervisors: '-1' }, 'USAGE'],
    [{ supervisors: '1.5' }, 'USAGE'],
    [{ supervisors: '1e1' }, 'USAGE'],
    [{ supervisors: '65' }, 'USAGE'],
    [{ supervisors: 'two' }, 'USAGE'],
    [{ supervisors: '2', supervisor: ['name=a'] }, 'USAGE'],
    [{ supervisor: ['host=h1'] }, 'USAGE'],
    [{ supervisor: [''] }, 'USAGE'],
    [{ supervisor: ['name='] }, 'USAGE'],
    [{ supervisor: ['name=a/b'] }, 'USAGE'],
    [{ supervisor: ['name=..'] }, 'USAGE'],
    [{ supervisor: [`name=${'a'.repeat(33)}`] }, 'USAGE'],
    [{ supervisor: ['name=a', 'name=A'] }, 'USAGE'],
    [{ supervisor: ['name=a,name=b'] }, 'USAGE'],
    [{ supervisor: ['name=a,directory=d', 'name=b,directory=d/'] }, 'USAGE'],
    [{ supervisor: ['name=a,slots=0'] }, 'USAGE'],
    [{ supervisor: ['name=a,slots=two'] }, 'USAGE'],
    [{ supervisor: ['name=a,port=65535,slots=2'] }, 'USAGE'],
    [{ supervisor: ['name=a,cores=0'] }, 'USAGE'],
    [{ supervisor: ['name=a,cores=many'] }, 'USAGE'],
    [{ supervisor: ['name=a,memory=4'] }, 'USAGE'],
    [{ supervisor: ['name=a,colour=red'] }, 'USAGE'],
    [{ coordinator: 'zookeeper://' }, 'COORDINATOR_ADDRESS_INVALID'],
    [{ coordinator: 'localhost:2181' }, 'COORDINATOR_ADDRESS_INVALID'],
    [{ coordinator: '/run/coordinator.sock' }, 'COORDINATOR_ADDRESS_INVALID'],
    [{ coordinator: '' }, 'COORDINATOR_ADDRESS_INVALID'],
    [{ set: ['novalue'] }, 'USAGE'],
    [{ set: ['supervisor.slots=1', 'supervisor.slots.count=2'] }, 'USAGE'],
    [{ set: ['supervisor.slots=none'] }, 'SETTINGS_INVALID'],
    [{ set: ['supervisor.slotz=1'] }, 'SETTINGS_INVALID'],
  ] satisfies [DevStartFlags, string][])('refuses %j with %s', (flags, code) => {
    expect(() => readDevOptions(flags)).toThrow(expect.objectContaining({ code }) as Error);
  });
});
