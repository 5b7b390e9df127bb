/** `isobar plan` as the command line knows it. */
import type { Command } from 'commander';
import type { PlanFlags } from './plan-options.js';

export interface PlanActions {
  /** Resolves to the exit code. */
  plan(files: readonly string[], flags: PlanFlags): Promise<number>;
}

const HELP = `
Examples:
  isobar plan cluster.json                                  what would run where, and why
  isobar plan app.ts --add-supervisor slots=4,count=3       a topology on three machines that do not exist yet
  isobar plan --from-cluster app.ts                         the running cluster, with one topology more
  isobar plan cluster.json --remove m3 --explain words/split
  isobar plan app.ts --add-supervisor slots=3,count=3 --timeline --offer-every 200
  isobar plan cluster.json --save placed.json               and then: isobar plan placed.json --remove m3
  isobar plan cluster.json --compare balanced,even,resource-aware

EXECUTOR is TOPOLOGY/COMPONENT, TOPOLOGY/TASK or TOPOLOGY/COMPONENT/TASK.
Exit codes: 0 everything has a place, 1 something has none, 2 usage, 3 input refused, 4 no daemon answers.
`;

export function addPlanCommand(
  program: Command,
  actions: PlanActions,
  done: (exitCode: number) => void,
): void {
  program
    .command('plan')
    .description('Show what the scheduler would place where, and why; touches no cluster.')
    .argument('[files...]', 'clusters and topologies: JSON, or TypeScript or JavaScript as for submit')
    .option('--from-cluster', 'start from the running cluster')
    .option('--directory <path>', "the cluster's directory (default: $ISOBAR_HOME/dev or ~/.isobar/dev)")
    .option(
      '--add-supervisor <spec>',
      'machines to add, such as rack=r1,slots=4,count=2 (repeatable)',
      collect,
    )
    .option('--remove <name>', 'a machine to lose, by supervisor or host (repeatable)', collect)
    .option('--kill-worker <host:port>', 'a worker that falls silent (repeatable)', collect)
    .option(
      '-s, --set <key=value>',
      'a setting of all topologies, or NAME:key=value of one (repeatable)',
      collect,
    )
    .option('--strategy <name>', "the strategy (default: the cluster's)")
    .option('--compare <names>', 'strategies side by side, such as balanced,even')
    .option('--explain <executor>', 'why an executor is where it is')
    .option('--timeline', 'how slots are requested, declared, offered and taken while machines come up')
    .option('--offer-every <ms>', 'time between two slots that are offered (default: 250), for --timeline')
    .option('--from-scratch', 'as if nothing were placed')
    .option('--rounds <count>', 'rounds at most (default: 100)')
    .option('--save <file>', 'write the cluster as planned, to plan on from there')
    .option('--all', 'print every machine, move and warning')
    .option('--no-check', 'do not type-check TypeScript files')
    .option('--json', 'JSON instead of text, see docs/plan.md')
    .addHelpText('after', HELP)
    .action(async (files: string[], flags: PlanFlags) => done(await actions.plan(files, flags)));
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
