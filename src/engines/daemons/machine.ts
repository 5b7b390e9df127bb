/** What a supervisor says of the machine that it runs on, unless it was told otherwise. */
import { availableParallelism, totalmem, userInfo } from 'node:os';

export interface MachineShare {
  readonly cores: number;
  readonly memoryBytes: number;
}

/** The part of this machine that one of several supervisors on it may use: they divide it evenly. */
export function machineShare(supervisors: number): MachineShare {
  return {
    cores: Math.round((availableParallelism() / supervisors) * 100) / 100,
    memoryBytes: Math.floor(totalmem() / supervisors),
  };
}

/** The user account that this process runs as: its name, or its number where it has none. */
export function processOwner(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? '');
  }
}
