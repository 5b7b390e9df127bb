/** The commands that talk to Nimbus, as the command line knows them. */
import type { Command } from 'commander';
import { addCommand } from './add-command.js';
import type { ClusterFlags, ConfigFlags, KillFlags, RebalanceFlags, SubmitFlags } from './cluster-options.js';
import { completionScript, SHELLS } from './completion.js';
import { withRebalanceOptions } from './rebalance-words.js';

/** Each resolves to the exit code. */
export interface ClusterActions {
  submit(file: string, flags: SubmitFlags): Promise<number>;
  list(flags: ClusterFlags): Promise<number>;
  describe(name: string, flags: ClusterFlags): Promise<number>;
  activate(name: string, flags: ClusterFlags): Promise<number>;
  deactivate(name: string, flags: ClusterFlags): Promise<number>;
  kill(name: string, flags: KillFlags): Promise<number>;
  rebalance(name: string, flags: RebalanceFlags): Promise<number>;
  config(name: string | undefined, flags: ConfigFlags): Promise<number>;
}

/** Adds the commands; `done` is told the exit code of the one that ran. */
export function addClusterCommands(
  program: Command,
  actions: ClusterActions,
  text: { write(text: string): void },
  done: (exitCode: number) => void,
): void {
  const add = (usage: string, what: string, example: string): Command =>
    addCommand(program, { usage, what, example, json: 'JSON instead of text, see docs/json-output.md' });

  add(
    'submit <file>',
    'Check and bundle a topology, and give it to the cluster.',
    'isobar submit app.ts --workers 2',
  )
    .option('--workers <count>', 'worker processes (setting topology.workers)')
    .option('-s, --set <key=value>', 'a setting, see docs/settings.md (repeatable)', collect)
    .option('--no-check', 'do not type-check the file')
    .option('--inactive', 'its spouts read nothing until it is activated')
    .action(async (file: string, flags: SubmitFlags) => done(await actions.submit(file, flags)));
  add(
    'list',
    'List topologies: status, wanted and running workers and executors, last change.',
    'isobar list',
  ).action(async (flags: ClusterFlags) => done(await actions.list(flags)));
  add(
    'describe <name>',
    'Show one topology: counts, components, placement, errors, lost state.',
    'isobar describe word-count',
  ).action(async (name: string, flags: ClusterFlags) => done(await actions.describe(name, flags)));
  add('activate <name>', 'Let the spouts of a topology read again.', 'isobar activate word-count').action(
    async (name: string, flags: ClusterFlags) => done(await actions.activate(name, flags)),
  );
  add(
    'deactivate <name>',
    'Stop the spouts of a topology; its workers stay, and what is pending completes.',
    'isobar deactivate word-count',
  ).action(async (name: string, flags: ClusterFlags) => done(await actions.deactivate(name, flags)));
  add('kill <name>', 'Stop the spouts, wait, and remove the topology.', 'isobar kill word-count -w 5')
    .option('-w, --wait <seconds>', "time for pending rows (default: the topology's message time-out)")
    .action(async (name: string, flags: KillFlags) => done(await actions.kill(name, flags)));
  withRebalanceOptions(
    add(
      'rebalance <name>',
      'Change workers and executors of a running topology, and spread it anew; moves as little as it can.',
      'isobar rebalance word-count -n 4 -e split=8\nisobar rebalance word-count -n 4 --preview',
    ),
  ).action(async (name: string, flags: RebalanceFlags) => done(await actions.rebalance(name, flags)));
  add(
    'config [name]',
    'Show every setting of the cluster, or of a topology: value, unit, and where it comes from.',
    'isobar config word-count --changed\nisobar config word-count --match timeout',
  )
    .option('-c, --changed', 'only those that are not as Isobar gives them')
    .option('-m, --match <text>', 'only those whose name has this in it')
    .action(async (name: string | undefined, flags: ConfigFlags) => done(await actions.config(name, flags)));
  program
    .command('completion')
    .description('Print a script that completes commands and options in a shell.')
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText('after', '\nExample:\n  source <(isobar completion bash)\n')
    .action((shell: string, _flags, command: Command) => {
      const script = completionScript(shell, program);
      if (script === undefined) command.error(`error: unknown shell ${shell}; expected ${SHELLS.join(', ')}`);
      else text.write(script);
    });
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
