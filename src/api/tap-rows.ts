/** Asks the supervisors that run a component for live rows of it, and puts their answers together. */
import { connectChannel, type Channel, IsobarError, toErrorRecord } from '../base/index.js';
import { isTerminal, type SlotTap, type TapReport } from '../coordination/index.js';
import { componentNotFound, type TopologyDetail, type WorkerStatus } from '../nimbus/index.js';
import type { TapAnswer, TapQuestion, TapRow } from './contract.js';

const GRACE_MS = 3000;

/**
 * @param supervisorSocket where a supervisor of this machine listens
 * @throws COMPONENT_NOT_FOUND, USAGE, and TRANSITION_ILLEGAL if the topology has ended: no row will ever pass
 */
export async function tapRows(
  { summary, status }: TopologyDetail,
  question: TapQuestion,
  supervisorSocket: (supervisorId: string) => string,
): Promise<TapAnswer> {
  const { component: id } = question;
  const component = status.components.find((one) => one.component === id);
  if (component === undefined)
    throw componentNotFound(
      id,
      status.components.map((one) => one.component),
    );
  if (isTerminal(status.phase)) {
    throw new IsobarError(
      'TRANSITION_ILLEGAL',
      `topology "${summary.name}" is ${summary.status}: no rows pass in it any more`,
      { found: 'tap', where: summary.name },
    );
  }
  const tasks = component.perTask.map(({ task }) => task);
  const hosts = status.workers.filter((worker) => runsSome(worker, tasks));
  const answers = await Promise.all(
    hosts.map(async ({ supervisorId, port }): Promise<TapAnswer> => {
      const worker = `${supervisorId}:${port}`;
      let channel: Channel | undefined;
      try {
        channel = await connectChannel(supervisorSocket(supervisorId));
        const { component: _c, name: _n, ...asked } = question;
        const slotTap: SlotTap = { topologyId: summary.id, port, request: { component: id, ...asked } };
        const timeoutMs = question.windowMs + GRACE_MS;
        // A supervisor of the same version answers what the contract says.
        const report = (await channel.request('tap', slotTap, { timeoutMs })) as TapReport;
        const rows = report.rows.map((row): TapRow => ({ ...row, worker }));
        const silent =
          report.silentThreads === 0
            ? []
            : [`threads of ${worker} that a call holds up: ${report.silentThreads}`];
        return { rows, seen: report.seen, unheard: silent };
      } catch (error) {
        const { code, message } = toErrorRecord(error);
        // What the user asked for is wrong everywhere alike; that a worker is away says nothing of the others.
        if (code === 'USAGE' || code === 'COMPONENT_NOT_FOUND') throw error;
        return { rows: [], seen: 0, unheard: [`${worker}: ${message}`] };
      } finally {
        channel?.end();
      }
    }),
  );
  // Without a word on it the answer would be empty and come at once, and whoever wants rows would ask for ever.
  const unheard = hosts.length === 0 ? [`no worker runs ${id} now`] : [];
  return {
    rows: answers.flatMap(({ rows }) => rows).sort((a, b) => a.atMs - b.atMs),
    seen: answers.reduce((sum, { seen }) => sum + seen, 0),
    unheard: [...unheard, ...answers.flatMap((answer) => answer.unheard)],
  };
}

function runsSome({ threads }: WorkerStatus, tasks: readonly number[]): boolean {
  return threads.some(({ executors }) =>
    executors.some(([first, last]) => tasks.some((task) => first <= task && task <= last)),
  );
}
