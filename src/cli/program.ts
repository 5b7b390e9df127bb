/** The commands and flags of `isobar`, and how a command line that is not understood ends. */
import { Command, CommanderError } from 'commander';
import { addClusterCommands, type ClusterActions } from './cluster-program.js';
import { addDevCommands, type DevActions } from './dev-program.js';
import { addPlanCommand, type PlanActions } from './plan/plan-program.js';
import { ExitCode } from './exit-code.js';
import { addObserveCommands, type ObserveActions } from './observe-program.js';
import type { RunFlags } from './run-options.js';

export interface Commands {
  /** Resolves to the exit code. */
  run(file: string, flags: RunFlags): Promise<number>;
  readonly cluster: ClusterActions;
  readonly observe: ObserveActions;
  readonly dev: DevActions;
  readonly plan: PlanActions;
}

export interface ProgramText {
  readonly version: string;
  write(text: string): void;
  writeError(text: string): void;
}

const EXAMPLES = `
Examples:
  isobar run app.ts                                  run a topology until its input ends, or until Ctrl-C
  isobar run app.ts --workers 2 --set topology.message-timeout=10s
  isobar run app.ts --json | jq 'select(.type == "status") | .totals.acked'

Ctrl-C once drains: sources stop, pending rows complete. Twice stops at once.
Exit codes: 0 ok, 1 failed or dead letters, 2 usage, 3 not submitted, 4 local cluster lost, 130 interrupted.
`;

/** Given here and not to the parser, whose help would list them. */
const NO_FLAGS: RunFlags = { set: [], watch: false, json: false, quiet: false, check: true, keep: false };

/**
 * Runs a command line.
 *
 * @param words without the names of node and of the script
 * @returns the exit code
 */
export async function runProgram(
  words: readonly string[],
  commands: Commands,
  text: ProgramText,
): Promise<number> {
  let exitCode: number = ExitCode.ok;
  const program = new Command('isobar')
    .description('Runs typed topologies of spouts and bolts on all cores, every row at least once.')
    .version(text.version, '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ writeOut: (out) => text.write(out), writeErr: (out) => text.writeError(out) });
  program
    .command('run')
    .description(
      'Run a topology on this machine: starts the daemons and workers, shows it live, ends with it.',
    )
    .argument('<file>', 'TypeScript or JavaScript file whose default export is a topology')
    .option('-w, --workers <count>', 'worker processes (setting topology.workers)')
    .option('-s, --set <key=value>', 'a setting, see docs/settings.md (repeatable)', collect)
    .option('--watch', 'run again when the file or a file that it imports changes')
    .option('--json', 'one JSON line a second and a summary, see docs/json-output.md')
    .option('-q, --quiet', 'only what the topology itself prints, and errors')
    .option('--no-check', 'do not type-check the file')
    .option(
      '--state <directory>',
      'keep durable state here, one run at a time (default: a private directory, removed at the end)',
    )
    .option('--keep', 'keep logs and state after a clean end')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, flags: Partial<RunFlags>) => {
      exitCode = await commands.run(file, { ...NO_FLAGS, ...flags });
    });
  addClusterCommands(program, commands.cluster, text, (code) => (exitCode = code));
  addObserveCommands(program, commands.observe, (code) => (exitCode = code));
  addPlanCommand(program, commands.plan, (code) => (exitCode = code));
  addDevCommands(program, commands.dev, (code) => (exitCode = code));
  program.addHelpText('after', EXAMPLES);
  nameOwnHelp(program, 'isobar');
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
  }
  return exitCode;
}

/** A mistake in a command's words refers to the help of that command. */
function nameOwnHelp(command: Command, words: string): void {
  command.showHelpAfterError(`See ${words} --help.`);
  for (const one of command.commands) nameOwnHelp(one, `${words} ${one.name()}`);
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
