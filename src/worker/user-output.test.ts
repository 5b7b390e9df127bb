import { Console } from 'node:console';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../base/index.js';
import { captureOutput, outputRecords, type Capture, type OutputTarget } from './user-output.js';

function capturing(onText: (kind: string, text: string) => void): {
  target: OutputTarget;
  capture: Capture;
  passed: string[];
} {
  const passed: string[] = [];
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  for (const stream of [stdout, stderr]) stream.on('data', (chunk: Buffer) => passed.push(chunk.toString()));
  const target = {
    stdout: stdout as unknown as OutputTarget['stdout'],
    stderr: stderr as unknown as OutputTarget['stderr'],
    console: new Console(stdout, stderr),
  };
  return { target, capture: captureOutput(target, onText), passed };
}

describe('captured output', () => {
  it('is one record a text, of the kind of its call, lines within it kept', () => {
    const seen: unknown[] = [];
    const { target } = capturing((...record) => seen.push(record));
    target.console.log('%d rows', 3, { a: 1 });
    target.console.debug('d');
    target.console.warn('w\nx');
    target.console.error(new Error('no').message);
    target.console.table([{ n: 1 }]);
    target.stdout.write('plain\n');
    target.stderr.write('bad\n');
    expect(seen.filter((_, place) => place !== 4)).toEqual([
      ['log', '3 rows { a: 1 }'],
      ['debug', 'd'],
      ['warn', 'w\nx'],
      ['error', 'no'],
      ['stdout', 'plain'],
      ['stderr', 'bad'],
    ]);
    expect(String((seen[4] as unknown[])[1])).toContain('(index)');
  });

  it('waits for the end of a line, keeps characters whole, and gives what is left when asked', () => {
    const seen: string[] = [];
    const { target, capture } = capturing((_, text) => seen.push(text));
    const bytes = Buffer.from('grüße\nrest');
    target.stdout.write(bytes.subarray(0, 3));
    target.stdout.write(bytes.subarray(3));
    expect(seen).toEqual(['grüße']);
    capture.flush();
    capture.flush();
    expect(seen).toEqual(['grüße', 'rest']);
  });

  it('cuts a text that is too long for one record', () => {
    const seen: string[] = [];
    const { target } = capturing((_, text) => seen.push(text));
    target.stdout.write(`${'x'.repeat(600_000)}\n`);
    expect(seen.map(({ length }) => length)).toEqual([262_144, 262_144, 75_712]);
  });

  it('calls the callback of a write later, and passes nothing on until it is released', async () => {
    const { target, capture, passed } = capturing(() => undefined);
    let isLater = false;
    await new Promise<void>((resolve, reject) => {
      target.stdout.write('a\n', 'utf8', () => (isLater ? resolve() : reject(new Error('at once'))));
      isLater = true;
    });
    capture.release();
    target.console.log('b');
    expect(passed).toEqual(['b\n']);
  });

  it('names component and task where they are known, and keeps the level of the call', () => {
    const lines: string[] = [];
    const file = { write: (line: string) => void lines.push(line) };
    const tasks: { component: string; task: number }[] = [];
    const record = outputRecords(createLogger({ file, level: 'debug' }), () => tasks[0]);
    record('log', 'nobody');
    tasks.push({ component: 'split', task: 7 });
    record('error', 'broken');
    record('debug', 'small');
    record('stderr', 'raw');
    const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(records).toMatchObject([
      { level: 30, output: 'log', msg: 'nobody' },
      { level: 50, output: 'error', msg: 'broken', component: 'split', task: 7 },
      { level: 20, output: 'debug', component: 'split', task: 7 },
      { level: 40, output: 'stderr' },
    ]);
    expect(records[0]).not.toHaveProperty('task');
  });
});
