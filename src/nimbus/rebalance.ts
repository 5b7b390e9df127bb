/** What a rebalance asks for: its checks, and the counts that come out of it. Pure. */
import { IsobarError } from '../base/index.js';
import type { DesiredState } from '../coordination/index.js';
import { componentNotFound } from './component-not-found.js';
import { RESOURCE_NAMES } from '../scheduling/index.js';
import type { PlacementChanges } from './placement-changes.js';
import type { LifeStatus } from './status-machine.js';

export interface RebalanceRequest {
  /** Not given: as they are. */
  readonly workers?: number;
  /** Executors by component; more than tasks are accepted, and there will be as many as tasks. */
  readonly executors: Readonly<Record<string, number>>;
  /** Resources by component, by name. */
  readonly resources: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Spouts do not read for so long before anything changes; null: nothing waits, and what need not stop does not. */
  readonly waitMs: number | null;
  /** Place everything anew. */
  readonly fromScratch: boolean;
  /** Only say what would be done. */
  readonly preview: boolean;
  /** See {@link DesiredState.requestId}. */
  readonly requestId?: string;
}

/** What a rebalance does, or would do. */
export interface RebalanceResult {
  readonly topologyId: string;
  readonly status: LifeStatus;
  readonly revision: number;
  /** Time until it happens; null: it has begun. */
  readonly waitMs: number | null;
  /** Workers wanted after it. */
  readonly workers: number;
  /** Executors that there will be, by component. */
  readonly executors: Readonly<Record<string, number>>;
  /** A sentence for each count that is not what was asked for. */
  readonly notes: readonly string[];
  /** As the cluster is now. */
  readonly changes: PlacementChanges;
  /** Why not all of it can be placed now; null: it can. */
  readonly unplacedReason: string | null;
}

const MAX_COUNT = 1_000_000;
const RESOURCE_STRATEGY = 'resource-aware';

/**
 * Checks the numbers and the names of a request.
 *
 * @param components of the topology, system components that have tasks included
 * @param asStorm whether names of system components (`__…`) are taken as they are, whatever there is
 * @throws PARALLELISM_ILLEGAL, COMPONENT_NOT_FOUND
 */
export function checkRebalance(
  { workers, executors, resources }: Pick<RebalanceRequest, 'workers' | 'executors' | 'resources'>,
  components: readonly string[],
  { asStorm }: { readonly asStorm: boolean },
): void {
  if (workers !== undefined) checkCount('workers', workers);
  for (const component of [...Object.keys(executors), ...Object.keys(resources)]) {
    if (components.includes(component) || (asStorm && component.startsWith('__'))) continue;
    throw componentNotFound(component, components);
  }
  for (const [component, count] of Object.entries(executors))
    checkCount(`executors of "${component}"`, count);
  for (const [component, amounts] of Object.entries(resources)) {
    for (const [resource, amount] of Object.entries(amounts)) {
      if (Number.isFinite(amount) && amount >= 0) continue;
      throw illegal(`${resource} of "${component}"`, amount, 'a number from 0');
    }
  }
}

/**
 * Refuses resources where nobody would look at them: the strategy does not place by resources, or a name is none that it knows.
 *
 * @throws RESOURCES_NOT_HEEDED
 */
export function checkResources({ resources }: Pick<RebalanceRequest, 'resources'>, strategy: string): void {
  const components = Object.keys(resources);
  if (components.length === 0) return;
  const names = components.map((component) => `"${component}"`).join(', ');
  if (strategy !== RESOURCE_STRATEGY) {
    throw new IsobarError(
      'RESOURCES_NOT_HEEDED',
      `resources of ${names} would have no effect: the strategy "${strategy}" does not place by resources`,
      { expected: `scheduling.strategy ${RESOURCE_STRATEGY}`, found: strategy, where: names },
    );
  }
  for (const [component, amounts] of Object.entries(resources)) {
    const unknown = Object.keys(amounts).find((name) => !RESOURCE_NAMES.includes(name));
    if (unknown === undefined) continue;
    throw new IsobarError(
      'RESOURCES_NOT_HEEDED',
      `the resource "${unknown}" of "${component}" would have no effect: nobody knows it`,
      { expected: `one of: ${RESOURCE_NAMES.join(', ')}`, found: unknown, where: `"${component}"` },
    );
  }
}

/** The counts after a request, over those before it. */
export function desiredAfter(
  before: DesiredState | undefined,
  request: RebalanceRequest,
  wallMs: number,
): DesiredState {
  const workers = request.workers ?? before?.workers;
  const { requestId } = request;
  return {
    revision: (before?.revision ?? 0) + 1,
    executors: { ...before?.executors, ...request.executors },
    resources: mergeResources(before?.resources ?? {}, request.resources),
    placement: request.fromScratch ? 'from-scratch' : 'few-moves',
    changedMs: wallMs,
    ...(workers === undefined ? {} : { workers }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}

function mergeResources(
  before: DesiredState['resources'],
  given: DesiredState['resources'],
): DesiredState['resources'] {
  const merged = { ...before };
  for (const [component, amounts] of Object.entries(given)) {
    merged[component] = { ...merged[component], ...amounts };
  }
  return merged;
}

function checkCount(what: string, value: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= MAX_COUNT) return;
  throw illegal(what, value, `a whole number from 1 to ${MAX_COUNT}`);
}

function illegal(what: string, value: number, expected: string): IsobarError {
  return new IsobarError('PARALLELISM_ILLEGAL', `${value} is no number for the ${what}`, {
    expected,
    found: String(value),
    where: what,
  });
}
