/** `isobar dev` and its commands, as the command line knows them. */
import type { Command } from 'commander';
import type {
  DevFlags,
  DevStartFlags,
  DevStopFlags,
  SupervisorStartFlags,
  SupervisorStopFlags,
} from './dev-options.js';

/** Each resolves to the exit code. */
export interface DevActions {
  start(flags: DevStartFlags): Promise<number>;
  status(flags: DevFlags): Promise<number>;
  stop(flags: DevStopFlags): Promise<number>;
  startSupervisor(name: string, flags: SupervisorStartFlags): Promise<number>;
  stopSupervisor(name: string, flags: SupervisorStopFlags): Promise<number>;
}

const EXIT_CODES =
  'Exit codes: 0 ok, 1 failed or (status) not ready, 2 usage, 4 no cluster or not ready in time, 130 interrupted.';

const EXAMPLES = `
Examples:
  isobar dev                                  start the daemons, or find them running; then: isobar submit app.ts
  isobar dev status                           who runs, who does not and why
  isobar dev stop                             end daemons and workers; the state stays

  isobar dev --supervisors 3                  three supervisors, every daemon a process of its own
  isobar dev --supervisor name=a,host=h1,rack=r1,slots=3 --supervisor name=b,host=h2,rack=r2
  isobar dev supervisor stop a --crash        as if its machine lost power: it and all its workers are killed
  isobar dev supervisor start a               it is back

The cluster lives in ~/.isobar/dev, in $ISOBAR_HOME/dev, or where --directory says. See docs/operating.md.
${EXIT_CODES}
`;

const SPEC = 'name=…[,host=…][,rack=…][,slots=…][,port=…][,cores=…][,memory=…][,directory=…]';

/** Adds the commands; `done` is told the exit code of the one that ran. */
export function addDevCommands(
  program: Command,
  actions: DevActions,
  done: (exitCode: number) => void,
): void {
  const dev = withCommon(program.command('dev'))
    .description('Start the daemons of a cluster on this machine and leave them running.')
    .option('--supervisors <count>', 'that many supervisors, named s1, s2, …')
    .option('--supervisor <description>', `one supervisor: ${SPEC} (repeatable)`, collect)
    .option('--coordinator <address>', 'embedded, or zookeeper://host:port,host:port/path')
    .option(
      '-s, --set <key=value>',
      "a setting of the daemons, or a default of every topology's (repeatable)",
      collect,
    )
    .addHelpText('after', EXAMPLES)
    .allowExcessArguments()
    .action(async (_flags, command: Command) => {
      const [unknown] = command.args;
      if (unknown !== undefined)
        command.error(`error: unknown command '${unknown}' of isobar dev`, {
          code: 'commander.unknownCommand',
        });
      done(await actions.start(command.optsWithGlobals()));
    });
  withCommon(dev.command('status'))
    .description('Show daemons, supervisors, slots and topologies, and what does not run and why.')
    .action(async (_flags, command: Command) => done(await actions.status(command.optsWithGlobals())))
    .addHelpText('after', example('isobar dev status'));
  withCommon(dev.command('stop'))
    .description('End daemons and workers. The state stays: topologies go on at the next start.')
    .option('--keep-workers', 'leave the workers running, for the next start to adopt')
    .action(async (_flags, command: Command) => done(await actions.stop(command.optsWithGlobals())))
    .addHelpText(
      'after',
      example(
        'isobar dev stop                   workers end as well: bolts begin without their state at the next start',
        'isobar dev stop --keep-workers    for other settings or a new version: workers go on',
      ),
    );
  const supervisor = dev
    .command('supervisor')
    .description('Start or stop one supervisor, as if its machine came or went.');
  withCommon(supervisor.command('start'))
    .description('Start a supervisor that was stopped, or a new one.')
    .argument('<name>')
    .option('--supervisor <description>', `what is to be known of a new one: ${SPEC}`, collect)
    .action(async (name: string, _flags, command: Command) =>
      done(await actions.startSupervisor(name, command.optsWithGlobals())),
    )
    .addHelpText(
      'after',
      example('isobar dev supervisor start a', 'isobar dev supervisor start b --supervisor name=b,slots=2'),
    );
  withCommon(supervisor.command('stop'))
    .description('Stop a supervisor and its workers; it stays away until it is started.')
    .argument('<name>')
    .option('--crash', 'kill it and its workers at once (kill -9)')
    .option('--only', 'the supervisor alone: its workers go on')
    .action(async (name: string, _flags, command: Command) =>
      done(await actions.stopSupervisor(name, command.optsWithGlobals())),
    )
    .addHelpText(
      'after',
      example(
        'isobar dev supervisor stop a            positions are stored, executors move; state of bolts there is lost',
        'isobar dev supervisor stop a --only     its workers go on, and nothing moves',
        'isobar plan --from-cluster --remove a   what would move where; touches nothing',
      ),
    );
}

function example(...lines: readonly string[]): string {
  return `\nExample:\n${lines.map((line) => `  ${line}\n`).join('')}\n${EXIT_CODES}\n`;
}

function withCommon(command: Command): Command {
  return command
    .option('--directory <path>', "the cluster's directory (default: $ISOBAR_HOME/dev or ~/.isobar/dev)")
    .option('--json', 'one line of JSON instead of text');
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
