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
