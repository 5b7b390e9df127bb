/**
 * The builder: turns calls such as `b.bolt('count', count).fields(words, ['word'])` into a description. It never throws
 * for a fault of the graph; it remembers the fault and goes on, so that all of them are reported at once.
 */
import { IsobarError } from '../base/index.js';
import { isDefinition, isRecord, type ComponentShape, type Definition } from './definition.js';
import {
  DEFAULT_STREAM,
  type ComponentDescription,
  type GroupingDescription,
  type SubscriptionDescription,
} from './description.js';
import { show, type TopologyFault } from './faults.js';
import type { TopologyBuilder } from './handles.js';
import { countFault, MAX_SUBSCRIPTIONS } from './names.js';
import { graphFaults, spoutInputFault, whereIs } from './rules.js';
import type { BuiltTopology, CustomGrouping, RuntimeBolt, RuntimeSpout } from './runtime.js';

/** A component while the graph is being written. */
interface Draft {
  readonly id: string;
  readonly shape: ComponentShape;
  readonly runtime: RuntimeSpout | RuntimeBolt;
  readonly parallelism: number;
  readonly tasks: number | null;
  readonly movable: boolean;
  readonly placement: Pick<ComponentDescription, 'slotSharingGroup' | 'coLocationGroup' | 'load'>;
  readonly subscriptions: SubscriptionDescription[];
}

/** A stream that a handle stands for; `null`: of a component that is not part of the graph because of a fault. */
interface SourceReference {
  readonly draft: Draft | null;
  readonly stream: string;
}

type PlainGrouping = Exclude<GroupingDescription['kind'], 'fields' | 'partial-key' | 'custom'>;

export class GraphBuilder {
  readonly faults: TopologyFault[] = [];
  readonly customGroupings = new Map<string, () => CustomGrouping>();
  readonly #drafts: Draft[] = [];
  readonly #sources = new WeakMap<object, SourceReference>();
  /** Inputs with a subscription that was left out because of a fault. */
  readonly #excused = new Set<string>();
  #isOpen = true;

  /** What the topology's file calls `b`. Its types are checked by the compiler, its values here. */
  readonly door: TopologyBuilder = {
    spout: (id, definition, options) => this.#add('spout', id, definition, options) as never,
    bolt: (id, definition, options) => this.#add('bolt', id, definition, options) as never,
  };

  /** Ends building: later calls of the door throw. */
  close(): void {
    this.#isOpen = false;
  }

  get components(): readonly ComponentDescription[] {
    return this.#drafts.map(({ id, shape, parallelism, tasks, movable, placement, subscriptions }) => ({
      id,
      kind: shape.kind,
      parallelism,
      tasks,
      streams: shape.streams,
      inputs: shape.inputs,
      subscriptions,
      stateful: shape.stateful,
      movable,
      tickMs: shape.tickMs,
      manual: shape.manual,
      unordered: shape.unordered,
      ...placement,
    }));
  }

  get runtimes(): BuiltTopology['components'] {
    return new Map(this.#drafts.map(({ id, runtime }) => [id, runtime]));
  }

  /** All faults: those that only the builder can see, then those of the graph. */
  check(name: string): readonly TopologyFault[] {
    const isExcused = (component: string, input: string): boolean =>
      this.#excused.has(JSON.stringify([component, input]));
    return [...this.faults, ...graphFaults({ name, components: this.components }, isExcused)];
  }

  #add(kind: 'spout' | 'bolt', id: unknown, definition: unknown, options: unknown): object {
    this.#requireOpen();
    const where = whereIs({ kind, id });
    let draft: Draft | null = null;
    if (typeof id !== 'string') {
      this.#illegal(where, 'COMPONENT_ID_ILLEGAL', `${show(id)} is not a component id`, 'a text', id);
    } else if (!isDefinition(definition) || definition.shape.kind !== kind) {
      const found = isDefinition(definition) ? `the result of ${definition.shape.kind}(…)` : show(definition);
      const message = `the definition is not the result of ${kind}(…)`;
      this.faults.push({
        code: 'DEFINITION_ILLEGAL',
        message,
        expected: `the result of ${kind}({ … })`,
        found,
        where,
      });
    } else {
      draft = this.#draft(id, definition, options, where);
      this.#drafts.push(draft);
    }
    return this.#handle(draft, kind, where);
  }

  #draft(id: string, { shape, runtime }: Definition, options: unknown, where: string): Draft {
    const known = ['parallelism', 'tasks', 'movable', 'slotSharingGroup', 'coLocationGroup', 'load'];
    if (options !== undefined && !isRecord(options)) {
      this.#illegal(where, 'DEFINITION_ILLEGAL', 'the options are not an object', 'an object', options);
    }
    const given = isRecord(options) ? options : {};
    for (const name of Object.keys(given)) {
      if (known.includes(name)) continue;
      this.#illegal(
        where,
        'DEFINITION_ILLEGAL',
        `the option ${show(name)} is unknown`,
        known.join(', '),
        name,
      );
    }
    const count = (name: 'parallelism' | 'tasks'): number | undefined => {
      const value = given[name];
      if (value === undefined) return undefined;
      const fault = countFault(value, name);
      if (fault !== undefined) this.faults.push({ ...fault, where });
      return fault === undefined ? (value as number) : undefined; // countFault has checked it
    };
    const movable = given['movable'] ?? shape.movable;
    if (typeof movable !== 'boolean') {
      this.#illegal(where, 'DEFINITION_ILLEGAL', 'movable is not a boolean', 'true or false', movable);
    }
    return {
      id,
      shape,
      runtime,
      parallelism: count('parallelism') ?? 1,
      tasks: count('tasks') ?? null,
      movable: movable === true,
      placement: this.#placement(given, where),
      subscriptions: [],
    };
  }

  /** Where its executors may run; what is wrong with the values is told by the rules of the graph. */
  #placement(given: Readonly<Record<string, unknown>>, where: string): Draft['placement'] {
    const { slotSharingGroup, coLocationGroup, load } = given;
    for (const [name, value] of Object.entries({ slotSharingGroup, coLocationGroup })) {
      if (value !== undefined && typeof value !== 'string')
        this.#illegal(where, 'DEFINITION_ILLEGAL', `${name} is not a text`, 'the name of a group', value);
    }
    if (load !== undefined && typeof load !== 'number')
      this.#illegal(where, 'DEFINITION_ILLEGAL', 'load is not a number', 'a number from 0', load);
    return {
      ...(typeof slotSharingGroup === 'string' ? { slotSharingGroup } : {}),
      ...(typeof coLocationGroup === 'string' ? { coLocationGroup } : {}),
      ...(typeof load === 'number' ? { load } : {}),
    };
  }

  /** A handle: it is its component's main stream and has the groupings. Also without a draft it can be worked with. */
  #handle(draft: Draft | null, kind: 'spout' | 'bolt', where: string): object {
    const component = draft?.id ?? '';
    const handle: Record<string, unknown> = { component, stream: DEFAULT_STREAM };
    this.#sources.set(handle, { draft, stream: DEFAULT_STREAM });
    const streams = new Map<string, object>();
    handle['streams'] = byName((name) => {
      const known = streams.get(name);
      if (known !== undefined) return known;
      // A name that is not declared gives a stream too: the graph's rules then report it.
      const stream = Object.freeze({ component, stream: name });
      streams.set(name, stream);
      this.#sources.set(stream, { draft, stream: name });
      return stream;
    });
    const names = draft?.shape.inputs.map(({ name }) => name) ?? [];
    const hasOne = names.length === 1 && names[0] === DEFAULT_STREAM;
    const refuse = (message: string, expected: string) => (): string | null => {
      if (draft !== null) this.faults.push({ code: 'DEFINITION_ILLEGAL', message, expected, where });
      return null;
    };
    const refuseSpout = (): null => {
      if (draft !== null) this.faults.push({ ...spoutInputFault(), where });
      return null;
    };
    const choose = hasOne
      ? () => DEFAULT_STREAM
      : refuse('the bolt has named inputs', `the name of an input first: .on.${names[0] ?? 'name'}`);
    Object.assign(handle, this.#groupings(handle, draft, where, kind === 'spout' ? refuseSpout : choose));
    handle['on'] = byName((name) => {
      const isKnown = names.includes(name) && !hasOne;
      const chooseNamed = isKnown
        ? () => name
        : refuse(
            `the bolt has no input named ${show(name)}`,
            hasOne ? 'a grouping without .on' : `one of ${names.join(', ')}`,
          );
      return this.#groupings(handle, draft, where, kind === 'spout' ? refuseSpout : chooseNamed);
    });
    return Object.freeze(handle);
  }

  /** The groupings of one input. `chooseInput` gives its name, or null after having reported why there is none. */
  #groupings(
    handle: object,
    draft: Draft | null,
    where: string,
    chooseInput: () => string | null,
  ): Readonly<Record<string, (source: unknown, argument?: unknown) => object>> {
    const add = (
      source: unknown,
      grouping: GroupingDescription | null,
      custom?: () => CustomGrouping,
    ): object => {
      this.#requireOpen();
      const input = chooseInput();
      if (input !== null && draft !== null) this.#subscribe(draft, input, source, grouping, custom);
      return handle;
    };
    const plain = (kind: PlainGrouping) => (source: unknown) => add(source, { kind });
    const keyed = (kind: 'fields' | 'partial-key') => (source: unknown, keys: unknown) => {
      if (isTextList(keys)) return add(source, { kind, fields: [...keys] });
      this.#illegal(
        where,
        'DEFINITION_ILLEGAL',
        `the keys of a ${kind} grouping are not a list of names`,
        'a list such as ["word"]',
        keys,
      );
      return add(source, null);
    };
    return {
      shuffle: plain('shuffle'),
      localOrShuffle: plain('local-or-shuffle'),
      fields: keyed('fields'),
      partialKey: keyed('partial-key'),
      all: plain('all'),
      global: plain('global'),
      none: plain('none'),
      direct: plain('direct'),
      custom: (source, create) => {
        // What the factory makes is checked where it is used, by the worker.
        if (typeof create === 'function')
          return add(source, { kind: 'custom' }, create as () => CustomGrouping);
        this.#illegal(
          where,
          'DEFINITION_ILLEGAL',
          'the custom grouping is not a function',
          'a function that makes a grouping',
          create,
        );
        return add(source, null);
      },
    };
  }

  #subscribe(
    draft: Draft,
    input: string,
    source: unknown,
    grouping: GroupingDescription | null,
    custom: (() => CustomGrouping) | undefined,
  ): void {
    const where = whereIs({ kind: draft.shape.kind, id: draft.id });
    const reference = typeof source === 'object' && source !== null ? this.#sources.get(source) : undefined;
    if (reference === undefined) {
      const isForeign = isRecord(source) && typeof source['component'] === 'string';
      this.faults.push({
        code: 'COMPONENT_UNKNOWN',
        message: isForeign
          ? `a subscription names ${show(source['component'])} of another builder`
          : 'a subscription does not name a component of this topology',
        expected: 'a handle that b.spout(…) or b.bolt(…) of this builder returned, or one of its streams',
        found: isForeign ? `a handle of ${show(source['component'])} from another builder` : show(source),
        where,
      });
    }
    if (reference?.draft == null || grouping === null) {
      this.#excused.add(JSON.stringify([draft.id, input]));
      return;
    }
    if (draft.subscriptions.length >= MAX_SUBSCRIPTIONS) {
      this.#illegal(
        where,
        'DEFINITION_ILLEGAL',
        'there are too many subscriptions',
        `at most ${MAX_SUBSCRIPTIONS}`,
        undefined,
      );
      return;
    }
    if (custom !== undefined) this.customGroupings.set(`${draft.id}#${draft.subscriptions.length}`, custom);
    draft.subscriptions.push({ input, source: reference.draft.id, stream: reference.stream, grouping });
  }

  #illegal(
    where: string,
    code: TopologyFault['code'],
    message: string,
    expected: string,
    found: unknown,
  ): void {
    this.faults.push({ code, message, expected, found: show(found), where });
  }

  #requireOpen(): void {
    if (this.#isOpen) return;
    throw new IsobarError(
      'DEFINITION_ILLEGAL',
      'the builder was used after the function given to topology(…) had returned',
      {
        expected: 'calls of b and its handles inside that function',
        found: 'a later call',
        where: 'topology',
      },
    );
  }
}

/** An object that has every name: the answer to a wrong name must not be an error in the middle of a chain. */
function byName(make: (name: string) => object): object {
  return new Proxy(Object.create(null) as object, {
    get: (_target, name) => (typeof name === 'string' ? make(name) : undefined),
  });
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
