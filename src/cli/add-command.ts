/** A command that talks to a cluster, with the options and the help that all of them have. */
import type { Command } from 'commander';
import { EXIT_CODES } from './exit-code.js';

export interface CommandWords {
  readonly usage: string;
  readonly what: string;
  /** One a line. */
  readonly example: string;
  /** What `--json` prints. */
  readonly json: string;
}

export function addCommand(program: Command, { usage, what, example, json }: CommandWords): Command {
  return program
    .command(usage)
    .description(what)
    .option('--directory <path>', "the cluster's directory (default: $ISOBAR_HOME/dev or ~/.isobar/dev)")
    .option('--json', json)
    .addHelpText('after', `\nExample:\n  ${example.replaceAll('\n', '\n  ')}\n${EXIT_CODES}\n`);
}
