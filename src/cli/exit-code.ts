/** Exit codes of the command line; docs/cli.md lists them. */
export const ExitCode = {
  ok: 0,
  /** The topology failed, was stopped before its end, or left dead letters. */
  failed: 1,
  usage: 2,
  /** Nothing ran: the file could not be checked, bundled, evaluated or submitted. */
  notSubmitted: 3,
  /** The local cluster was lost. */
  clusterLost: 4,
  /** Ended by a second signal, or by one before anything ran. */
  interrupted: 130,
} as const;

/** Of the commands that talk to Nimbus, for their help. */
export const EXIT_CODES = `
Exit codes: 0 ok, 1 refused by the cluster, 2 usage, 3 not submitted, 4 no daemon answers.`;
