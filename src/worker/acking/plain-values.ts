/**
 * Turns any value of a row into one that JSON can hold, without losing what it was. What JSON cannot say becomes an
 * object with one key that starts with `$`; an object of the user's that looks like one is written as `$object`.
 *
 *     1n → {"$bigint":"1"}         Uint8Array → {"$bytes":"base64"}    NaN, ±Infinity, -0 → {"$number":"NaN"}
 *     Date → {"$date":"2026-…"}    Map → {"$map":[[key,value],…]}      Set → {"$set":[…]}
 *     undefined → {"$undefined":true}                                  {"$x":1} → {"$object":[["$x",1]]}
 *     functions, symbols, cycles → {"$unwritable":"function"}
 */

/** The JSON form of a value; what it returns shares nothing with the value. */
export function encodePlain(value: unknown): unknown {
  return encode(value, []);
}

function encode(value: unknown, parents: readonly object[]): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: numberName(value) };
    case 'bigint':
      return { $bigint: value.toString() };
    case 'undefined':
      return { $undefined: true };
    case 'function':
    case 'symbol':
      return { $unwritable: typeof value };
    case 'object':
      return value === null ? null : encodeObject(value, parents);
  }
}

function encodeObject(value: object, parents: readonly object[]): unknown {
  if (parents.includes(value)) return { $unwritable: 'cycle' };
  const here = [...parents, value];
  if (value instanceof Uint8Array) {
    return { $bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') };
  }
  if (value instanceof Date) return { $date: Number.isNaN(value.getTime()) ? null : value.toISOString() };
  if (value instanceof Map) return { $map: [...value].map((pair) => pair.map((part) => encode(part, here))) };
  if (value instanceof Set) return { $set: [...value].map((element) => encode(element, here)) };
  if (Array.isArray(value)) return Array.from(value, (element) => encode(element, here));
  const entries = Object.entries(value).map(([key, part]) => [key, encode(part, here)] as const);
  if (entries.length === 1 && entries[0]![0].startsWith('$')) return { $object: entries };
  return Object.fromEntries(entries);
}

function numberName(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}
