/** The command `isobar plan`: reads, plans, prints. Touches no cluster. */
import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { clusterClient, clusterDirectory } from '../../api/index.js';
import { closestName, type ErrorCode, IsobarError, toErrorRecord, toIsobarError } from '../../base/index.js';
import {
  type ClusterPlan,
  explainExecutor,
  planCluster,
  slotTimeline,
  withoutPlacement,
} from '../../scheduling/index.js';
import { clusterExitCode, type ClusterSurroundings } from '../cluster-caller.js';
import { OWN_PLACE } from '../own-place.js';
import { colorsFor } from '../colors.js';
import { errorText } from '../error-text.js';
import { ExitCode } from '../exit-code.js';
import type { ClusterDraft } from './cluster-draft.js';
import type { ClusterFile } from './cluster-shapes.js';
import { PlanProgress } from './plan-progress.js';
import { compareLines } from './compare-views.js';
import { explainLines } from './explain-views.js';
import { type PlanInput, readPlanInput } from './plan-input.js';
import { compareJson, explainJson, planJson, timelineJson } from './plan-json.js';
import { checkStrategies, type PlanFlags, type PlanRequest, readPlanFlags } from './plan-options.js';
import { planLines } from './plan-views.js';
import { PlannedStrategies } from './planned-strategies.js';
import { clusterFileOf } from './save-cluster.js';
import { timelineLines } from './timeline-views.js';
import { runningDraft } from './running-cluster.js';

const WIDTH_OF_PIPES = 120;

/** Resolves to the exit code; errors have been shown. */
export async function planCommand(
  files: readonly string[],
  flags: PlanFlags,
  { out, err, environment }: ClusterSurroundings,
): Promise<number> {
  const width = out.isTTY === true ? Math.max(40, out.columns ?? WIDTH_OF_PIPES) : WIDTH_OF_PIPES;
  let strategies: PlannedStrategies | undefined;
  try {
    const request = readPlanFlags(flags);
    const running = flags.fromCluster === true ? await askRunning(flags, environment) : undefined;
    if (running === undefined && files.length === 0 && request.added.length === 0) throw nothingToPlan();
    const progress = new PlanProgress(err);
    const input = await readPlanInput(files, running, request, flags.check !== false, progress);
    strategies = new PlannedStrategies(input.changed.settings);
    checkStrategies(request, strategies.installed);
    const { text, json, isComplete } = answer(input, request, flags, width, strategies, progress);
    progress.step('writes the answer');
    out.write(flags.json === true ? `${JSON.stringify(json())}\n` : `${text().join('\n')}\n`);
    return isComplete ? ExitCode.ok : ExitCode.failed;
  } catch (error) {
    const fault = toIsobarError(error);
    const exitCode = exitCodeOf(fault.code);
    const record = toErrorRecord(fault);
    const { code, message, details } = record;
    const { expected, found, where, faults } = details;
    if (flags.json === true) {
      out.write(
        `${JSON.stringify({ type: 'error', code, message, expected, found, where, faults, exitCode })}\n`,
      );
    } else err.write(`${errorText(record, OWN_PLACE, colorsFor(err, environment))}\n`);
    return exitCode;
  } finally {
    strategies?.close();
  }
}

async function askRunning(
  { directory }: PlanFlags,
  environment: ClusterSurroundings['environment'],
): Promise<ClusterDraft> {
  const client = clusterClient(clusterDirectory(directory, environment, homedir()));
  try {
    return runningDraft(await client.ask('picture', null));
  } finally {
    client.close();
  }
}

function nothingToPlan(): IsobarError {
  return new IsobarError('USAGE', 'there is nothing to plan', {
    expected: 'files, --from-cluster or --add-supervisor',
    found: 'none of them',
    where: 'isobar plan',
  });
}

interface Answer {
  readonly text: () => readonly string[];
  readonly json: () => object;
  /** Everything has a place. */
  readonly isComplete: boolean;
}

function answer(
  input: PlanInput,
  request: PlanRequest,
  flags: PlanFlags,
  width: number,
  strategies: PlannedStrategies,
  progress: PlanProgress,
): Answer {
  const { original, changed, notes } = input;
  const { maxRounds } = request;
  const executors = changed.topologies.reduce((sum, { plan }) => sum + plan.executors.length, 0);
  const onStep = (what: string): void => progress.step(what, executors);
  const planBy = (strategy: string): ClusterPlan =>
    planCluster(changed, { strategy, maxRounds, named: (name) => strategies.named(name), onStep }, original);
  if (request.compared.length > 0) {
    const plans = request.compared.map(planBy);
    return {
      text: () => compareLines(plans, width),
      json: () => compareJson(plans),
      isComplete: plans.every(isComplete),
    };
  }
  if (request.offerEveryMs !== undefined)
    return timelineAnswer(input, request.offerEveryMs, request, flags, width, strategies);
  const plan = planBy(request.strategy ?? changed.settings['scheduling.strategy']);
  if (flags.save !== undefined) save(flags.save, clusterFileOf(plan, changed, input.drafts));
  if (flags.explain !== undefined) {
    const explanations = executorsNamed(plan, flags.explain).map(
      ([id, task]) => explainExecutor(plan, id, task)!,
    ); // named from it
    return {
      text: () =>
        explanations.flatMap((one, index) => [...(index > 0 ? [''] : []), ...explainLines(plan, one, width)]),
      json: () =>
        explanations.length === 1
          ? explainJson(plan, explanations[0]!)
          : explanations.map((one) => explainJson(plan, one)),
      isComplete: true,
    };
  }
  return {
    text: () => planLines(plan, notes, { width, isWhole: flags.all === true }),
    json: () => planJson(plan, notes),
    isComplete: isComplete(plan),
  };
}

/** @throws OUTPUT_UNWRITABLE */
function save(file: string, cluster: ClusterFile): void {
  try {
    writeFileSync(file, `${JSON.stringify(cluster)}\n`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new IsobarError(
      'OUTPUT_UNWRITABLE',
      `${file} cannot be written: ${why}`,
      { where: '--save' },
      error,
    );
  }
}

function timelineAnswer(
  { changed, offersAtMs }: PlanInput,
  offerEveryMs: number,
  request: PlanRequest,
  flags: PlanFlags,
  width: number,
  strategies: PlannedStrategies,
): Answer {
  const strategy = request.strategy ?? changed.settings['scheduling.strategy'];
  // Nobody runs while machines come up, unless the machine is there already.
  const timeline = slotTimeline(withoutPlacement(changed), {
    strategy,
    named: (name) => strategies.named(name),
    offerEveryMs,
    offersAtMs,
  });
  const wanted = changed.topologies.reduce((sum, { plan }) => sum + plan.executors.length, 0);
  return {
    text: () => timelineLines(timeline, { width, isWhole: flags.all === true }),
    json: () => timelineJson(timeline),
    isComplete: timeline.after.executors === wanted,
  };
}

function isComplete({ lacks, topologies }: ClusterPlan): boolean {
  return lacks.length === 0 && topologies.every(({ failure }) => failure === null);
}

const MAX_EXPLAINED = 20;

/**
 * `TOPOLOGY/COMPONENT`, `TOPOLOGY/TASK`, `TOPOLOGY/COMPONENT/TASK`; the topology may be left out where there is one.
 *
 * @throws USAGE
 */
function executorsNamed({ topologies }: ClusterPlan, name: string): readonly (readonly [string, number])[] {
  const wrong = (found: string, expected: string): IsobarError =>
    new IsobarError('USAGE', `--explain ${name} is not understood`, { expected, found, where: '--explain' });
  const slash = name.indexOf('/');
  const head = slash < 0 ? name : name.slice(0, slash);
  const isNamed = topologies.filter(({ id, facts }) => id === head || facts.name === head);
  const [only] = topologies;
  const topology = isNamed[0] ?? (topologies.length === 1 ? only : undefined);
  if (topology === undefined) {
    const closest = closestName(
      head,
      topologies.map(({ id }) => id),
    );
    throw wrong(head, closest === undefined ? 'TOPOLOGY/COMPONENT/TASK' : `did you mean "${closest}"?`);
  }
  const rest = isNamed.length === 0 ? name : slash < 0 ? '' : name.slice(slash + 1);
  const { executors } = topology.plan;
  const components = [...new Set(executors.map(({ component }) => component))];
  if (components.includes(rest) || rest === '') {
    const all = executors.filter(({ component }) => rest === '' || component === rest);
    return all.slice(0, MAX_EXPLAINED).map(({ range }) => [topology.id, range[0]] as const);
  }
  const at = rest.lastIndexOf('/');
  const [component, task] = [rest.slice(0, Math.max(0, at)), Number(rest.slice(at + 1))];
  // What stands before a slash may have been meant as a topology.
  if (slash > 0 && isNamed.length === 0 && components.includes(name.slice(slash + 1)))
    throw wrong(head, `the topology ${topology.id}; there is no other`);
  if (component !== '' && !components.includes(component)) {
    const closest = closestName(component, components);
    throw wrong(
      component,
      closest === undefined ? `one of ${components.slice(0, 20).join(', ')}` : `did you mean "${closest}"?`,
    );
  }
  const found = executors.find(
    (one) =>
      one.range[0] <= task && task <= one.range[1] && (component === '' || one.component === component),
  );
  if (found === undefined) {
    const closest = closestName(rest, components);
    throw wrong(
      rest,
      closest === undefined ? `a component or a task of ${topology.id}` : `did you mean "${closest}"?`,
    );
  }
  return [[topology.id, task]];
}

function exitCodeOf(code: ErrorCode): number {
  if (code === 'SUPERVISOR_UNKNOWN') return ExitCode.usage;
  if (code === 'OUTPUT_UNWRITABLE') return ExitCode.failed;
  return clusterExitCode(code, ExitCode.notSubmitted);
}
