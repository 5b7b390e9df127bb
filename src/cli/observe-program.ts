/** The commands that look into a running topology, as the command line knows them. */
import { type Command, Option } from 'commander';
import { addCommand } from './add-command.js';
import type { ClusterFlags } from './cluster-options.js';

export interface LogsFlags extends ClusterFlags {
  readonly follow?: boolean;
  readonly since?: string;
  readonly lines?: string;
  readonly level?: string;
  readonly daemon?: string;
}

export interface WhyFlags extends ClusterFlags {
  readonly window?: string;
}

export interface EventsFlags extends ClusterFlags {
  readonly follow?: boolean;
  readonly since?: string;
  readonly lines?: string;
}

export interface TapFlags extends ClusterFlags {
  readonly rows?: string;
  readonly where?: string;
  readonly taken?: boolean;
  readonly for?: string;
}

/** Each resolves to the exit code. */
export interface ObserveActions {
  logs(name: string | undefined, component: string | undefined, flags: LogsFlags): Promise<number>;
  why(name: string, flags: WhyFlags): Promise<number>;
  events(name: string | undefined, flags: EventsFlags): Promise<number>;
  tap(name: string, component: string, flags: TapFlags): Promise<number>;
}

/** Adds the commands; `done` is told the exit code of the one that ran. */
export function addObserveCommands(
  program: Command,
  actions: ObserveActions,
  done: (exitCode: number) => void,
): void {
  const add = (usage: string, what: string, example: string): Command =>
    addCommand(program, { usage, what, example, json: 'one JSON line each, see docs/json-output.md' });

  add(
    'logs [name] [component]',
    "Print the logs of a topology's workers on this machine in the order of time, with what its code printed.",
    'isobar logs word-count split -f --since 10m\nisobar logs word-count --level warn\nisobar logs --daemon supervisor-s1 -n 50',
  )
    .option('-f, --follow', 'go on with what is added, until Ctrl-C')
    .option('--since <duration>', 'only what is not older, such as 30s, 10m, 2h')
    .option('-n, --lines <count>', 'only the last ones')
    .addOption(new Option('--level <level>', 'the least level').choices(['debug', 'info', 'warn', 'error']))
    .option('--daemon <id>', 'the log of a daemon instead, by its id in isobar dev status')
    .action(async (name: string | undefined, component: string | undefined, flags: LogsFlags) =>
      done(await actions.logs(name, component, flags)),
    );

  add(
    'why <name>',
    'Say why a topology is not faster: the bottleneck, hot keys and placements, the oldest row, last errors, lost state.',
    'isobar why word-count\nisobar why word-count --window 10s',
  )
    .option('--window <duration>', 'how long it is watched', '3s')
    .action(async (name: string, flags: WhyFlags) => done(await actions.why(name, flags)));

  add(
    'events [name]',
    'Say what has happened to a topology, or on the cluster: what was asked for, what moved, which workers started and died and why, machines that went and came.',
    'isobar events word-count --since 2h\nisobar events -f',
  )
    .option('-f, --follow', 'go on with what happens, until Ctrl-C')
    .option('--since <duration>', 'only what is not older, such as 30s, 10m, 2h')
    .option('-n, --lines <count>', 'only the last ones')
    .action(async (name: string | undefined, flags: EventsFlags) => done(await actions.events(name, flags)));

  add(
    'tap <name> <component>',
    'Print live rows that a component emits, or takes if it emits none: a sample, at a bounded cost.',
    'isobar tap word-count split -n 5\nisobar tap word-count count --taken --where word=storm --json',
  )
    .option('-n, --rows <count>', 'how many', '20')
    .option('--where <field=value>', 'only rows whose field reads so')
    .option('--taken', 'rows that a bolt takes instead of those that it emits')
    .option('--for <duration>', 'no longer than so (default: until there were enough)')
    .action(async (name: string, component: string, flags: TapFlags) =>
      done(await actions.tap(name, component, flags)),
    );
}
