/** The parts of `isobar run --json` that the benches read (docs/json-output.md), checked as they come in. */

export interface ComponentLine {
  readonly id: string;
  readonly kind: string;
  readonly executed: number;
  readonly emitted: number;
  readonly latency: { readonly p50Micros: number | null; readonly p99Micros: number | null };
}

export interface TotalsLine {
  readonly emitted: number;
  readonly acked: number;
  readonly failed: number;
  readonly replayed: number;
}

/** A `status` or `summary` line. */
export interface CountsLine {
  readonly type: 'status' | 'summary';
  readonly atMs: number;
  /** Of a status. */
  readonly phase: string;
  /** Of a summary. */
  readonly outcome: string;
  readonly totals: TotalsLine;
  readonly components: readonly ComponentLine[];
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The counts of a line; undefined for lines of other types.
 *
 * @throws Error when a status or summary has another shape than the documented one
 */
export function parseCounts(line: unknown): CountsLine | undefined {
  const fields = fieldsOf(line, 'line');
  const { type } = fields;
  if (type !== 'status' && type !== 'summary') return undefined;
  const totals = fieldsOf(fields['totals'], 'totals');
  return {
    type,
    atMs: numberOf(fields, 'atMs'),
    phase: textOf(fields['phase']),
    outcome: textOf(fields['outcome']),
    totals: {
      emitted: numberOf(totals, 'emitted'),
      acked: numberOf(totals, 'acked'),
      failed: numberOf(totals, 'failed'),
      replayed: numberOf(totals, 'replayed'),
    },
    components: listOf(fields['components']).map(parseComponent),
  };
}

export function component(counts: CountsLine, id: string): ComponentLine {
  const found = counts.components.find((one) => one.id === id);
  if (found === undefined) throw new Error(`A ${counts.type} line does not name the component "${id}".`);
  return found;
}

function parseComponent(value: unknown): ComponentLine {
  const fields = fieldsOf(value, 'component');
  const latency = fieldsOf(fields['latency'], 'latency');
  const micros = (name: string): number | null => (latency[name] === null ? null : numberOf(latency, name));
  return {
    id: textOf(fields['id']),
    kind: textOf(fields['kind']),
    executed: numberOf(fields, 'executed'),
    emitted: numberOf(fields, 'emitted'),
    latency: { p50Micros: micros('p50Micros'), p99Micros: micros('p99Micros') },
  };
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`isobar run --json: the ${what} is ${JSON.stringify(value)}; an object was expected.`);
  }
  // An object's fields can be read as unknown whatever they are.
  return value as Fields;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value === 'number') return value;
  throw new Error(`isobar run --json: ${name} is ${JSON.stringify(value)}; a number was expected.`);
}
