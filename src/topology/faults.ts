/** Faults of a definition, a graph or a description: collected, so that all of them are reported at once. */
import { IsobarError, type ErrorCode } from '../base/index.js';

/** One broken rule. */
export interface TopologyFault {
  readonly code: ErrorCode;
  /** One sentence without a full stop. */
  readonly message: string;
  /** The component, stream or input, in the words of the file. */
  readonly where: string;
  readonly expected?: string;
  readonly found?: string;
}

/** Faults beyond these are counted only: nobody reads more, and a hostile description must not make a huge error. */
const MAX_REPORTED_FAULTS = 100;

/**
 * Throws one error for all faults, if there are any: code and details are those of the first, `details.faults` has all.
 * Where several faults expect different things, the line of each says what it expects.
 *
 * @param code takes the place of the first fault's code
 */
export function throwFaults(faults: readonly TopologyFault[], code?: ErrorCode, cause?: unknown): void {
  const [first] = faults;
  if (first === undefined) return;
  const reported = faults.slice(0, MAX_REPORTED_FAULTS);
  const isOneRule = reported.every(({ expected }) => expected === first.expected);
  const lines = reported.map((fault) => (isOneRule ? faultLine(fault) : fullLine(fault)));
  if (faults.length > reported.length) lines.push(`and ${faults.length - reported.length} more`);
  const message = lines.length === 1 ? lines[0]! : `${faults.length} faults:\n  ${lines.join('\n  ')}`;
  throw new IsobarError(
    code ?? first.code,
    message,
    {
      ...(first.expected === undefined ? {} : { expected: first.expected }),
      ...(first.found === undefined ? {} : { found: first.found }),
      where: first.where,
      faults: reported,
    },
    cause,
  );
}

function faultLine(fault: TopologyFault): string {
  return fault.where === '' ? fault.message : `${fault.where}: ${fault.message}`;
}

function fullLine(fault: TopologyFault): string {
  const { expected, found } = fault;
  const facts = [
    ...(expected === undefined ? [] : [`expected ${expected}`]),
    ...(found === undefined || fault.message.includes(found) ? [] : [`found ${found}`]),
  ];
  return facts.length === 0 ? faultLine(fault) : `${faultLine(fault)}; ${facts.join(', ')}`;
}

/** A value in a few words, for messages; never throws and never grows long. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'bigint':
      return 'a bigint';
    case 'symbol':
      return 'a symbol';
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : showObject(value);
  }
}

function showObject(value: object): string {
  try {
    return Array.isArray(value) ? 'a list' : 'an object';
  } catch {
    return 'a proxy that was revoked';
  }
}

/** What was thrown, in a few words; a thrown object need not let itself be looked at. */
export function showThrown(thrown: unknown): string {
  try {
    if (thrown instanceof Error && typeof thrown.message === 'string') return thrown.message;
  } catch {
    return 'an object that cannot be looked at';
  }
  return show(thrown);
}
