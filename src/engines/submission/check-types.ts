/**
 * The type check of a user's file with the TypeScript compiler: their tsconfig.json where there is one, strict defaults
 * where not. Only files of the user are reported; types of `isobar` come from the running installation.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import ts from 'typescript';

/** One error; positions from 1. */
export interface TypeFault {
  readonly file: string | null;
  readonly line: number;
  readonly column: number;
  /** As TypeScript numbers it, such as TS2322. */
  readonly code: string;
  readonly message: string;
}

export interface CheckReport {
  readonly faults: readonly TypeFault[];
  /** The tsconfig.json used; null: defaults. */
  readonly config: string | null;
}

const DEFAULT_OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  strict: true,
  resolveJsonModule: true,
  allowJs: true,
  esModuleInterop: true,
};

/** Checks `file` and what it imports; `declarations` is the path of the types of `isobar`. */
export function checkTypes(file: string, declarations: string): CheckReport {
  const config = ts.findConfigFile(dirname(file), (path) => ts.sys.fileExists(path), 'tsconfig.json') ?? null;
  const { options, ambient, faults } = config === null ? defaults() : readConfig(config);
  if (faults.length > 0) return { faults: faults.map(toFault), config };
  const program = ts.createProgram([file, ...ambient], withIsobar(options, file, declarations));
  const diagnostics = program
    .getSourceFiles()
    .filter(
      (source) => !source.fileName.includes('/node_modules/') && !program.isSourceFileDefaultLibrary(source),
    )
    .filter((source) => source.fileName !== declarations && !isBelow(source.fileName, dirname(declarations)))
    .flatMap((source) => [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ]);
  const errors = diagnostics.filter(({ category }) => category === ts.DiagnosticCategory.Error);
  return { faults: errors.map(toFault), config };
}

function defaults(): ParsedOptions {
  return { options: DEFAULT_OPTIONS, ambient: [], faults: [] };
}

interface ParsedOptions {
  readonly options: ts.CompilerOptions;
  /** Declaration files that the configuration includes: they may declare globals. */
  readonly ambient: readonly string[];
  readonly faults: readonly ts.Diagnostic[];
}

function readConfig(path: string): ParsedOptions {
  const faults: ts.Diagnostic[] = [];
  const parsed = ts.getParsedCommandLineOfConfigFile(path, undefined, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (fault) => void faults.push(fault),
  });
  if (parsed === undefined) return { ...defaults(), faults };
  // 18003: the configuration includes no file. It is asked for its options only.
  faults.push(...parsed.errors.filter(({ code }) => code !== 18_003));
  const ambient = parsed.fileNames.filter((name) => /\.d\.[cm]?ts$/.test(name));
  return { options: parsed.options, ambient, faults };
}

/** The user's options, less what is about writing files, plus where the types of `isobar` and of Node are. */
function withIsobar(options: ts.CompilerOptions, file: string, declarations: string): ts.CompilerOptions {
  const own = nodeTypeRoot();
  const roots =
    options.typeRoots ?? ancestors(dirname(file)).map((directory) => join(directory, 'node_modules/@types'));
  const hasNode = roots.some((root) => existsSync(join(root, 'node')));
  const result: ts.CompilerOptions = {
    ...options,
    noEmit: true,
    composite: false,
    incremental: false,
    declaration: false,
    declarationMap: false,
    emitDeclarationOnly: false,
    skipLibCheck: options.skipLibCheck ?? true,
    allowImportingTsExtensions: true,
    // Every package of @types, as before TypeScript 6, unless the user chooses.
    types: options.types ?? ['*'],
    typeRoots: hasNode || own === undefined ? roots : [...roots, own],
    ignoreDeprecations: '6.0',
    paths: { ...options.paths, isobar: [declarations] },
  };
  delete result.tsBuildInfoFile;
  return result;
}

/** Where this installation's types of Node are; users need not install them. */
function nodeTypeRoot(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve('@types/node/package.json');
    return dirname(dirname(manifest));
  } catch {
    return undefined;
  }
}

function ancestors(directory: string): string[] {
  const parent = dirname(directory);
  return parent === directory ? [directory] : [directory, ...ancestors(parent)];
}

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== '' && !way.startsWith(`..${sep}`) && way !== '..';
}

/** A sentence that the types of `isobar` put where a type was expected: a text literal, alternatives, or an `error` field. */
const SENTENCE_TARGET =
  /to (?:parameter of )?type '((?:\{ (?:readonly )?error: )?"(?:[^"\\]|\\.)*"(?: \| "(?:[^"\\]|\\.)*")*(?:; \})?)'\.$/;
/** Texts of users' own literal types are seldom that long: they are left to the compiler's wording. */
const MIN_SENTENCE_WORDS = 4;
const MAX_CONTEXT_LENGTH = 160;

/**
 * What a chain of messages comes to: the sentence of `isobar` where there is one, else the innermost message, which names
 * the cause, and below it what it is about.
 */
export function shortMessage(text: string | ts.DiagnosticMessageChain): string {
  const chain = deepestChain(text);
  for (const message of chain.toReversed()) {
    const sentences = sentencesIn(message);
    if (sentences !== undefined) return sentences;
  }
  const innermost = chain.at(-1) ?? '';
  const context = chain.at(-2);
  return context === undefined || context.length > MAX_CONTEXT_LENGTH
    ? innermost
    : `${innermost}\n${context}`;
}

/** From the outermost to the innermost message; the first of equally deep ones. */
function deepestChain(text: string | ts.DiagnosticMessageChain): readonly string[] {
  if (typeof text === 'string') return [text];
  let deepest: readonly string[] = [];
  for (const next of text.next ?? []) {
    const chain = deepestChain(next);
    if (chain.length > deepest.length) deepest = chain;
  }
  return [text.messageText, ...deepest];
}

function sentencesIn(message: string): string | undefined {
  const target = SENTENCE_TARGET.exec(message)?.[1];
  if (target === undefined) return undefined;
  const texts = [...target.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) =>
    text!.replaceAll(/\\(.)/g, '$1'),
  );
  return texts.every((text) => text.split(' ').length >= MIN_SENTENCE_WORDS) ? texts.join('\n') : undefined;
}

function toFault(diagnostic: ts.Diagnostic): TypeFault {
  const message = shortMessage(diagnostic.messageText);
  const code = `TS${diagnostic.code}`;
  if (diagnostic.file === undefined) return { file: null, line: 0, column: 0, code, message };
  const { line, character } = ts.getLineAndCharacterOfPosition(diagnostic.file, diagnostic.start ?? 0);
  return { file: diagnostic.file.fileName, line: line + 1, column: character + 1, code, message };
}
