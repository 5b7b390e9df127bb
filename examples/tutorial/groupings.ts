import { bolt, spout, t, topology } from 'isobar';

const TASKS = 3;
const fields = { user: t.string, page: t.string, visit: t.int32 };

const visits = spout({
  emits: fields,
  *read(_context, from = 0) {
    for (let visit = from; visit < 60; visit++) {
      yield { row: { user: `user-${visit % 5}`, page: `page-${visit % 4}`, visit }, position: visit + 1 };
    }
  },
});

const send = bolt({
  takes: fields,
  streams: { named: fields },
  process(row, out) {
    out.directTo.named(row.visit % TASKS, row);
  },
});

const receive = bolt({
  takes: fields,
  prepare(context) {
    let rows = 0;
    return {
      process() {
        rows++;
      },
      end() {
        console.log(`${context.component} ${context.index} ${rows}`);
      },
    };
  },
});

export default topology('groupings', (b) => {
  const source = b.spout('visits', visits);
  const receiver = (id: string) => b.bolt(id, receive, { parallelism: TASKS });

  receiver('shuffle').shuffle(source);
  receiver('local-or-shuffle').localOrShuffle(source);
  receiver('fields').fields(source, ['user', 'page']);
  receiver('partial-key').partialKey(source, ['user']);
  receiver('all').all(source);
  receiver('global').global(source);
  receiver('none').none(source);
  receiver('direct').direct(b.bolt('send', send).shuffle(source).streams.named);
  receiver('custom').custom(source, () => ({
    choose: ({ page }, taskCount) => Number(page.slice('page-'.length)) % taskCount,
  }));
});
