/** What can be done to a cluster in the middle of a planned move: where, what, and to whom. */
interface Trap {
  /** Where the topology itself waits for it; `preparing`: a new worker starts; `moment`: a seeded time after the request. */
  readonly step: 'save' | 'close' | 'start' | 'first-row' | 'preparing' | 'moment';
  /** What the task does there; `slow`: it takes its time, so that somebody else can be killed meanwhile. */
  readonly action?: 'throw' | 'hang' | 'kill' | 'exit' | 'slow';
  readonly victim?: 'nimbus' | 'coordinator' | 'keeper' | 'supervisors' | 'new-worker' | 'anybody';
}

export interface Harm extends Trap {
  /** No task's state goes with it, and no row has to come again. */
  readonly keepsState: boolean;
}

const HARMS = {
  'save-throws': { step: 'save', action: 'throw', keepsState: true },
  'save-hangs': { step: 'save', action: 'hang', keepsState: true },
  'start-throws': { step: 'start', action: 'throw', keepsState: true },
  'worker-in-save': { step: 'save', action: 'kill', keepsState: false },
  'thread-in-save': { step: 'save', action: 'exit', keepsState: false },
  'worker-in-close': { step: 'close', action: 'kill', keepsState: false },
  'thread-in-close': { step: 'close', action: 'exit', keepsState: false },
  'worker-in-start': { step: 'start', action: 'kill', keepsState: false },
  'thread-in-start': { step: 'start', action: 'exit', keepsState: false },
  'worker-at-first-row': { step: 'first-row', action: 'kill', keepsState: false },
  'worker-preparing': { step: 'preparing', victim: 'new-worker', keepsState: false },
  'nimbus-preparing': { step: 'preparing', victim: 'nimbus', keepsState: true },
  'supervisors-preparing': { step: 'preparing', victim: 'supervisors', keepsState: true },
  'nimbus-in-save': { step: 'save', action: 'slow', victim: 'nimbus', keepsState: true },
  'coordinator-in-save': { step: 'save', action: 'slow', victim: 'coordinator', keepsState: true },
  'supervisors-in-save': { step: 'save', action: 'slow', victim: 'supervisors', keepsState: true },
  'nimbus-in-start': { step: 'start', action: 'slow', victim: 'nimbus', keepsState: true },
  'coordinator-in-start': { step: 'start', action: 'slow', victim: 'coordinator', keepsState: true },
  'supervisors-in-start': { step: 'start', action: 'slow', victim: 'supervisors', keepsState: true },
  'anybody-moving': { step: 'moment', victim: 'anybody', keepsState: false },
} as const satisfies Readonly<Record<string, Harm>>;

export type MoveHarm = keyof typeof HARMS;
export type MoveFault = 'rebalance' | MoveHarm;

/** In the order in which `rebalance-kill` takes them. */
export const MOVE_HARMS = Object.keys(HARMS) as readonly MoveHarm[]; // The keys of a literal are known.

export function isMoveHarm(fault: string): fault is MoveHarm {
  return fault in HARMS;
}

export function harmOf(harm: MoveHarm): Harm {
  return HARMS[harm];
}
