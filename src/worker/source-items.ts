/** What a source gives, looked at before it is believed: an item of a generator, and the position of a row. Pure. */
import { IsobarError } from '../base/index.js';
import type { SourceRow } from '../topology/index.js';

/** Deeper positions are refused: those that run in circles are among them. */
const MAX_POSITION_DEPTH = 32;

/** @throws EMIT_TYPE_MISMATCH for what is no item, SPOUT_POSITION_ILLEGAL */
export function checkItem(item: SourceRow, component: string): void {
  // The types of `isobar` say what it is; JavaScript and `any` need not keep to them.
  if (typeof (item as unknown) !== 'object' || (item as unknown) === null) {
    throw new IsobarError('EMIT_TYPE_MISMATCH', `read of "${component}" gave something that is no row`, {
      expected: '{ row, position?, stream? }, or an array of such',
      found: (item as unknown) === null ? 'null' : typeof item,
      where: `spout "${component}", read`,
    });
  }
  checkPosition(item.position, component);
}

/** @throws SPOUT_POSITION_ILLEGAL for what would not come back from the disk as it was */
export function checkPosition(position: unknown, component: string): void {
  // Nearly always one of these.
  if (typeof position === 'string' || Number.isFinite(position) || position === undefined) return;
  const found = illegalPart(position, 0);
  if (found === undefined) return;
  throw new IsobarError('SPOUT_POSITION_ILLEGAL', `a position of "${component}" cannot be stored`, {
    expected: 'finite numbers, texts, booleans, null, and arrays and plain objects of such',
    found,
    where: `spout "${component}"`,
  });
}

function illegalPart(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : `the number ${value}`;
    case 'object':
      break;
    case 'undefined':
      return 'undefined in an array';
    default:
      return `a ${typeof value}`;
  }
  if (value === null) return undefined;
  if (depth === MAX_POSITION_DEPTH) return `an object deeper than ${MAX_POSITION_DEPTH} others, or in itself`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null)
    return `an object of class ${className(prototype)}`;
  // Each row may have such a position: nothing is allocated for one that is legal.
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = illegalPart(value[index], depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    const part = (value as Record<string, unknown>)[key];
    // Fields that are undefined come back as fields that are not there, which reads the same.
    const found = part === undefined ? undefined : illegalPart(part, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function className(prototype: unknown): string {
  const { constructor } = prototype as { readonly constructor?: unknown };
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'without a name';
}
