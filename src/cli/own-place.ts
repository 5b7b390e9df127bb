/** What of a stack trace is Isobar's, whether it runs from its bundles, from its build or from its sources. */
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../base/index.js';
import type { OwnPlace } from './error-text.js';

/** Everything that Isobar brings with it. */
export const OWN_PLACE: OwnPlace = {
  prefixes: ['dist/', 'build/', 'src/'].map((folder) => fileURLToPath(new URL(folder, packageRoot()))),
};
