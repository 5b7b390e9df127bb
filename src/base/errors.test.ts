import { describe, expect, it } from 'vitest';
import { IsobarError, toErrorRecord, toIsobarError } from './errors.js';

describe('errors', () => {
  it('cross a process with code, details, stack and the chain of causes', () => {
    const cause = new Error('disk', { cause: new TypeError('bytes') });
    const error = new IsobarError('STATE_DIRECTORY_UNUSABLE', 'no space', { where: '/x' }, cause);
    const copy = IsobarError.from(structuredClone(toErrorRecord(error)));
    expect(copy).toMatchObject({
      code: 'STATE_DIRECTORY_UNUSABLE',
      message: 'no space',
      details: { where: '/x' },
    });
    expect(copy.stack).toBe(error.stack);
    expect((copy.cause as Error).message).toBe('disk');
    expect(((copy.cause as Error).cause as Error).message).toBe('bytes');
  });

  it('turn a plain error into a record without repeating it as its own cause', () => {
    const record = toErrorRecord(new RangeError('out', { cause: new Error('why') }));
    expect(record).toMatchObject({ code: 'INTERNAL', message: 'out', cause: { message: 'why' } });
    expect(record.cause?.cause).toBeUndefined();
  });

  it('end a chain of causes that runs in a circle', () => {
    const circular = new Error('a');
    circular.cause = circular;
    expect(toErrorRecord(circular).cause).toBeUndefined();
  });

  it('end a chain of causes that runs in a circle of several errors', () => {
    const first = new Error('first');
    first.cause = new Error('second', { cause: first });
    expect(toErrorRecord(first)).toMatchObject({ message: 'first', cause: { message: 'second' } });
  });

  it('can be cloned whatever they carry', () => {
    const error = new IsobarError('INTERNAL', 'm', {
      call: () => 1,
      mark: Symbol('s'),
      nested: { call: () => 1 },
      kept: { n: 1n },
    });
    expect(structuredClone(toErrorRecord(error)).details).toEqual({ kept: { n: 1n } });
  });

  it('take errors whose parts throw or are something else', () => {
    const thrower = new Proxy(new Error('x'), {
      get: () => {
        throw new Error('no');
      },
      getPrototypeOf: () => {
        throw new Error('no');
      },
    });
    const odd = Object.defineProperties(new Error('x'), {
      message: { get: () => ({}) },
      stack: { value: () => 1 },
      cause: {
        get: () => {
          throw new Error('no');
        },
      },
    });
    for (const thrown of [thrower, odd]) {
      const record = structuredClone(toErrorRecord(thrown));
      expect(record.code).toBe('INTERNAL');
      expect(typeof record.message).toBe('string');
    }
  });

  it('are rebuilt from records of any shape', () => {
    const circular: Record<string, unknown> = { code: 'toString', message: 7, details: 5, stack: {} };
    circular['cause'] = circular;
    for (const record of [circular, null, 5, {}]) {
      // What another process sends need not be what the type says.
      const error = IsobarError.from(record as never);
      expect(error.code).toBe('INTERNAL');
      expect(error.action).not.toBe('');
    }
  });

  it('keep the code of an error from another copy of the package, and only that of a real one', () => {
    const foreign = Object.assign(new Error('x'), {
      name: 'IsobarError',
      code: 'FIELD_UNKNOWN',
      details: { where: 'w' },
    });
    expect(toIsobarError(foreign)).toMatchObject({ code: 'FIELD_UNKNOWN', details: { where: 'w' } });
    const other = Object.assign(new Error('x'), { name: 'IsobarError', code: 'toString' });
    expect(toIsobarError(other, 'USER_CODE_FAILED').code).toBe('USER_CODE_FAILED');
  });

  it.each(['ENOSPC', 'EDQUOT', 'EROFS'])('say of %s that a directory cannot be used', (refusal) => {
    const refused = Object.assign(new Error(`${refusal}: write`), { code: refusal, path: '/state/x' });
    expect(toIsobarError(refused)).toMatchObject({
      code: 'STATE_DIRECTORY_UNUSABLE',
      details: { expected: 'a directory that can be written', where: '/state/x' },
    });
    expect(toIsobarError(refused, 'USER_CODE_FAILED').code).toBe('USER_CODE_FAILED');
    const other = Object.assign(new Error('x'), { code: 'ENOTCONN' });
    expect(toIsobarError(other).code).toBe('INTERNAL');
  });

  it.each([
    undefined,
    null,
    7,
    'text',
    Symbol('s'),
    {
      toString: () => {
        throw new Error('no');
      },
    },
  ])('take anything thrown (%#)', (thrown) => {
    expect(typeof toIsobarError(thrown).message).toBe('string');
  });
});
