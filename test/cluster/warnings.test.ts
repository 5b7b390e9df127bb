/** What a run is warned of while it goes on: calls of user code that do not return, and rows that nothing would replay. */
import { afterAll, describe, expect, it } from 'vitest';
import { Workshop } from './command.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

/** Each call of user code hangs for a while, one after the other, in the only thread. */
const HANGING = `
import { bolt, spout, t, topology } from 'isobar';

const hang = () => { for (const end = Date.now() + 1500; Date.now() < end; ); };
const fields = { n: t.int32 };
const low = spout({
  emits: fields,
  open() {
    let n = 0;
    return {
      next(out) { if (n === 2) return 'ended'; out.emit({ n }, { id: n++ }); return; },
      ack(id) { if (id === 0) hang(); },
      fail(id) { if (id === 1) hang(); },
    };
  },
});
const slow = bolt({
  takes: fields,
  emits: fields,
  prepare() {
    hang();
    return {
      async process({ n }, out) {
        out.emit({ n });
        if (n === 1) throw new Error('one');
        await new Promise((resolve) => setTimeout(resolve, 10));
        hang();
      },
    };
  },
});
const closing = bolt({ takes: fields, process() {}, close() { hang(); } });

export default topology('hanging', (b) => {
  const rows = b.bolt('slow', slow).shuffle(b.spout('low', low));
  b.bolt('closing', closing).custom(rows, () => ({ choose({ n }) { if (n === 0) hang(); return 0; } }));
});
`;

describe('a call of user code that does not return', () => {
  it('is named, wherever it hangs, with its task and for how long', async () => {
    workshop.write('hanging.ts', HANGING);
    const command = workshop.start([
      'run',
      'hanging.ts',
      '--no-check',
      '--json',
      ...[
        'worker.stuck-warning=300ms',
        'supervisor.heartbeat-interval=100ms',
        'topology.executor-threads=1',
      ].flatMap((setting) => ['--set', setting]),
    ]);
    await command.ended;
    const warnings = command.lines().filter(({ type }) => type === 'warning');
    const texts = warnings.map(({ text }) => String(text).replace(/ for .*/u, ''));
    expect(texts).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^slow task \d+ has been stuck in prepare$/u),
        expect.stringMatching(/^slow task \d+ has been stuck in a custom grouping$/u),
        'user code has been stuck outside any call',
        expect.stringMatching(/^low task \d+ has been stuck in ack$/u),
        expect.stringMatching(/^low task \d+ has been stuck in fail$/u),
        expect.stringMatching(/^closing task \d+ has been stuck in close$/u),
      ]),
    );
    expect(warnings[0]).toMatchObject({ component: 'slow' });
    expect(warnings[0]!['text']).toMatch(/ for \d.*s; thread 0 of worker 6700 does nothing else meanwhile$/u);
    expect(command.lines().some(({ longCalls }) => Array.isArray(longCalls) && longCalls.length > 0)).toBe(
      true,
    );
  });

  it('is named without a terminal too, also where it is a promise that stays open', async () => {
    workshop.write(
      'open.ts',
      HANGING.replace(
        'prepare() {\n    hang();',
        'async prepare() {\n    await new Promise((resolve) => setTimeout(resolve, 1500));',
      ),
    );
    const { stderr } = await workshop.run([
      'run',
      'open.ts',
      '--no-check',
      ...['worker.stuck-warning=300ms', 'supervisor.heartbeat-interval=100ms'].flatMap((setting) => [
        '--set',
        setting,
      ]),
    ]);
    expect(stderr).toMatch(/^warning: the promise of prepare of slow task \d+ has been open for \d.*s$/mu);
    expect(stderr).toMatch(/^warning: low task \d+ has been stuck in ack for .*$/mu);
  });
});

describe('a thread that is stuck for longer than it may be', () => {
  it('is ended, which is said of the task that it was stuck in, and the row is replayed', async () => {
    workshop.write(
      'stuck.ts',
      `
import { existsSync, writeFileSync } from 'node:fs';
import { bolt, spout, t, topology } from 'isobar';

const fields = { n: t.int32 };
const rows = spout({
  emits: fields,
  *read(_context, from?: number) { for (let n = from ?? 0; n < 10; n++) yield { row: { n }, position: n + 1 }; },
});
const loops = bolt({
  takes: fields,
  process({ n }) {
    if (n !== 3 || existsSync('looped')) return;
    writeFileSync('looped', '');
    for (;;);
  },
});
export default topology('stuck', (b) => { b.bolt('loops', loops).shuffle(b.spout('rows', rows)); });
`,
    );
    const settings = [
      'worker.stuck-warning=300ms',
      'worker.stuck-timeout=600ms',
      'supervisor.heartbeat-interval=100ms',
      'topology.executor-threads=1',
    ];
    const command = workshop.start([
      'run',
      'stuck.ts',
      '--no-check',
      '--json',
      ...settings.flatMap((setting) => ['--set', setting]),
    ]);
    await command.ended;
    expect(command.line('problem')).toMatchObject({ code: 'THREAD_STUCK', component: 'loops' });
    expect(command.line('problem')!['message']).toMatch(
      /it was stuck in process for \d+ s, and worker\.stuck-timeout ended it/u,
    );
    expect(command.line('summary')).toMatchObject({
      outcome: 'finished',
      exitCode: 0,
      accounts: { deadLetters: 0, givenUp: 0, left: 0 },
    });
  });
});

describe('a source that cannot replay', () => {
  const app = (yielded: string): string => `
import { bolt, spout, t, topology } from 'isobar';
const source = spout({ emits: { n: t.int32 }, *read() { for (let n = 0; n < 5; n++) yield ${yielded}; } });
const sink = bolt({ takes: { n: t.int32 }, process() {} });
export default topology('source', (b) => { b.bolt('sink', sink).shuffle(b.spout('source', source)); });
`;

  it('is warned of once, and counted at the end', async () => {
    workshop.write('bare.ts', app('{ row: { n } }'));
    const plain = await workshop.run(['run', 'bare.ts', '--no-check']);
    const warning = 'warning: source emits rows without a position, and nothing else replays them';
    expect(plain.stderr.split(warning)).toHaveLength(2);
    expect(plain.stdout).toContain('Nothing would have replayed 5 rows of source, which had no position.');
    expect(plain.code).toBe(0);
    const command = workshop.start(['run', 'bare.ts', '--no-check', '--json']);
    await command.ended;
    expect(command.lines().filter(({ type }) => type === 'warning')).toMatchObject([{ component: 'source' }]);
    expect(command.line('summary')).toMatchObject({
      components: [expect.objectContaining({ id: 'source', unreplayable: 5 }), expect.anything()],
    });
  });

  it.each([
    ['where rows have positions', app('{ row: { n }, position: n + 1 }'), []],
    ['where acking is off', app('{ row: { n } }'), ['--set', 'topology.ackers=0']],
    ['where the source hears of failures', HANGING.replaceAll('hang();', ''), []],
  ])('is not warned of %s', async (_, text, flags) => {
    workshop.write('fine.ts', text);
    const { stderr, stdout } = await workshop.run(['run', 'fine.ts', '--no-check', ...flags]);
    expect(stderr).not.toContain('warning:');
    expect(stdout).not.toContain('Nothing would have replayed');
  });
});
