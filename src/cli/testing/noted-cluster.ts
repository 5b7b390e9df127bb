/** Commands that note what they were asked and answer with one exit code. */
import type { ClusterActions } from '../cluster-program.js';

export function notedCluster(exitCode = 0): {
  readonly asked: unknown[][];
  readonly actions: ClusterActions;
} {
  const asked: unknown[][] = [];
  const note =
    (command: string) =>
    async (...values: unknown[]): Promise<number> => {
      asked.push([command, ...values]);
      return exitCode;
    };
  return {
    asked,
    actions: {
      submit: note('submit'),
      list: note('list'),
      describe: note('describe'),
      activate: note('activate'),
      deactivate: note('deactivate'),
      kill: note('kill'),
      rebalance: note('rebalance'),
      config: note('config'),
    },
  };
}
