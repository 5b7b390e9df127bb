/** The words behind `isobar rebalance`: their options, and what they ask for. */
import { Command, CommanderError } from 'commander';
import type { RebalanceRequest } from '../api/index.js';
import { hasCode } from '../base/index.js';
import { readRebalance, type RebalanceFlags } from './cluster-options.js';

/** Adds the options of `rebalance` to its command. */
export function withRebalanceOptions(command: Command): Command {
  return command
    .option('-w, --wait <seconds>', 'stop the spouts for so long before anything changes')
    .option('-n, --workers <count>', 'workers wanted')
    .option('-e, --executors <component=count>', 'executors of a component (repeatable)', collect)
    .option(
      '-r, --resources <json>',
      'resources by component, such as {"split":{"cpu":50}}; refused where no strategy would look at them',
    )
    .option('--from-scratch', 'place everything anew, after the wait (default then: the message time-out)')
    .option('--preview', 'only show what would be done');
}

/** Parses the words after `rebalance`; undefined if they are not understood. Prints nothing. */
export function parseRebalanceWords(
  words: readonly string[],
): { readonly name: string; readonly request: RebalanceRequest } | undefined {
  const command = withRebalanceOptions(new Command('rebalance').argument('<name>'))
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  try {
    command.parse([...words], { from: 'user' });
    return { name: command.args[0] ?? '', request: readRebalance(command.opts<RebalanceFlags>(), '') };
  } catch (error) {
    if (error instanceof CommanderError || hasCode(error, 'USAGE')) return undefined;
    throw error;
  }
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
