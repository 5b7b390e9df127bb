import { describe, expect, it } from 'vitest';
import { normaliseSubmission, type Submission, type SubmittedComponent } from './submission.js';

function component(id: string, more: Partial<SubmittedComponent> = {}): SubmittedComponent {
  const streams = new Map([['default', ['word']]]);
  return { id, kind: 'bolt', hint: 1, tasks: null, maxTasks: null, streams, inputs: [], ...more };
}

function reasonOf(more: Partial<Submission>): string {
  const outcome = normaliseSubmission({
    name: 'clicks',
    counts: [],
    components: [component('s', { kind: 'spout' })],
    system: { eventLogger: false, metricsConsumers: [], upstreamFeedback: false },
    workers: 1,
    maxWorkers: null,
    maxExecutors: null,
    ...more,
  });
  return outcome.kind === 'refused' ? outcome.reason : outcome.kind;
}

function withInput(source: string, stream: string, fields: readonly string[] | null): string {
  const spout = component('s', {
    kind: 'spout',
    streams: new Map([
      ['default', ['word']],
      ['other', ['count']],
    ]),
  });
  return reasonOf({ components: [spout, component('b', { inputs: [{ source, stream, fields }] })] });
}

describe('a submission as Storm sees it', () => {
  it('may have any name without / . : and backslash', () => {
    expect(reasonOf({ name: 'Klicks über alles' })).toBe('accepted');
    for (const name of ['', 'a/b', 'a.b', 'a:b', 'a\\b']) expect(reasonOf({ name })).toBe('topology-name');
  });

  it.each([1.5, -1, '2', true, 2 ** 31, Number.NaN])('refuses the count %s', (value) => {
    expect(reasonOf({ counts: [{ key: 'topology.tasks', value, minimum: 0 }] })).toBe('conf:topology.tasks');
  });

  it('accepts a count that is null or at its bound', () => {
    for (const value of [null, undefined, 0, 2 ** 31 - 1]) {
      expect(reasonOf({ counts: [{ key: 'topology.tasks', value, minimum: 0 }] })).toBe('accepted');
    }
    expect(reasonOf({ counts: [{ key: 'topology.workers', value: 0, minimum: 1 }] })).toBe(
      'conf:topology.workers',
    );
  });

  it('refuses inputs that name what does not exist', () => {
    expect(withInput('nope', 'default', null)).toBe('unknown-component');
    expect(withInput('s', 'nope', null)).toBe('unknown-stream');
    expect(withInput('s', 'default', ['nope'])).toBe('unknown-fields');
    expect(withInput('s', 'default', ['word'])).toBe('accepted');
  });

  it('knows the streams of the system, and the fields of any stream of the source', () => {
    expect(withInput('__system', '__tick', null)).toBe('accepted');
    expect(withInput('s', '__ack_init', null)).toBe('accepted');
    expect(withInput('s', 'default', ['count'])).toBe('accepted');
  });

  it('refuses reserved and doubled names, and spouts with inputs', () => {
    expect(reasonOf({ components: [component('__x')] })).toBe('component-id');
    expect(reasonOf({ components: [component('x', { streams: new Map([['__x', []]]) })] })).toBe('stream-id');
    expect(reasonOf({ components: [component('x'), component('x')] })).toBe('duplicate-component-id');
    const inputs = [{ source: 's', stream: 'default', fields: null }];
    expect(reasonOf({ components: [component('s', { kind: 'spout', inputs })] })).toBe('spout-inputs');
  });

  it('accepts a hint of 0 that leads to no tasks, and refuses one with tasks', () => {
    expect(reasonOf({ components: [component('x', { hint: 0 })] })).toBe('accepted');
    expect(reasonOf({ components: [component('x', { hint: -1 })] })).toBe('accepted');
    expect(reasonOf({ components: [component('x', { hint: 0, tasks: 1 })] })).toBe('executors-not-positive');
    expect(reasonOf({ components: [component('x', { hint: 0, tasks: 5, maxTasks: 0 })] })).toBe('accepted');
  });

  it('is limited in workers and in the sum of hints, whatever the tasks are', () => {
    expect(reasonOf({ workers: 9, maxWorkers: 8 })).toBe('too-many-workers');
    expect(reasonOf({ components: [component('x', { hint: 9, tasks: 1 })], maxExecutors: 8 })).toBe(
      'too-many-executors',
    );
    expect(reasonOf({ maxExecutors: 0 })).toBe('too-many-executors');
  });
});
