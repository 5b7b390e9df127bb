/** Names of the components that Isobar adds to every topology. User ids never start with `__`. */

export const SYSTEM_PREFIX = '__';
export const ACKER = '__acker';
export const EVENT_LOGGER = '__eventlogger';
export const METRICS_PREFIX = '__metrics_';
export const SYSTEM = '__system';

/** A component that Isobar has added: it has no user code. */
export function isSystemComponent(id: string): boolean {
  return id.startsWith(SYSTEM_PREFIX);
}
