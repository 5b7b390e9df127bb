/** Errors as people read them: code and message, what was expected, found and where, their own stack frames, what to do. Pure. */
import { ERROR_TABLE, type ErrorCode, type ErrorRecord, isErrorCode } from '../base/index.js';
import type { Colors } from './colors.js';

const MAX_FRAMES = 8;
const MAX_CAUSES = 4;
const FACTS = ['expected', 'found', 'where'] as const;

/** Paths that belong to Isobar itself; frames in them say nothing to a user. */
export interface OwnPlace {
  /** Beginnings of paths: of the installation's compiled code, and of the sources that its source maps name. */
  readonly prefixes: readonly string[];
}

/** Several lines of text without a final line break. */
export function errorText(error: ErrorRecord, place: OwnPlace, colors: Colors): string {
  const lines = [`${colors.red(colors.bold(error.code))}: ${messageOf(error)}`];
  for (const fact of FACTS) {
    const value = error.details[fact];
    if (value !== undefined && !error.message.includes(value))
      lines.push(`  ${fact.padEnd(8)}  ${indent(value, 12)}`);
  }
  lines.push(...furtherFaults(error).map((fault) => `  - ${indent(fault, 4)}`));
  lines.push(...whatToDo(error));
  // Of a fault of our own the reader is asked for the stack, which is all ours.
  const shown = error.code === 'INTERNAL' ? { prefixes: [] } : place;
  lines.push(...userFrames(error, shown).map((frame) => colors.dim(`    ${frame}`)));
  const { output } = error.details;
  if (typeof output === 'string' && output.trim() !== '')
    lines.push('  output of the file:', `    ${indent(output, 4)}`);
  return lines.join('\n');
}

/** The message behind the class of what was thrown, where its stack names one that says more than `Error`. */
export function messageOf({ message, stack }: ErrorRecord): string {
  const name = /^([A-Za-z_$][\w$]*): /.exec(stack ?? '')?.[1];
  const isTelling = name !== undefined && name !== 'Error' && name !== 'IsobarError';
  return isTelling && stack?.startsWith(`${name}: ${message}`) === true ? `${name}: ${message}` : message;
}

/**
 * The frames of a stack that lie in files of the user or of their packages, innermost first; those of the innermost cause
 * where the error itself has none.
 */
export function userFrames(error: ErrorRecord, { prefixes }: OwnPlace): readonly string[] {
  const causes: ErrorRecord[] = [];
  for (
    let one: ErrorRecord | undefined = error;
    one !== undefined && causes.length < MAX_CAUSES;
    one = one.cause
  ) {
    causes.push(one);
  }
  for (const { stack } of causes.reverse()) {
    const frames = (stack ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line.startsWith('at ') && line.includes('/'))
      .filter((line) => !line.includes('node:') && !line.includes('/bundle.mjs'))
      // The parser of our command line: no code of a user's is below it.
      .filter((line) => !line.includes('/node_modules/commander/'))
      .filter((line) => !prefixes.some((prefix) => line.includes(prefix)));
    if (frames.length > 0) return frames.slice(0, MAX_FRAMES);
  }
  return [];
}

/** What to do about each kind of fault, once. */
function whatToDo({ code, details: { faults } }: ErrorRecord): readonly string[] {
  const codes = new Set<ErrorCode>([code]);
  for (const fault of Array.isArray(faults) ? (faults as readonly unknown[]) : []) {
    const own = (fault as { readonly code?: unknown } | null)?.code;
    if (isErrorCode(own)) codes.add(own);
  }
  if (codes.size === 1) return [`  → ${ERROR_TABLE[code].action}`];
  return [...codes].map((one) => `  → ${one}: ${ERROR_TABLE[one].action}`);
}

/** All faults of an error that has several, where its message tells only the first. */
function furtherFaults({ details, message }: ErrorRecord): readonly string[] {
  const { faults } = details;
  if (!Array.isArray(faults)) return [];
  const texts = faults.map((fault: unknown) => {
    const { message: text, where } = (typeof fault === 'object' && fault !== null ? fault : {}) as Partial<
      Record<'message' | 'where', unknown>
    >;
    return typeof text !== 'string' ? '' : typeof where === 'string' ? `${text} (${where})` : text;
  });
  return texts.filter((text) => text !== '' && !message.includes(text.split(' (')[0] ?? text));
}

function indent(text: string, by: number): string {
  return text.replaceAll('\n', `\n${' '.repeat(by)}`);
}
