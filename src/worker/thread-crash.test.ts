import { describe, expect, it } from 'vitest';
import { createCrash } from './thread-crash.js';
import type { ThreadCrashed } from './thread-messages.js';

describe('a crash of a thread', () => {
  it('is told once and thrown once, whatever fails after it', () => {
    const posted: ThreadCrashed[] = [];
    const thrown: (() => void)[] = [];
    const crash = createCrash(
      (message) => void posted.push(message),
      (run) => void thrown.push(run),
    );
    expect(() => crash(new Error('first'))).not.toThrow();
    crash(new Error('second'));
    expect(posted).toMatchObject([{ kind: 'crashed', error: { message: 'first' } }]);
    expect(thrown).toHaveLength(1);
    expect(thrown[0]).toThrow('first');
  });
});
