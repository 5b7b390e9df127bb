/** Asks all executor threads of a worker for live rows, and puts their answers together. Runs on the main thread. */
import { closestName, type Clock, IsobarError } from '../base/index.js';
import type { TapReport, TapRequest } from '../coordination/index.js';
import type { ComponentDescription, TopologyDescription } from '../topology/index.js';
import type { ThreadHost } from './thread-host.js';
import type { FromThread } from './thread-messages.js';

type Tapped = Extract<FromThread, { kind: 'tapped' }>;

/** Threads that are in a call of user code answer when they come back. */
const GRACE_MS = 500;

interface OpenTap {
  readonly waitsFor: Set<string>;
  readonly answers: Tapped[];
  finish(): void;
}

export class TapCollector {
  readonly #hosts: () => readonly ThreadHost[];
  readonly #clock: Clock;
  readonly #open = new Map<number, OpenTap>();
  #lastId = 0;

  constructor(hosts: () => readonly ThreadHost[], clock: Clock) {
    this.#hosts = hosts;
    this.#clock = clock;
  }

  /** @throws COMPONENT_NOT_FOUND, USAGE */
  tap(request: TapRequest, description: TopologyDescription): Promise<TapReport> {
    const taken = checkTap(request, description);
    const hosts = this.#hosts().filter(({ loaded }) => loaded);
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const cancel = this.#clock.after(request.windowMs + GRACE_MS, () => this.#open.get(id)?.finish());
      const tap: OpenTap = {
        waitsFor: new Set(hosts.map(({ key }) => key)),
        answers: [],
        finish: () => {
          cancel();
          this.#open.delete(id);
          resolve({
            rows: tap.answers.flatMap(({ rows }) => rows).sort((a, b) => a.atMs - b.atMs),
            seen: tap.answers.reduce((sum, { seen }) => sum + seen, 0),
            silentThreads: tap.waitsFor.size,
          });
        },
      };
      this.#open.set(id, tap);
      if (hosts.length === 0) tap.finish();
      for (const host of hosts) host.post({ kind: 'tap', id, request: { ...request, taken } });
    });
  }

  onTapped(host: ThreadHost, message: Tapped): void {
    const tap = this.#open.get(message.id);
    if (tap?.waitsFor.delete(host.key) !== true) return;
    tap.answers.push(message);
    if (tap.waitsFor.size === 0) tap.finish();
  }
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
