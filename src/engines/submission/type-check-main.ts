/**
 * Type-checks one file in a process of its own, so that it runs beside bundling and can be ended at any time.
 * Arguments: the file, and the declarations of `isobar`. Sends one {@link CheckReport} to its parent.
 */
import { checkTypes } from './check-types.js';

const [file, declarations] = process.argv.slice(2);
if (file === undefined || declarations === undefined || process.send === undefined) {
  process.stderr.write('usage: started by isobar run\n');
  process.exit(2);
}
process.on('disconnect', () => process.exit(0));
process.send(checkTypes(file, declarations), () => process.exit(0));
