/**
 * What every link must do, whatever it is made of: bring each row of a stream to the other end unchanged and in order, with
 * the fields that the other end sees. Run for the three links by link.test.ts.
 */
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FieldDescription, Row } from '../topology/index.js';
import { createRowCodec } from './codec.js';
import { createRowView, type RowView } from './row-view.js';
import { anyStream, KINDS } from './rows.conformance.js';

export interface TestLink {
  /** Sends canonical rows of a stream and resolves to the same number of rows as the other end has them. */
  pass(view: RowView, rows: readonly Row[]): Promise<Row[]>;
  close(): Promise<void>;
}

const SEED = 20_264;

/** A stream of which the other end sees everything. */
function whole(fields: readonly FieldDescription[]): RowView {
  return createRowView(createRowCodec(fields), () => true);
}

function nullable(kind: FieldDescription['kind']): FieldDescription {
  return { name: kind, kind, nullable: true };
}

export function linkConformance(name: string, create: () => Promise<TestLink>): void {
  describe(`a link (${name})`, () => {
    let link: TestLink;
    beforeAll(async () => {
      link = await create();
    });
    afterAll(() => link.close());

    async function passes(fields: readonly FieldDescription[], rows: readonly Row[]): Promise<void> {
      const view = whole(fields);
      const canonical = rows.map((row) => view.codec.canonical(row));
      deepStrictEqual(await link.pass(view, canonical), canonical);
    }

    it('passes generated rows of generated streams unchanged and in order', async () => {
      await fc.assert(
        fc.asyncProperty(anyStream(), ({ fields, rows }) => passes(fields, rows)),
        { seed: SEED, numRuns: 150 },
      );
    });

    it('passes the fields that the other end sees, in the order of the stream, and no others', async () => {
      await fc.assert(
        fc.asyncProperty(anyStream(), fc.integer(), async ({ fields, rows }, chosen) => {
          const stream = createRowCodec(fields);
          const seen = fields.filter((_, i) => ((chosen >> i) & 1) === 1).map(({ name }) => name);
          const view = createRowView(stream, (name) => seen.includes(name));
          const canonical = rows.map((row) => stream.canonical(row));
          const before = canonical.map((row) => ({ ...row }));
          const received = await link.pass(view, canonical);
          deepStrictEqual(
            received,
            canonical.map((row) => Object.fromEntries(seen.map((name) => [name, row[name]]))),
          );
          const keysOfSeen = Object.keys(Object.fromEntries(seen.map((name) => [name, 0])));
          for (const row of received) expect(Object.keys(row)).toEqual(keysOfSeen);
          // Another subscriber may be given the same row.
          deepStrictEqual(canonical, before);
        }),
        { seed: SEED, numRuns: 150 },
      );
    });

    it.each<[string, FieldDescription['kind'], unknown[]]>([
      ['numbers', 'float64', [NaN, Infinity, -Infinity, -0, 0, 5e-324, Number.MAX_VALUE, 0.1 + 0.2]],
      ['whole numbers', 'int64', [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, -0, 0, 2 ** 32]],
      ['small whole numbers', 'int32', [2 ** 31 - 1, -(2 ** 31), -0, -1]],
      ['times', 'timestamp', [0, -0, 8.64e15, -1.5, 1_700_000_000_000.125]],
      ['strings', 'string', ['', 'é', '\ud800', 'a\udfffb', '😀', '\u0000', 'ÿ'.repeat(500)]],
      ['big integers', 'bigint', [0n, -1n, 2n ** 63n, -(2n ** 63n) - 1n, 2n ** 10_000n]],
      ['bytes', 'bytes', [new Uint8Array(), Buffer.from([0, 255]), new Uint8Array(100_000).fill(7)]],
      [
        'other values',
        'json',
        [
          { a: -0, b: [NaN, undefined, '\ud800'], c: new Map([[{ k: 1 }, new Set([1n])]]) },
          new Date(-1),
          [new Float64Array([1.5]), /x/g],
          JSON.parse('{"__proto__":{"polluted":true}}'),
        ],
      ],
    ])('passes %s with all their edges', async (_, kind, values) => {
      await passes(
        [nullable(kind)],
        [...values, null].map((value) => ({ [kind]: value })),
      );
    });

    it('passes an invalid date', async () => {
      // Apart from the others: two invalid dates are not deeply equal.
      const view = whole([nullable('json')]);
      const [row] = await link.pass(view, [view.codec.canonical({ json: new Date(Number.NaN) })]);
      expect((row!['json'] as Date).getTime()).toBeNaN();
    });

    it('passes a row of nulls, and a row without fields', async () => {
      await passes(KINDS.map(nullable), [{}, {}]);
      await passes([], [{}, {}, {}]);
    });

    it('passes rows of megabytes between small ones', async () => {
      const fields = [nullable('string'), nullable('bytes'), nullable('json'), nullable('int32')];
      await passes(fields, [
        { int32: 1 },
        { int32: 2, string: 'abcdefgh'.repeat(250_000), bytes: new Uint8Array(700_001).fill(3) },
        { int32: 3, string: 'é\ud800'.repeat(300_000), json: ['x'.repeat(1_000_000)] },
        { int32: 4 },
      ]);
    });

    it('passes many rows in order', async () => {
      const rows = Array.from({ length: 5000 }, (_, n) => ({ int32: n, string: `word${n % 100}` }));
      await passes([nullable('string'), nullable('int32')], rows);
    });

    it('hands out nothing that the sender can still change', async () => {
      const view = whole([nullable('bytes'), nullable('json')]);
      const bytes = Buffer.from([1]);
      const json = { list: [1] };
      const arriving = link.pass(view, [view.codec.canonical({ bytes, json })]);
      bytes[0] = 2;
      json.list[0] = 2;
      const [row] = await arriving;
      expect(row).toEqual({ bytes: new Uint8Array([1]), json: { list: [1] } });
    });
  });
}
