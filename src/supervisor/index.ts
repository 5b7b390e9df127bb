export { endWorkers, killWorkers, workerProcessesOf } from './leftovers.js';
export type { Blobs, Supervisor, SupervisorOptions } from './supervisor.js';
export { startSupervisor } from './supervisor.js';
