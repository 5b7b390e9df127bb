export type { Blobs, Supervisor, SupervisorOptions } from './supervisor.js';
export { startSupervisor } from './supervisor.js';
