/** What a whole machine has, in the units of the scheduler. */
import type { SupervisorRecord } from '../coordination/index.js';
import type { RoundSupervisor } from '../scheduling/index.js';

const BYTES_PER_MB = 1_048_576;

export function machineResources({
  cores,
  memoryBytes,
}: Pick<SupervisorRecord, 'cores' | 'memoryBytes'>): NonNullable<RoundSupervisor['resources']> {
  return { cpuPercent: cores * 100, memoryMb: memoryBytes / BYTES_PER_MB };
}
