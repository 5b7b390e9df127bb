/**
 * What Storm's server checks and computes when a topology is submitted, in its order: name, counts, tasks, graph, size.
 * Used where Isobar must agree with Storm exactly; `plan-topology.ts` is what Isobar's own submissions go through.
 * Source: Storm's `Nimbus.submitTopologyWithOpts` and `StormCommon.validateBasic` and `validateStructure`.
 */
import { SYSTEM_PREFIX } from '../base/index.js';
import {
  type ComponentCounts,
  type ComponentRequest,
  exceededLimit,
  normaliseComponent,
} from './parallelism.js';
import {
  type Graph,
  type GraphComponent,
  type GraphInput,
  systemTopology,
  type SystemTopologyOptions,
} from './system-topology.js';

export interface SubmittedComponent extends ComponentRequest {
  readonly kind: 'spout' | 'bolt';
  /** Stream → fields. */
  readonly streams: ReadonlyMap<string, readonly string[]>;
  readonly inputs: readonly SubmittedInput[];
}

export interface SubmittedInput {
  readonly source: string;
  readonly stream: string;
  /** Keys of a fields grouping; null: another grouping. */
  readonly fields: readonly string[] | null;
}

/** A count of the topology's configuration as it was written, with its lower bound. */
export interface SubmittedCount {
  readonly key: string;
  readonly value: unknown;
  readonly minimum: 0 | 1;
}

export interface Submission {
  readonly name: string;
  readonly counts: readonly SubmittedCount[];
  readonly components: readonly SubmittedComponent[];
  readonly system: SystemTopologyOptions;
  /** Workers as submitted; a value of the cluster does not count here. */
  readonly workers: number;
  readonly maxWorkers: number | null;
  readonly maxExecutors: number | null;
}

/** Why Storm refuses a submission. */
export type Refusal =
  | 'topology-name'
  | `conf:${string}`
  | 'component-id'
  | 'stream-id'
  | 'duplicate-component-id'
  | 'spout-inputs'
  | 'executors-not-positive'
  | 'unknown-component'
  | 'unknown-stream'
  | 'unknown-fields'
  | 'too-many-workers'
  | 'too-many-executors';

export type SubmissionOutcome =
  | {
      readonly kind: 'accepted';
      readonly components: readonly ComponentCounts[];
      /** The sum of the hints, which is what the limit of executors is about. */
      readonly executorCountForLimit: number;
    }
  | { readonly kind: 'refused'; readonly reason: Refusal };

const LARGEST_INT = 2_147_483_647;

/** Checks and normalises a submission as Storm does. */
export function normaliseSubmission(submission: Submission): SubmissionOutcome {
  const components = submission.components.map(normaliseComponent);
  const executors = components.reduce((sum, { storedExecutors }) => sum + storedExecutors, 0);
  const reason =
    nameRefusal(submission.name) ??
    countRefusal(submission.counts) ??
    basicRefusal(submission.components, components) ??
    structureRefusal(submission) ??
    sizeRefusal(submission, executors);
  if (reason !== undefined) return { kind: 'refused', reason };
  return { kind: 'accepted', components, executorCountForLimit: executors };
}

function nameRefusal(name: string): Refusal | undefined {
  return /^[^/.:\\]+$/.test(name) ? undefined : 'topology-name';
}

/** Null is always allowed; a number with a fraction is no integer. */
function countRefusal(counts: readonly SubmittedCount[]): Refusal | undefined {
  const wrong = counts.find(({ value, minimum }) => {
    if (value === null || value === undefined) return false;
    return typeof value !== 'number' || !Number.isInteger(value) || value < minimum || value > LARGEST_INT;
  });
  return wrong === undefined ? undefined : `conf:${wrong.key}`;
}

function basicRefusal(
  submitted: readonly SubmittedComponent[],
  counts: readonly ComponentCounts[],
): Refusal | undefined {
  if (new Set(submitted.map(({ id }) => id)).size < submitted.length) return 'duplicate-component-id';
  for (const { id, streams, kind, inputs } of submitted) {
    if (id.startsWith(SYSTEM_PREFIX)) return 'component-id';
    if ([...streams.keys()].some((stream) => stream.startsWith(SYSTEM_PREFIX))) return 'stream-id';
    if (kind === 'spout' && inputs.length > 0) return 'spout-inputs';
  }
  const idle = counts.some(({ tasks, storedExecutors }) => tasks > 0 && storedExecutors <= 0);
  return idle ? 'executors-not-positive' : undefined;
}

/** On the complete system topology: inputs name streams that exist. */
function structureRefusal({ components, system }: Submission): Refusal | undefined {
  const graph = systemTopology(new Map(components.map((one) => [one.id, toGraphComponent(one)])), system);
  for (const { inputs } of components) {
    for (const input of inputs) {
      const reason = inputRefusal(graph, input);
      if (reason !== undefined) return reason;
    }
  }
  return undefined;
}

function inputRefusal(graph: Graph, { source, stream, fields }: SubmittedInput): Refusal | undefined {
  const component = graph.get(source);
  if (component === undefined) return 'unknown-component';
  if (!component.streams.has(stream)) return 'unknown-stream';
  if (fields === null) return undefined;
  // As Storm does: the field may be declared by any stream of the source, not only by the one subscribed to.
  const declared = new Set([...component.streams.values()].flatMap((one) => one.fields));
  return fields.every((field) => declared.has(field)) ? undefined : 'unknown-fields';
}

function toGraphComponent({ kind, streams, inputs }: SubmittedComponent): GraphComponent {
  return {
    kind,
    streams: new Map([...streams].map(([name, fields]) => [name, { fields, direct: false }])),
    inputs: inputs.map(
      ({ source, stream, fields }): GraphInput => ({
        source,
        stream,
        grouping: fields === null ? 'shuffle' : `fields:${fields.join(',')}`,
      }),
    ),
  };
}

function sizeRefusal(
  { workers, maxWorkers, maxExecutors }: Submission,
  executors: number,
): Refusal | undefined {
  const exceeded = exceededLimit({ workers, executors }, { maxWorkers, maxExecutors });
  return exceeded === undefined ? undefined : `too-many-${exceeded.what}`;
}
