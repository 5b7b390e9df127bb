/**
 * Makes one ES module out of a user's file and everything of theirs that it imports.
 *
 * Source files of the user are bundled; packages stay where they are installed and are named by absolute file URL, so
 * native addons and packages that read their own files work as they do anywhere else (docs/packages.md). `isobar` itself
 * is the running installation: bundle and worker share one copy of its classes.
 */
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildFailure, BuildResult, Message } from 'esbuild';
import { IsobarError, toIsobarError, packageEntry } from '../../base/index.js';
import { packagesPlugin } from './packages-plugin.js';

const BUNDLE_NAME = 'bundle.mjs';
const SOURCE_EXTENSIONS = /\.[cm]?[jt]sx?$/;

/** A topology's code as it is submitted. */
export interface Bundle {
  /** ES module; its last line names the source map as `bundle.mjs.map`. */
  readonly code: Uint8Array;
  /** Its sources are absolute file URLs, so it holds wherever the bundle is loaded from. */
  readonly sourceMap: Uint8Array;
  /** Absolute paths of the files that were bundled, the entry among them. */
  readonly inputs: readonly string[];
}

export interface BundleOptions {
  /** What `import … from 'isobar'` means; default: this installation. */
  readonly isobarEntry?: URL;
}

/** The public entry of this installation. */
export const ISOBAR_ENTRY = packageEntry('index');

/**
 * The absolute path of the file to run.
 *
 * @throws FILE_NOT_FOUND
 */
export function resolveEntry(file: string): string {
  const path = resolve(file);
  const expected = 'a TypeScript or JavaScript file';
  let isFile: boolean;
  try {
    isFile = statSync(path).isFile();
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new IsobarError('FILE_NOT_FOUND', `${file} cannot be read`, {
      expected,
      found: reason,
      where: path,
    });
  }
  if (!isFile || !SOURCE_EXTENSIONS.test(path)) {
    const found = isFile ? 'a file of another kind' : 'a directory or special file';
    throw new IsobarError('FILE_NOT_FOUND', `${file} is not a file to run`, { expected, found, where: path });
  }
  return path;
}

/**
 * Bundles a file.
 *
 * @throws FILE_NOT_FOUND, BUNDLE_FAILED with a line `file:line:column: message` for each error
 */
export async function bundleTopology(file: string, options: BundleOptions = {}): Promise<Bundle> {
  const entry = resolveEntry(file);
  const { build } = await import('esbuild');
  let result: BuildResult<{ write: false; metafile: true }>;
  try {
    result = await build({
      entryPoints: [entry],
      outfile: resolve(dirname(entry), BUNDLE_NAME),
      absWorkingDir: process.cwd(),
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      // As Node resolves; the default would add the condition "module".
      conditions: [],
      mainFields: ['main', 'module'],
      sourcemap: 'linked',
      sourcesContent: true,
      legalComments: 'none',
      charset: 'utf8',
      logLevel: 'silent',
      banner: { js: requireBanner(entry) },
      plugins: [packagesPlugin(options.isobarEntry ?? ISOBAR_ENTRY)],
    });
  } catch (error) {
    if (!isBuildFailure(error)) throw toIsobarError(error, 'BUNDLE_FAILED', { where: entry });
    throw new IsobarError('BUNDLE_FAILED', error.errors.map(oneLine).join('\n'), {
      expected: 'a file that compiles',
      found: `${error.errors.length} ${error.errors.length === 1 ? 'error' : 'errors'}`,
      where: file,
    });
  }
  const code = result.outputFiles.find(({ path }) => path.endsWith('.mjs'))!;
  const map = result.outputFiles.find(({ path }) => path.endsWith('.map'))!;
  return {
    code: code.contents,
    sourceMap: withAbsoluteSources(map.text, dirname(entry)),
    inputs: Object.keys(result.metafile.inputs)
      .filter((input) => !input.includes(':'))
      .map((input) => resolve(input)),
  };
}

/** Ends the bundler's helper process; the next bundle starts another one. */
export async function stopBundler(): Promise<void> {
  const { stop } = await import('esbuild');
  await stop();
}

/** CommonJS files and `require` in an ES module: resolved from the user's file, wherever the bundle lies. */
function requireBanner(entry: string): string {
  const url = JSON.stringify(pathToFileURL(entry).href);
  return `import { createRequire as isobarCreateRequire } from 'node:module'; const require = isobarCreateRequire(${url});`;
}

/** Sources of a map are relative to the place of the bundle, and the bundle will be moved. */
function withAbsoluteSources(text: string, directory: string): Uint8Array {
  const map = JSON.parse(text) as { sources: string[] };
  map.sources = map.sources.map((source) =>
    /^[a-z-]{2,}:/.test(source) ? source : pathToFileURL(resolve(directory, source)).href,
  );
  return new TextEncoder().encode(JSON.stringify(map));
}

function oneLine(message: Message): string {
  const { location } = message;
  const notes = adviceFor(message)
    .map((text) => `\n    ${text.trim().replaceAll('\n', '\n    ')}`)
    .join('');
  if (location === null) return `${message.text}${notes}`;
  return `${location.file}:${location.line}:${location.column + 1}: ${message.text}\n    ${location.lineText.trim()}${notes}`;
}

/** What the bundler says beside the message, except for its own options, which a user of ours cannot set. */
function adviceFor({ text, notes }: Message): readonly string[] {
  const advice = notes.map((note) => note.text).filter((note) => !note.includes(' as external'));
  const unresolved = /^Could not resolve "(.+)"$/.exec(text)?.[1];
  if (unresolved === undefined || advice.length > 0) return advice;
  return [
    /^\.{0,2}\//.test(unresolved)
      ? 'There is no such file beside the one that imports it.'
      : `Is the package installed where this file can see it? npm install ${packageOf(unresolved)}`,
  ];
}

/** `@scope/name/sub/path` is of the package `@scope/name`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors);
}
