/** Command lines of the processes of this machine, to find out who still uses a directory. */
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Whether some process was started with a file below the directory among its arguments. One look at the machine serves
 * many questions. Where there is no /proc nobody can tell, and everything counts as in use.
 */
export function runningCommands(): (directory: string) => boolean {
  let pids: string[];
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return () => true;
  }
  const commands = pids.flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    } catch {
      // It ended in between, or belongs to somebody else and is hidden.
      return [];
    }
  });
  return (directory) => commands.some((argument) => argument.startsWith(`${directory}/`));
}
