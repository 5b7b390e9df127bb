/**
 * What of a user's imports is bundled and what stays outside, as an esbuild plugin.
 *
 * P1  A package (a file below node_modules that Node can load) stays where it is and is named absolutely: ES modules are
 *     imported, CommonJS modules and native addons are required.
 * P2  `isobar` is the running installation, also for CommonJS files.
 * P3  Bundled files keep their own `import.meta.url`, `__dirname` and so on, although they now lie in one file.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, extname, join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Loader, OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild';

const LOADABLE = new Set(['.js', '.mjs', '.cjs']);
/** Imports that a package's loader, rather than Node's, must see. */
const BARE = /^[^./#]/;
const RESOLVING = Symbol('isobar.resolving');
const BRIDGE = 'isobar-bridge';
/** Stand-ins for modules that are required: `module.exports = require(path)`. */
const REQUIRED = 'isobar-required';
const SELF_REFERENCES = /\bimport\s*\.\s*meta\b|\b__(?:dirname|filename)\b/;

/** The names that stand for a file's own place in the bundle. */
const PLACES = {
  'import.meta.url': 'isobarModuleUrl',
  'import.meta.filename': 'isobarModuleFile',
  'import.meta.dirname': 'isobarModuleDirectory',
  __filename: 'isobarModuleFile',
  __dirname: 'isobarModuleDirectory',
} as const;

export function packagesPlugin(isobarEntry: URL): Plugin {
  return {
    name: 'isobar-packages',
    setup(build) {
      build.initialOptions.define = { ...build.initialOptions.define, ...PLACES };
      build.onResolve({ filter: /^isobar$/ }, ({ kind }) =>
        // An ES module cannot be required: CommonJS files get it through a module that re-exports it.
        kind === 'require-call'
          ? { path: 'isobar', namespace: BRIDGE }
          : { path: isobarEntry.href, external: true },
      );
      build.onLoad({ filter: /.*/, namespace: BRIDGE }, () => ({
        contents: `export * from ${JSON.stringify(isobarEntry.href)};`,
        loader: 'js',
      }));
      build.onResolve({ filter: /.*/, namespace: REQUIRED }, ({ path }) => ({ path, external: true }));
      build.onResolve({ filter: BARE }, (args) => resolvePackage(build, args));
      build.onResolve({ filter: /\.node$/ }, (args) => resolvePackage(build, args));
      build.onLoad({ filter: /.*/, namespace: REQUIRED }, ({ path }) => ({
        contents: `module.exports = require(${JSON.stringify(path)});`,
        loader: 'js',
      }));
      build.onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: 'file' }, ({ path }) => loadSource(path));
    },
  };
}

async function resolvePackage(build: PluginBuild, args: OnResolveArgs): Promise<OnResolveResult | undefined> {
  if (args.pluginData === RESOLVING || args.kind === 'entry-point') return undefined;
  if (/^(?:node|data|https?|file):/.test(args.path)) return { path: args.path, external: true };
  const { importer, resolveDir, kind } = args;
  const found = await build.resolve(args.path, { importer, resolveDir, kind, pluginData: RESOLVING });
  if (found.errors.length > 0) return { errors: found.errors, warnings: found.warnings };
  if (found.external || found.namespace !== 'file') {
    return { path: found.path, external: found.external, namespace: found.namespace };
  }
  const extension = extname(found.path);
  const isPackage = found.path.includes(`${sep}node_modules${sep}`) && LOADABLE.has(extension);
  if (!isPackage && extension !== '.node') return { path: found.path, sideEffects: found.sideEffects };
  if (kind === 'require-call' || kind === 'require-resolve') return { path: found.path, external: true };
  // The bundler knows what names a CommonJS module has when it runs; Node would guess from its text.
  return isCommonJs(found.path)
    ? { path: found.path, namespace: REQUIRED }
    : { path: pathToFileURL(found.path).href, external: true };
}

/** How Node loads the file: by its extension, else by the `type` of the nearest manifest. */
function isCommonJs(path: string): boolean {
  const extension = extname(path);
  if (extension !== '.js') return extension !== '.mjs';
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
      return !(
        typeof manifest === 'object' &&
        manifest !== null &&
        'type' in manifest &&
        manifest.type === 'module'
      );
    } catch {
      // No manifest here: the next one above counts.
      if (directory === dirname(directory)) return true;
    }
  }
}

/** A file that asks where it lies is told; all others are left to the bundler. */
async function loadSource(path: string): Promise<{ contents: string; loader: Loader } | undefined> {
  const text = await readFile(path, 'utf8');
  if (!SELF_REFERENCES.test(text)) return undefined;
  const constants =
    `const isobarModuleUrl = ${JSON.stringify(pathToFileURL(path).href)}, ` +
    `isobarModuleFile = ${JSON.stringify(path)}, isobarModuleDirectory = ${JSON.stringify(dirname(path))}; `;
  // In front of the first line of code, so that all line numbers stay.
  const hashbang = /^#!.*\n/.exec(text)?.[0] ?? '';
  const loader = extname(path)
    .replace(/^\.[cm]/, '')
    .replace('.', '') as Loader;
  return { contents: `${hashbang}${constants}${text.slice(hashbang.length)}`, loader };
}
