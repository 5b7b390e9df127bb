/** `isobar run`: chooses where to show the run, turns signals into drains and forced ends, and runs again with --watch. */
import { resolve } from 'node:path';
import { IsobarError, systemClock, toErrorRecord, toIsobarError } from '../base/index.js';
import { colorsFor } from './colors.js';
import type { Display, TextStream } from './display/display.js';
import { JsonDisplay } from './display/json-display.js';
import { PlainDisplay } from './display/plain-display.js';
import { ScreenDisplay } from './display/screen-display.js';
import { ExitCode } from './exit-code.js';
import { OWN_PLACE } from './own-place.js';
import { readRunOptions, type RunFlags, type RunOptions } from './run-options.js';
import { runSession } from './run-session.js';
import { untilChanged } from './watch-files.js';

const SCREEN_REFRESH_MS = 250;
const LINE_REFRESH_MS = 1000;
export interface Surroundings {
  readonly out: TextStream;
  readonly err: TextStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Calls back at each signal that asks to end; returns how to stop that. */
  onInterrupt(callback: () => void): () => void;
}

/** Runs the command and resolves to its exit code. */
export async function runCommand(file: string, flags: RunFlags, surroundings: Surroundings): Promise<number> {
  const display = chooseDisplay(flags, surroundings);
  try {
    checkCurrentDirectory();
    const options = readRunOptions(file, {
      ...flags,
      ...(flags.state === undefined ? {} : { state: resolve(flags.state) }),
    });
    return options.watch
      ? await runWatching(options, display, surroundings)
      : await runOnce(options, display, surroundings);
  } catch (error) {
    const fault = toIsobarError(error);
    const exitCode =
      fault.code === 'USAGE' || fault.code === 'SETTINGS_INVALID' ? ExitCode.usage : ExitCode.failed;
    display.failure(toErrorRecord(fault), exitCode);
    return exitCode;
  } finally {
    display.close();
  }
}

/** @throws USAGE: everything that is named on the command line is looked for from there */
function checkCurrentDirectory(): void {
  try {
    process.cwd();
  } catch (error) {
    throw new IsobarError(
      'USAGE',
      'the current directory does not exist any more',
      { expected: 'to be started in a directory that exists', found: String(error) },
      error,
    );
  }
}

function chooseDisplay({ json, quiet }: RunFlags, { out, err, environment }: Surroundings): Display {
  if (json) return new JsonDisplay({ out, err, place: OWN_PLACE, wallMs: () => systemClock.wallMs() });
  const colors = colorsFor(err, environment);
  if (!quiet && err.isTTY === true && environment['TERM'] !== 'dumb') {
    return new ScreenDisplay({ out, screen: err, colors, place: OWN_PLACE });
  }
  return new PlainDisplay({ out, err, colors, place: OWN_PLACE, quiet, nowMs: () => systemClock.nowMs() });
}

async function runOnce(options: RunOptions, display: Display, surroundings: Surroundings): Promise<number> {
  const [drain, force] = [new AbortController(), new AbortController()];
  const stop = surroundings.onInterrupt(() =>
    (drain.signal.aborted ? force : drain).abort(new Error('interrupted')),
  );
  try {
    return await runSession(options, display, {
      drain: drain.signal,
      force: force.signal,
      ...common(surroundings),
    });
  } finally {
    stop();
  }
}

/** Until a signal: runs, and once the run has ended or a file has changed, runs again. */
async function runWatching(
  options: RunOptions,
  display: Display,
  surroundings: Surroundings,
): Promise<number> {
  let inputs: readonly string[] = [resolve(options.file)];
  const ended = new AbortController();
  for (;;) {
    const [drain, force, done] = [new AbortController(), new AbortController(), new AbortController()];
    const stop = surroundings.onInterrupt(() => {
      (drain.signal.aborted ? force : drain).abort(new Error('interrupted'));
      ended.abort();
    });
    let changed: Promise<boolean> | undefined;
    const watchInputs = (): void => {
      changed ??= untilChanged(inputs, AbortSignal.any([ended.signal, done.signal])).then((isChange) => {
        if (isChange && !drain.signal.aborted) drain.abort(new Error('a file has changed'));
        return isChange;
      });
    };
    const exitCode = await runSession(options, display, {
      drain: drain.signal,
      force: force.signal,
      ...common(surroundings),
      onInputs: (known) => {
        inputs = known;
        watchInputs();
      },
    });
    watchInputs();
    if (!ended.signal.aborted && !drain.signal.aborted) display.note('waiting for a change');
    const isChange = (await changed) === true;
    done.abort();
    stop();
    if (ended.signal.aborted) return exitCode;
    if (isChange) display.note('a file has changed; running again');
  }
}

function common({ err, environment }: Surroundings): { refreshMs: number; base?: string } {
  const home = environment['ISOBAR_HOME'];
  return {
    refreshMs: err.isTTY === true ? SCREEN_REFRESH_MS : LINE_REFRESH_MS,
    ...(home === undefined || home === '' ? {} : { base: resolve(home) }),
  };
}
