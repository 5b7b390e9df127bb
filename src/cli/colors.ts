/**
 * Terminal colours, or none: NO_COLOR, FORCE_COLOR and what the stream can show decide. Only what can be read on a dark
 * background and on a light one is offered: yellow, green and cyan vanish on white, blue on black.
 */
import picocolors from 'picocolors';

export type Colors = Pick<ReturnType<typeof picocolors.createColors>, 'bold' | 'dim' | 'red' | 'magenta'>;

export const plainColors: Colors = picocolors.createColors(false);

/** Colours for a stream. NO_COLOR (any text) turns them off, FORCE_COLOR on; otherwise a terminal has them. */
export function colorsFor(
  stream: { readonly isTTY?: boolean },
  environment: Readonly<Record<string, string | undefined>>,
): Colors {
  const { NO_COLOR, FORCE_COLOR, TERM } = environment;
  if (NO_COLOR !== undefined && NO_COLOR !== '') return plainColors;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '' && FORCE_COLOR !== '0')
    return picocolors.createColors(true);
  return picocolors.createColors(stream.isTTY === true && TERM !== 'dumb');
}
