/** Whether the coordinator can be asked now, for whoever looks at the cluster: what is shown otherwise is what Nimbus knew last. */
import { type Clock, type ErrorRecord, IsobarError, toErrorRecord } from '../base/index.js';
import { type Coordination, isCoordinatorAway } from '../coordination/index.js';

/** A coordinator that takes longer for one small node is as good as away. */
const PATIENCE_MS = 1000;
/** No topology has it: their ids end in numbers. */
const NO_TOPOLOGY = 'coordinator-check';

export type CoordinatorProblem = Pick<ErrorRecord, 'code' | 'message'>;

/** What keeps it from answering; null: it answers. */
export async function coordinatorProblem(
  coordination: Pick<Coordination, 'readTopology'>,
  clock: Clock,
): Promise<CoordinatorProblem | null> {
  const answer = coordination.readTopology(NO_TOPOLOGY).then(
    () => null,
    (error: unknown) => (isCoordinatorAway(error) ? problemOf(error) : null),
  );
  let cancel = (): void => undefined;
  const silence = new Promise<CoordinatorProblem>((resolve) => {
    cancel = clock.after(PATIENCE_MS, () => {
      const message = `the coordinator has not answered for ${PATIENCE_MS} ms`;
      resolve(problemOf(new IsobarError('COORDINATOR_UNAVAILABLE', message)));
    });
  });
  return Promise.race([answer, silence]).finally(() => cancel());
}

function problemOf(error: unknown): CoordinatorProblem {
  const { code, message } = toErrorRecord(error);
  return { code, message };
}
