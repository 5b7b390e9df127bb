/** A record of a log as people read it, and as JSON. Pure. */
import type { LogEntry } from '../../engines/index.js';
import type { Colors } from '../colors.js';
import type { OwnPlace } from '../error-text.js';

/** Of what a user's code or a logger wrote, what would steer the terminal; line breaks and tabs are kept. */
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]+/g;

/** `2026-11-30 12:56:13.884 WARN  s1:6700 split[7] text field=value`; further lines of a text follow as they are. */
export function logLine(entry: LogEntry, colors: Colors, { prefixes }: OwnPlace): string {
  const { timeMs, level, from, component, task, output, message, fields } = entry;
  const time = new Date(timeMs).toISOString().replace('T', ' ').replace('Z', '');
  const label = level.toUpperCase().padEnd(5);
  const colored = level === 'error' ? colors.red(label) : level === 'warn' ? colors.magenta(label) : label;
  const speaker =
    component === null || component === '' ? '' : ` ${component}${task === null ? '' : `[${task}]`}`;
  const { stack, ...others } = fields;
  const values = output === null ? Object.entries(others) : [];
  const said = values.map(([name, value]) => ` ${colors.dim(`${name}=`)}${valueText(value)}`).join('');
  const frames = typeof stack === 'string' && output === null ? framesOf(stack, prefixes) : '';
  const text = `${message}${said}${frames}`.replaceAll(STEERING, ' ');
  return `${colors.dim(time)} ${colored} ${from}${colors.bold(speaker)} ${text}`;
}

/** As docs/json-output.md says. */
export function logJson({ from, timeMs, level, component, task, output, message, fields }: LogEntry): object {
  const time = new Date(timeMs).toISOString();
  return { type: 'log', time, level, from, component, task, output, message, fields };
}

/** Frames of a user's code, each on a line; the first line of a stack says the message again. */
function framesOf(stack: string, own: readonly string[]): string {
  return stack
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at ') && !line.includes('node:'))
    .filter((line) => !own.some((prefix) => line.includes(prefix)))
    .map((line) => `\n${line}`)
    .join('');
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value);
}
