/** Asks all executor threads of a worker for live rows, and puts their answers together. Runs on the main thread. */
import { closestName, IsobarError } from '../base/index.js';
import type { TapReport, TapRequest } from '../coordination/index.js';
import type { ComponentDescription, TopologyDescription } from '../topology/index.js';
import type { ThreadHost } from './thread-host.js';
import type { ThreadQuestions } from './thread-questions.js';

/** Threads that are in a call of user code answer when they come back. */
const GRACE_MS = 500;

/** @throws COMPONENT_NOT_FOUND, USAGE */
export async function tapThreads(
  questions: ThreadQuestions,
  hosts: readonly ThreadHost[],
  request: TapRequest,
  description: TopologyDescription,
): Promise<TapReport> {
  const taken = checkTap(request, description);
  const { answers, silent } = await questions.ask(
    hosts,
    (id) => ({ kind: 'tap', id, request: { ...request, taken } }),
    request.windowMs + GRACE_MS,
  );
  const tapped = answers.filter((answer) => answer.kind === 'tapped');
  return {
    rows: tapped.flatMap(({ rows }) => rows).sort((a, b) => a.atMs - b.atMs),
    seen: tapped.reduce((sum, { seen }) => sum + seen, 0),
    silentThreads: silent,
  };
}

/** Whether rows taken are shown: of a component that emits nothing there are no others. @throws COMPONENT_NOT_FOUND, USAGE */
function checkTap({ component: id, taken, where }: TapRequest, { components }: TopologyDescription): boolean {
  const component = components.find((one) => one.id === id);
  if (component === undefined)
    throw new IsobarError('COMPONENT_NOT_FOUND', `there is no component "${id}"`, { found: id, where: id });
  const isTaken = component.kind === 'bolt' && (taken || component.streams.length === 0);
  const fields = fieldsOf(component, isTaken);
  if (where === null || fields.includes(where.field)) return isTaken;
  const closest = closestName(where.field, fields);
  throw new IsobarError(
    'USAGE',
    `rows that "${id}" ${isTaken ? 'takes' : 'emits'} have no field "${where.field}"${closest === undefined ? '' : `; did you mean "${closest}"?`}`,
    { expected: `one of: ${fields.join(', ')}`, found: where.field, where: '--where' },
  );
}

function fieldsOf({ streams, inputs }: ComponentDescription, isTaken: boolean): readonly string[] {
  const all = (isTaken ? inputs : streams).flatMap(({ fields }) => fields.map(({ name }) => name));
  return [...new Set(all)];
}
