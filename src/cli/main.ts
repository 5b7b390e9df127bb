#!/usr/bin/env node
/** Entry of the command `isobar`. */
import { ERROR_TABLE, packageVersion, toErrorRecord } from '../base/index.js';
import { ClusterCommands } from './cluster-commands.js';
import { DevCommands } from './dev-command.js';
import { ExitCode } from './exit-code.js';
import { ObserveCommands } from './observe-commands.js';
import { planCommand } from './plan/plan-command.js';
import { runProgram } from './program.js';
import { runCommand } from './run-command.js';

const MAX_TIMER_MS = 2 ** 31 - 1;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function onInterrupt(callback: () => void): () => void {
  for (const signal of SIGNALS) process.on(signal, callback);
  // Whoever reads our output has gone. Each line says so again: that is not a second wish to end.
  process.stdout.once('error', callback);
  return () => {
    for (const signal of SIGNALS) process.off(signal, callback);
    process.stdout.off('error', callback);
  };
}

/** Why what we print was lost, unless nobody wanted it any more. */
let outputFailure: Error | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') outputFailure ??= error;
});
process.stderr.on('error', () => undefined);

// What a command waits for need not keep the process alive: timers of the clock do not.
const untilDone = setInterval(() => undefined, MAX_TIMER_MS);
try {
  process.exitCode = await runProgram(
    process.argv.slice(2),
    {
      run: (file, flags) =>
        runCommand(file, flags, {
          out: process.stdout,
          err: process.stderr,
          environment: process.env,
          onInterrupt,
        }),
      cluster: new ClusterCommands({
        out: process.stdout,
        err: process.stderr,
        environment: process.env,
      }),
      observe: new ObserveCommands({
        out: process.stdout,
        err: process.stderr,
        environment: process.env,
        onInterrupt,
      }),
      plan: {
        plan: (files, flags) =>
          planCommand(files, flags, { out: process.stdout, err: process.stderr, environment: process.env }),
      },
      dev: new DevCommands({
        out: process.stdout,
        err: process.stderr,
        environment: process.env,
        onInterrupt,
      }),
    },
    {
      version: packageVersion(),
      write: (text) => void process.stdout.write(text),
      writeError: (text) => void process.stderr.write(text),
    },
  );
} catch (error) {
  const { code, message, stack } = toErrorRecord(error);
  process.stderr.write(`${code}: ${message}\n${stack ?? ''}\n${ERROR_TABLE[code].action}\n`);
  process.exitCode = ExitCode.failed;
}
clearInterval(untilDone);
// The last write reports its failure in the next turn.
await new Promise((resolve) => setImmediate(resolve));
reportOutputFailure();

function reportOutputFailure(): void {
  if (outputFailure === undefined) return;
  const { action } = ERROR_TABLE.OUTPUT_UNWRITABLE;
  process.stderr.write(
    `OUTPUT_UNWRITABLE: standard output could not be written: ${outputFailure.message}\n  → ${action}\n`,
  );
  if (process.exitCode === ExitCode.ok) process.exitCode = ExitCode.failed;
}
