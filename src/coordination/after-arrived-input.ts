/** Looking for silence only after what has arrived was read. */

/** Turns of the event loop in which a message that has arrived is read, and its sender's answer to ours as well. */
const INPUT_TURNS = 4;

/**
 * Runs `run` when what has already arrived at sockets has been read. Timers run before sockets are read, so after a
 * blocked moment a timer alone would take a full socket for silence.
 */
export function afterArrivedInput(run: () => void, turns = INPUT_TURNS): void {
  setImmediate(() => {
    if (turns <= 1) run();
    else afterArrivedInput(run, turns - 1);
  });
}
