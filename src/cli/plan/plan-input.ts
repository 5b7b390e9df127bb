/** From files and a running cluster to what is planned. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { aliasNotes, compileSettings, IsobarError } from '../../base/index.js';
import { prepareSubmission, resolveEntry, stopBundler } from '../../engines/index.js';
import {
  addSupervisors,
  type ImaginedCluster,
  killWorkers,
  removeSupervisors,
  type RoundSupervisor,
  withoutPlacement,
} from '../../scheduling/index.js';
import { type ClusterDraft, mergeDrafts, type TopologyDraft } from './cluster-draft.js';
import { eachRepeatedKey } from '../repeated-keys.js';
import { place } from './cluster-shapes.js';
import { toImagined } from './imagine-cluster.js';
import { InputFaults, Words } from './input-faults.js';
import type { PlanProgress } from './plan-progress.js';
import type { AddedSupervisors, PlanRequest } from './plan-options.js';
import { portsOf, readClusterFile, supervisorOf } from './read-cluster-file.js';
import { readStormAnswers, type StormAnswer, stormAnswersIn } from './read-storm-answers.js';
import { isTopologyDescription, readTopologyJson, topologyDraftOf } from './read-topology-json.js';

const MAX_FILE_BYTES = 256 * 1024 * 1024;
const SOURCE_FILES = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '.tsx', '.jsx']);

export interface PlanInput {
  readonly original: ImaginedCluster;
  /** With the changes that were asked for. */
  readonly changed: ImaginedCluster;
  readonly notes: readonly string[];
  readonly drafts: readonly TopologyDraft[];
  /** When supervisors offer their slots, by id, ms after the start of a timeline. */
  readonly offersAtMs: ReadonlyMap<string, number>;
}

/**
 * Reads files, puts them together with what the running cluster said, and makes the changes.
 *
 * @throws FILE_NOT_FOUND, CLUSTER_INVALID, USAGE, SUPERVISOR_UNKNOWN, and the codes of a submission for source files
 */
export async function readPlanInput(
  files: readonly string[],
  running: ClusterDraft | undefined,
  request: PlanRequest,
  isChecked: boolean,
  progress: Pick<PlanProgress, 'step'>,
): Promise<PlanInput> {
  const faults = new InputFaults();
  const drafts: ClusterDraft[] = running === undefined ? [] : [running];
  const answers: StormAnswer[] = [];
  for (const file of files) {
    progress.step(`reads ${basename(file)}`);
    const draft = SOURCE_FILES.has(extname(file))
      ? await readSource(file, isChecked)
      : readJson(file, faults, answers);
    if (draft !== undefined) drafts.push(draft);
  }
  if (answers.length > 0) drafts.push(readStormAnswers(answers, faults));
  const draft = mergeDrafts(drafts, faults);
  faults.throwIfAny();
  for (const name of request.settings.byTopology.keys()) {
    if (!draft.topologies.some(({ id, facts }) => id === name || facts.name === name))
      faults.add(`--set ${name}:…`, 'the name of a topology', name);
  }
  faults.throwIfAny();
  progress.step('counts executors and checks what runs');
  const imagined = toImagined(draft, request.settings, faults);
  faults.throwIfAny();
  if (imagined === undefined) throw new IsobarError('INTERNAL', 'a cluster without faults was not built');
  let { changed } = imagined;
  if (request.fromScratch) changed = withoutPlacement(changed);
  changed = addSupervisors(
    changed,
    request.added.flatMap((added) => supervisorsOf(added, changed)),
  );
  changed = killWorkers(changed, request.killed);
  changed = removeSupervisors(changed, request.removed);
  const { offersAtMs = new Map() } = draft;
  const given = [
    ...draft.topologies.map(({ settings }) => settings),
    ...request.settings.byTopology.values(),
  ];
  const notes = [...draft.notes, ...aliasNotes(draft.settings, request.settings.all, ...given)];
  return { original: imagined.original, changed, drafts: imagined.drafts, notes, offersAtMs };
}

/** Answers of a Storm UI are collected: only together they are a cluster. */
function readJson(file: string, faults: InputFaults, answers: StormAnswer[]): ClusterDraft | undefined {
  const name = basename(file);
  let text: string;
  try {
    const { size } = statSync(file);
    if (size > MAX_FILE_BYTES) {
      faults.add(name, `at most ${MAX_FILE_BYTES} bytes`, size);
      return undefined;
    }
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new IsobarError(
      'FILE_NOT_FOUND',
      `${file} cannot be read: ${why}`,
      { found: file, where: file },
      error,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    faults.add(
      name,
      'JSON',
      new Words(jsonFault(error instanceof Error ? error.message : String(error), text)),
    );
    return undefined;
  }
  if (hasRepeatedKeys(text, name, faults)) return undefined;
  const own = stormAnswersIn(value, name);
  if (own.length > 0) {
    answers.push(...own);
    return undefined;
  }
  if (isTopologyDescription(value)) return readTopologyJson(value, name, faults);
  return readClusterFile(value, name, faults);
}

/** Of a key that is there twice the parser takes the last one: whichever was meant, somebody would be surprised. */
function hasRepeatedKeys(text: string, name: string, faults: InputFaults): boolean {
  let hasAny = false;
  eachRepeatedKey(text, ({ path, line, column }) => {
    hasAny = true;
    faults.add(place(name, path), 'each key once', new Words(`it again, at line ${line}, column ${column}`));
  });
  return hasAny;
}

/** The parser counts characters; a person looks for a line. */
function jsonFault(message: string, text: string): string {
  const position = /^(.*?) in JSON at position (\d+)/s.exec(message);
  const isCut = message === 'Unexpected end of JSON input';
  const at = isCut ? text.length : position === null ? placeOfQuoted(message, text) : Number(position[2]);
  if (at === undefined) return `text that is not: ${message}`;
  const before = text.slice(0, at).split('\n');
  const column = (before.at(-1)?.length ?? 0) + 1;
  const what = isCut ? 'its end too early' : `text that is not: ${position?.[1] ?? message}`;
  return `${what}, at line ${before.length}, column ${column}`;
}

/** Where a token is for which the parser shows what is around it: ten characters before it, or all of them. */
function placeOfQuoted(message: string, text: string): number | undefined {
  const quoted = /^Unexpected token '(.)', (\.\.\.)?"(.*)"(?:\.\.\.)? is not valid JSON$/su.exec(message);
  if (quoted === null) return undefined;
  const [, token = '', dots, around = ''] = quoted;
  const [start, shift] = [text.indexOf(around), dots === undefined ? around.indexOf(token) : SHOWN_BEFORE];
  return start < 0 || shift < 0 ? undefined : start + shift;
}

const SHOWN_BEFORE = 10;

async function readSource(file: string, isChecked: boolean): Promise<ClusterDraft> {
  const path = resolveEntry(file);
  const workDirectory = mkdtempSync(join(tmpdir(), 'isobar-plan-'));
  try {
    const { description } = await prepareSubmission({
      file: path,
      check: isChecked,
      evaluationTimeoutMs: compileSettings()['submit.evaluation-timeout'],
      workDirectory,
    });
    return topologyDraftOf(description, basename(file));
  } finally {
    await stopBundler();
    rmSync(workDirectory, { recursive: true, force: true });
  }
}

function supervisorsOf(added: AddedSupervisors, cluster: ImaginedCluster): RoundSupervisor[] {
  const { count, id, rack, slots } = added;
  const ports = portsOf({ slots }, '--add-supervisor', new InputFaults());
  const taken = new Set(cluster.supervisors.map((one) => one.id));
  const prefix = id ?? `new-${rack ?? 'machine'}`;
  const supervisors: RoundSupervisor[] = [];
  for (let number = 1; supervisors.length < count; number++) {
    const name = id !== undefined && count === 1 ? id : `${prefix}-${number}`;
    if (taken.has(name) && id === undefined) continue;
    supervisors.push(supervisorOf(added, name, ports));
  }
  return supervisors;
}
