import { describe, expect, it } from 'vitest';
import { parseEntry } from './log-entry.js';

describe('a record of a log', () => {
  it('of a daemon says which topology and worker it is about', () => {
    const line = JSON.stringify({
      ...{ level: 30, time: '2026-11-30T12:00:00.000Z', daemon: 'nimbus', pid: 7 },
      ...{ topology: 'words-1', worker: 's1:6700', msg: 'topology.submitted' },
    });
    expect(parseEntry('nimbus', line, 0)?.fields).toEqual({ topology: 'words-1', worker: 's1:6700' });
  });

  it('is read behind the part of another one that a full disk had cut', () => {
    const line = JSON.stringify({
      level: 40,
      time: '2026-11-30T12:00:00.000Z',
      count: 5,
      msg: 'log.dropped',
    });
    expect(parseEntry('s1:6700', `{"level":30,"time":"2026-11-3${line}`, 0)).toMatchObject({
      ...{ level: 'warn', timeMs: Date.parse('2026-11-30T12:00:00.000Z'), message: 'log.dropped' },
      fields: { count: 5 },
    });
    expect(parseEntry('s1:6700', '{"level":30,"ti', 7)).toMatchObject({ output: 'raw', timeMs: 7 });
  });

  it('of a worker leaves out what every record of it says', () => {
    const line = JSON.stringify({
      ...{ level: 30, time: '2026-11-30T12:00:00.000Z', topology: 'words-1', worker: 's1:6700', pid: 7 },
      ...{ thread: 0, msg: 'worker.ready' },
    });
    expect(parseEntry('s1:6700', line, 0)?.fields).toEqual({ thread: 0 });
  });
});
