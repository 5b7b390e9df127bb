/**
 * What a supervisor remembers of the workers that it has launched, one file per slot, so that a restarted supervisor
 * finds them again.
 *
 * A record is written before the process is spawned (its process is null: an intent) and again once it is known. A
 * supervisor killed in between finds the process by its launch file, which is its argument. A damaged record counts as
 * absent, and one of an earlier boot of the machine as one without a process.
 */
import {
  bootId,
  type ProcessIdentity,
  readJsonFile,
  removeUnfinished,
  writeDurableFile,
} from '../base/index.js';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type { WorkerTuning } from './slot-plan.js';

export interface LaunchRecord {
  readonly format: 1;
  readonly workerId: string;
  readonly port: number;
  readonly topologyId: string;
  readonly generation: number;
  readonly launchFile: string;
  readonly tuning: WorkerTuning;
  /** null: written before the process was spawned. */
  readonly process: ProcessIdentity | null;
  /** Of the machine, see `bootId`. */
  readonly boot: string;
}

export class LaunchRecords {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  write(record: Omit<LaunchRecord, 'format' | 'boot'>): void {
    const whole: LaunchRecord = { ...record, format: 1, boot: bootId() };
    writeDurableFile(this.#path(record.port), JSON.stringify(whole));
  }

  remove(port: number): void {
    rmSync(this.#path(port), { force: true });
  }

  /** Removes what an earlier supervisor was killed in the middle of writing. */
  tidy(): void {
    removeUnfinished(this.#directory);
  }

  /** All records that can be read. */
  readAll(): LaunchRecord[] {
    let names: string[];
    try {
      names = readdirSync(this.#directory);
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      const record = parseLaunchRecord(readJsonFile(join(this.#directory, name)));
      if (record === undefined || name !== `${record.port}.json`) return [];
      return [record.boot === bootId() ? record : { ...record, process: null }];
    });
  }

  #path(port: number): string {
    return join(this.#directory, `${port}.json`);
  }
}

/** Checks the shape of a record; undefined if it is none. */
export function parseLaunchRecord(value: unknown): LaunchRecord | undefined {
  if (!isObject(value) || value['format'] !== 1 || !isObject(value['tuning'])) return undefined;
  const { tuning } = value;
  const hasShape =
    ['workerId', 'topologyId', 'launchFile', 'boot'].every((name) => typeof value[name] === 'string') &&
    ['port', 'generation'].every((name) => Number.isSafeInteger(value[name])) &&
    ['launchTimeoutMs', 'timeoutMs', 'backoffMs', 'backoffMaxMs'].every(
      (name) => typeof tuning[name] === 'number' && tuning[name] > 0,
    ) &&
    (value['process'] === null || isProcessIdentity(value['process']));
  // Every field has just been checked.
  return hasShape ? (value as unknown as LaunchRecord) : undefined;
}

export function isProcessIdentity(value: unknown): value is ProcessIdentity {
  return (
    isObject(value) &&
    Number.isSafeInteger(value['pid']) &&
    // 0 and negative numbers name process groups: never to be signalled.
    Number(value['pid']) > 1 &&
    typeof value['startTime'] === 'string'
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
