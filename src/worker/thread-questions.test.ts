import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../base/index.js';
import type { ThreadHost } from './thread-host.js';
import type { ToThread } from './thread-messages.js';
import { ThreadQuestions } from './thread-questions.js';

function host(key: string): { host: ThreadHost; asked: ToThread[] } {
  const asked: ToThread[] = [];
  // What is not used is left out.
  return {
    host: { key, post: (message: ToThread) => void asked.push(message) } as unknown as ThreadHost,
    asked,
  };
}

const question = (id: number): ToThread => ({ kind: 'find-row', id, rootTask: 1, sequence: 2 });

function idOf([first]: readonly ToThread[]): number {
  return first !== undefined && 'id' in first ? first.id : 0;
}

describe('a question to threads', () => {
  it('is answered when all have answered, each once', async () => {
    const questions = new ThreadQuestions(new VirtualClock());
    const [one, two] = [host('0/1'), host('1/1')];
    const answered = questions.ask([one.host, two.host], question, 500);
    const answer = { kind: 'found-row', id: idOf(one.asked), holder: 'here' } as const;
    questions.onAnswer(one.host, answer);
    questions.onAnswer(one.host, answer);
    questions.onAnswer(two.host, { ...answer, holder: null });
    expect(await answered).toEqual({ answers: [answer, { ...answer, holder: null }], silent: 0 });
    questions.onAnswer(two.host, answer);
  });

  it('does not wait for threads that a call holds up, and asks none where there is none', async () => {
    const clock = new VirtualClock();
    const questions = new ThreadQuestions(clock);
    const [one, two] = [host('0/1'), host('1/1')];
    const answered = questions.ask([one.host, two.host], question, 500);
    questions.onAnswer(two.host, {
      kind: 'found-row',
      id: idOf(two.asked),
      holder: null,
    });
    clock.advance(500);
    expect(await answered).toMatchObject({ answers: [{ kind: 'found-row' }], silent: 1 });
    expect(await questions.ask([], question, 500)).toEqual({ answers: [], silent: 0 });
  });
});
