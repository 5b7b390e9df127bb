/** What other folders run of a worker in their own process; worker processes themselves are started by their entry. */
export { InProcessTopology } from './in-process-topology.js';
export type { InProcessTotals } from './in-process-topology.js';
