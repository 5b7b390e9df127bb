/**
 * `npm run -s vectors -- FILE_OR_FOLDER...`: prints a line for each disagreement, and last
 * `N passed, N failed, N not supported`. Exit code 0 only if all agree; 2 if a path or file cannot be used.
 */
import { readCases, vectorFiles } from './read-cases.js';
import { runCase } from './run-case.js';

const MAX_SHOWN_CHARACTERS = 600;

const USAGE = `npm run -s vectors -- FILE_OR_FOLDER...

  Runs each case of these files, and of the .json files in these folders, in the mode that is compatible with its origin.
  Prints a line for each disagreement and last "N passed, N failed, N not supported". Exit code 0: all agree; 1: not all;
  2: a path or a file cannot be used.`;

function main(paths: readonly string[]): number {
  if (paths.some((path) => path === '--help' || path === '-h')) {
    console.log(USAGE);
    return 0;
  }
  const option = paths.find((path) => path.startsWith('-'));
  if (paths.length === 0 || option !== undefined) {
    console.error(`${option === undefined ? '' : `There is no option ${option}.\n\n`}${USAGE}`);
    return 2;
  }
  let files: string[];
  try {
    files = vectorFiles(paths);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
  const counts = { passed: 0, failed: 0, 'not supported': 0 };
  const missing = new Map<string, number>();
  let unusable = false;
  for (const file of files) {
    const read = readCases(file);
    if ('problem' in read) {
      console.error(read.problem);
      unusable = true;
      continue;
    }
    for (const test of read.cases) {
      const verdict = runCase(test);
      counts[verdict.kind]++;
      if (verdict.kind === 'failed') {
        for (const { what, expected, actual } of verdict.disagreements) {
          console.log(`${test.file} ${test.name}: ${what}: expected ${cut(expected)}, came ${cut(actual)}`);
        }
      } else if (verdict.kind === 'not supported') {
        const what = `${test.file}: not supported: ${verdict.what}`;
        missing.set(what, (missing.get(what) ?? 0) + 1);
      }
    }
  }
  for (const [what, count] of missing) console.log(`${what} (${count} ${count === 1 ? 'case' : 'cases'})`);
  if (files.length === 0) console.error(`no .json file found in ${paths.join(', ')}`);
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts['not supported']} not supported`);
  if (unusable || files.length === 0) return 2;
  return counts.failed + counts['not supported'] > 0 ? 1 : 0;
}

function cut(text: string): string {
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}

process.exitCode = main(process.argv.slice(2));
