import { bolt, spout, t, topology } from 'isobar';

const order = { id: t.string, amount: t.float64 };
const payment = { id: t.string, at: t.timestamp };

const shop = spout({
  emits: order,
  streams: { payments: payment },
  *read(_context, from = 0) {
    for (let i = from; i < 10; i++) {
      const id = `order-${i}`;
      if (i % 3 !== 0) yield { row: { id, at: 1_700_000_000_000 + i }, stream: 'payments' as const };
      yield { row: { id, amount: i * 1.5 }, position: i + 1 };
    }
  },
});

const join = bolt({
  inputs: { order, payment },
  emits: { id: t.string, amount: t.float64, at: t.timestamp },
  streams: { unpaid: { id: t.string } },
  prepare() {
    const amounts = new Map<string, number>();
    const payments = new Map<string, number>();
    return {
      process: {
        order({ id, amount }, out) {
          amounts.set(id, amount);
          const at = payments.get(id);
          if (at !== undefined) out.emit({ id, amount, at });
        },
        payment({ id, at }, out) {
          payments.set(id, at);
          const amount = amounts.get(id);
          if (amount !== undefined) out.emit({ id, amount, at });
        },
      },
      end(out) {
        for (const id of amounts.keys()) if (!payments.has(id)) out.to.unpaid({ id });
      },
    };
  },
});

const show = bolt({
  inputs: { paid: { id: t.string, amount: t.float64 }, unpaid: { id: t.string } },
  process: {
    paid({ id, amount }) {
      console.log(`${id} paid ${amount}`);
    },
    unpaid({ id }) {
      console.log(`${id} unpaid`);
    },
  },
});

export default topology('join', (b) => {
  const orders = b.spout('shop', shop);
  const joined = b
    .bolt('join', join, { parallelism: 2 })
    .on.order.fields(orders, ['id'])
    .on.payment.fields(orders.streams.payments, ['id']);
  b.bolt('show', show).on.paid.shuffle(joined).on.unpaid.shuffle(joined.streams.unpaid);
});
