/** The rules by which a plan explains itself: each has a name for programs and a sentence for people. */

export const PLAN_RULES = {
  // ── why something did not stay ──
  'machine-gone': 'its machine is gone',
  'worker-silent': 'its worker has not been heard of for too long; the slot is not used in that round',
  'counts-changed': 'the topology has no such executor any more',
  evicted: 'it made room for a topology that goes first',
  'host-reserved': 'the host is kept for an isolated topology',
  'more-even': 'moving it makes the load of machines more even, within scheduling.moves-per-round',
  'slot-given': 'its topology has more than its share of the slots, and another one had none',
  'spreads-out': 'its topology runs in fewer workers than it wants, and there are slots now',
  'uneven-worker': 'so many executors do not occur in the ideal distribution of the topology',
  rebalance: 'a rebalance asks for it',
  'placed-anew': 'the strategy has placed the topology anew',
  // ── why it went where it went ──
  'least-loaded':
    'load-balance.mode tasks: the heaviest worker first, each to the machine that carries least; then moves and swaps towards the lowest possible maximum',
  'fewest-slots-used': 'load-balance.mode slots: the machine with the smallest share of its slots in use',
  'fill-machine': 'load-balance.mode none: one machine is filled before the next',
  'most-slots-used':
    'load-balance.mode min-resources: the machine with the largest share of its slots in use',
  'joins-worker':
    'there is no slot for a worker more, or none is wanted: it joins a worker of its own topology',
  'round-robin':
    'slots are taken in turn from machines, those with most free slots first; executors are dealt round robin',
  'own-host': 'the topology has whole hosts of its own',
  'resources-fit':
    'the first machine in the order of the resource-aware strategy that has the processor share, memory and slot that it asks for',
  'by-strategy': 'as the strategy decides',
} as const;

export type PlanRule = keyof typeof PLAN_RULES;

/** Why a machine cannot take an executor, and what helps; by the first rule that failed there. */
const LACK_RULES: Readonly<Record<string, string>> = {
  'no-supervisor': 'there is no machine that may be used: add one',
  'no-free-slot': 'all its slots are in use: add a machine or slots, or stop another topology',
  'by-strategy': 'the strategy leaves its free slots to others',
  'not-usable': 'nothing new may be placed there',
  'cluster-total':
    'all its executors together need more than is free: add machines, or stop another topology',
  cpu: 'its processor share is too small: add a machine, or lower the request',
  memory: 'its memory is too small: add a machine, or lower the request',
  generic: 'a resource by name is used up there: add a machine that offers it',
  'worker-heap': 'the worker would exceed its largest heap: raise it',
  'one-executor-per-worker': 'each worker takes one executor, and its slots are in use: add slots',
  'one-component-per-worker': 'each worker takes one component, and its slots are in use: add slots',
  'incompatible-component': 'its free slots hold components that may not share a worker with it',
  'executors-per-supervisor': 'it has as many executors of the component as one machine may have',
};

export function lackRuleText(rule: string): string {
  return LACK_RULES[rule.startsWith('generic:') ? 'generic' : rule] ?? 'the strategy has not placed it there';
}
