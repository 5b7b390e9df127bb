/** Reads vector files: a JSON array of cases `{name, input, expected, …}`. Says what is wrong with a file, and where. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';

const caseSchema = z.object({
  name: z.string(),
  scheduler: z.string().optional(),
  input: z.record(z.string(), z.unknown()),
  expected: z.record(z.string(), z.unknown()),
});

/** One case with the file that it stands in. */
export interface VectorCase {
  readonly file: string;
  readonly name: string;
  readonly scheduler?: string | undefined;
  readonly input: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>>;
}

export type ReadCases = { readonly cases: readonly VectorCase[] } | { readonly problem: string };

/** Expands folders (all `.json` files below them, in name order) into files. Throws with a clear text if a path is missing. */
export function vectorFiles(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) throw new Error(`${path}: there is no such file or folder.`);
    if (!stats.isDirectory()) return [path];
    return readdirSync(path, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => join(path, name));
  });
}

/** Parses the text of a vector file; `problem` says what is malformed. */
export function parseCases(file: string, text: string): ReadCases {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { problem: `${file}: not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (!Array.isArray(json)) return { problem: `${file}: expected a list of cases, found ${typeof json}.` };
  const cases: VectorCase[] = [];
  for (const [index, item] of json.entries()) {
    const parsed = caseSchema.safeParse(item);
    if (!parsed.success)
      return { problem: `${file}: case ${index + 1} is malformed: ${oneLine(parsed.error)}` };
    cases.push({ file: basename(file), ...parsed.data });
  }
  return { cases };
}

export function readCases(file: string): ReadCases {
  try {
    return parseCases(file, readFileSync(file, 'utf8'));
  } catch (error) {
    return { problem: `${file}: cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** A zod error as one line, with the path of each problem. */
export function oneLine(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`).join('; ');
}
