/**
 * The rules for names and counts, and the limits on the size of a topology. Each check returns what is wrong, or
 * undefined. The rules for topology names, component ids and stream names are those of Storm.
 */
import { DEFAULT_STREAM } from './description.js';
import { show, type TopologyFault } from './faults.js';

/** Longest name, in UTF-16 units: names become names of files and sockets. */
export const MAX_NAME_LENGTH = 200;
export const MAX_COMPONENTS = 10_000;
export const MAX_STREAMS = 1_000;
export const MAX_FIELDS = 1_000;
export const MAX_SUBSCRIPTIONS = 10_000;
export const MAX_PARALLELISM = 1_000_000;
/** Longest period of `tick`: what a timer of Node can wait. */
export const MAX_TICK_MS = 2_147_483_647;

/** Heaviest executor; bounds sums, so that they stay exact. */
export const MAX_LOAD = 1_000_000_000;

export type NameFault = Omit<TopologyFault, 'where'>;

export function topologyNameFault(name: unknown): NameFault | undefined {
  if (isPlainName(name) && !/[/.:\\]/.test(name)) return undefined;
  return {
    code: 'TOPOLOGY_NAME_ILLEGAL',
    message: `${show(name)} is not a topology name`,
    expected: `a text of 1 to ${MAX_NAME_LENGTH} characters without / . : \\ and control characters`,
    found: show(name),
  };
}

export function componentIdFault(id: unknown): NameFault | undefined {
  if (isPlainName(id) && !id.startsWith('__')) return undefined;
  return {
    code: 'COMPONENT_ID_ILLEGAL',
    message: `${show(id)} is not a component id`,
    expected: reservedRule,
    found: show(id),
  };
}

/** The name of a further stream; `default` is the one that `emits` declares. */
export function streamNameFault(name: unknown): NameFault | undefined {
  if (isPlainName(name) && !name.startsWith('__') && name !== DEFAULT_STREAM) return undefined;
  return {
    code: 'STREAM_ID_ILLEGAL',
    message: `${show(name)} is not a stream name`,
    expected:
      name === DEFAULT_STREAM ? 'another name: `emits` declares the stream named default' : reservedRule,
    found: show(name),
  };
}

/** The name of one of several inputs; `default` is the one that `takes` declares. */
export function inputNameFault(name: unknown): NameFault | undefined {
  if (isPlainName(name) && !name.startsWith('__') && name !== DEFAULT_STREAM) return undefined;
  return {
    code: 'DEFINITION_ILLEGAL',
    message: `${show(name)} is not an input name`,
    expected:
      name === DEFAULT_STREAM ? 'another name: `takes` declares the input named default' : reservedRule,
    found: show(name),
  };
}

export function fieldNameFault(name: unknown): NameFault | undefined {
  if (typeof name === 'string' && name.length > 0 && name.length <= MAX_NAME_LENGTH && name !== '__proto__')
    return undefined;
  return {
    code: 'FIELD_NAME_ILLEGAL',
    message: `${show(name)} is not a field name`,
    expected: `a text of 1 to ${MAX_NAME_LENGTH} characters other than __proto__`,
    found: show(name),
  };
}

/** The name of a slot sharing group or a co-location group; undefined: in none. */
export function groupNameFault(name: string | undefined, what: string): NameFault | undefined {
  if (name === undefined || isPlainName(name)) return undefined;
  return {
    code: 'DEFINITION_ILLEGAL',
    message: `${what} is ${show(name)}`,
    expected: `a text of 1 to ${MAX_NAME_LENGTH} characters without control characters`,
    found: show(name),
  };
}

/** A parallelism hint or a number of tasks. */
export function countFault(value: unknown, what: string): NameFault | undefined {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_PARALLELISM)
    return undefined;
  return {
    code: 'PARALLELISM_ILLEGAL',
    message: `${what} is ${show(value)}`,
    expected: `a whole number from 1 to ${MAX_PARALLELISM}`,
    found: show(value),
  };
}

const reservedRule = `a text of 1 to ${MAX_NAME_LENGTH} characters that does not start with __, without control characters`;

function isPlainName(name: unknown): name is string {
  // Control characters would break lines of logs and of the live screen.
  return (
    typeof name === 'string' &&
    name.length > 0 &&
    name.length <= MAX_NAME_LENGTH &&
    !/[\u0000-\u001f\u007f]/.test(name)
  );
}
