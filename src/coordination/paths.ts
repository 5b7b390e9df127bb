/** Where each kind of value lives in the node store, and how ids become names of nodes. Pure. */

export const LEADER_PATH = '/leader';
export const SUPERVISORS_PATH = '/supervisors';
export const TOPOLOGIES_PATH = '/topologies';
export const ASSIGNMENTS_PATH = '/assignments';
export const GENERATIONS_PATH = '/generations';
export const POSITIONS_PATH = '/positions';
export const HANDOVERS_PATH = '/handovers';
export const HEARTBEATS_PATH = '/heartbeats';
export const WORKERS_PATH = '/workers';
export const ACKNOWLEDGED_PATH = '/acknowledged';
const CHUNKS_PATH = '/chunks';

/** Every path that only has children. */
export const PARENT_PATHS: readonly string[] = [
  SUPERVISORS_PATH,
  TOPOLOGIES_PATH,
  ASSIGNMENTS_PATH,
  GENERATIONS_PATH,
  POSITIONS_PATH,
  HEARTBEATS_PATH,
  WORKERS_PATH,
  CHUNKS_PATH,
];

/** The path of the child that stands for `id`. */
export function childPath(parent: string, id: string): string {
  return `${parent}/${nameOfId(id)}`;
}

/** The parent of the chunks that the value at `path` is cut into. */
export function chunksPath(path: string): string {
  return CHUNKS_PATH + path;
}

/**
 * Any string as the name of a node. Letters, digits, `-`, `_` and inner dots stay; every other UTF-16 unit becomes
 * `%` and four hex digits, so that `/`, `..`, unpaired surrogates and what ZooKeeper refuses can all be ids.
 */
export function nameOfId(id: string): string {
  if (id === '') return '%';
  return id.replaceAll(/^\.|[^\w.-]/g, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The id that a name stands for. */
export function idOfName(name: string): string {
  if (name === '%') return '';
  return name.replaceAll(/%([0-9a-f]{4})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
