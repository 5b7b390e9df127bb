/** Descriptions as one text, and freezing. */
import type { TopologyDescription } from './description.js';

/**
 * The description as JSON text that is equal for equal graphs, whatever order keys were set in: for hashing and for
 * comparing. Warnings follow from the rest and are left out.
 */
export function canonicalDescription(description: TopologyDescription): string {
  const { format, name, settings, components } = description;
  return JSON.stringify({ format, name, settings, components }, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Freezes plain data through and through. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
