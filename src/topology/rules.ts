/**
 * The rules that every graph must keep, over its description: the builder applies them, and Nimbus applies them again to
 * what is submitted. All faults are found, in declared order; nothing is changed.
 */
import {
  DEFAULT_STREAM,
  type ComponentDescription,
  type FieldDescription,
  type StreamDescription,
  type SubscriptionDescription,
  type TopologyDescription,
} from './description.js';
import { show, type TopologyFault } from './faults.js';
import { misfit } from './fit.js';
import {
  componentIdFault,
  countFault,
  fieldNameFault,
  groupNameFault,
  inputNameFault,
  MAX_COMPONENTS,
  MAX_LOAD,
  MAX_TICK_MS,
  streamNameFault,
  topologyNameFault,
  type NameFault,
} from './names.js';

/** Task numbers are 32-bit. */
const MAX_TASKS = 2_147_483_647;

/** What is wrong with a graph. `isExcused` leaves out inputs whose subscriptions are known to be faulty already. */
export function graphFaults(
  description: Pick<TopologyDescription, 'name' | 'components'>,
  isExcused: (component: string, input: string) => boolean = () => false,
): readonly TopologyFault[] {
  return new GraphRules(description, isExcused).check();
}

interface KnownStream {
  readonly stream: StreamDescription;
  readonly fields: ReadonlyMap<string, FieldDescription>;
}

class GraphRules {
  readonly #description: Pick<TopologyDescription, 'name' | 'components'>;
  readonly #isExcused: (component: string, input: string) => boolean;
  readonly #faults: TopologyFault[] = [];
  /** Of each stream that is subscribed to: whether its first subscriber is direct. All others must be the same. */
  readonly #isDirect = new Map<string, boolean>();
  /** The streams of every component, by its id. */
  readonly #streams = new Map<string, ReadonlyMap<string, KnownStream>>();

  constructor(
    description: Pick<TopologyDescription, 'name' | 'components'>,
    isExcused: (component: string, input: string) => boolean,
  ) {
    this.#description = description;
    this.#isExcused = isExcused;
  }

  check(): readonly TopologyFault[] {
    const { name, components } = this.#description;
    this.#add(topologyNameFault(name), 'topology');
    if (components.length > MAX_COMPONENTS) {
      this.#illegal('topology', `there are ${components.length} components`, `at most ${MAX_COMPONENTS}`);
      return this.#faults;
    }
    for (const component of components) this.#checkComponent(component);
    for (const component of components) this.#checkInputs(component);
    this.#checkCoLocation(components);
    if (!components.some(({ kind }) => kind === 'spout')) {
      this.#add(
        {
          code: 'TOPOLOGY_WITHOUT_SPOUT',
          message: 'there is no spout',
          expected: 'at least one spout',
          found: 'none',
        },
        'topology',
      );
    }
    const tasks = components.reduce(
      (sum, { parallelism, tasks }) => sum + Math.max(parallelism, tasks ?? 0),
      0,
    );
    if (tasks > MAX_TASKS) {
      this.#add(
        {
          code: 'PARALLELISM_ILLEGAL',
          message: `there are ${tasks} tasks in all`,
          expected: `at most ${MAX_TASKS} tasks in a topology`,
          found: `${tasks}`,
        },
        'topology',
      );
    }
    return this.#faults;
  }

  #add(fault: NameFault | undefined, where: string): void {
    if (fault !== undefined) this.#faults.push({ ...fault, where });
  }

  #illegal(where: string, message: string, expected: string): void {
    this.#faults.push({ code: 'DEFINITION_ILLEGAL', message, expected, where });
  }

  #checkComponent(component: ComponentDescription): void {
    const where = whereIs(component);
    const { id, kind, streams, inputs, subscriptions, tickMs } = component;
    this.#add(componentIdFault(id), where);
    const known = new Map<string, KnownStream>();
    for (const stream of streams) {
      const inStream = `${where}, stream ${show(stream.name)}`;
      if (stream.name !== DEFAULT_STREAM) this.#add(streamNameFault(stream.name), where);
      if (known.has(stream.name)) {
        this.#add(
          {
            code: 'STREAM_ID_ILLEGAL',
            message: 'the stream is declared twice',
            expected: 'each stream once',
          },
          inStream,
        );
      }
      known.set(stream.name, { stream, fields: this.#checkFields(stream.fields, inStream) });
    }
    if (this.#streams.has(id)) {
      this.#add(
        {
          code: 'COMPONENT_ID_DUPLICATE',
          message: `the id ${show(id)} is used twice`,
          expected: 'an id that no other component has',
          found: show(id),
        },
        where,
      );
    } else this.#streams.set(id, known);
    this.#add(countFault(component.parallelism, 'parallelism'), where);
    if (component.tasks !== null) this.#add(countFault(component.tasks, 'tasks'), where);
    if (tickMs !== null && !(tickMs > 0 && tickMs <= MAX_TICK_MS)) {
      this.#illegal(where, `the period of tick is ${tickMs} ms`, `more than 0 and at most ${MAX_TICK_MS} ms`);
    }
    this.#checkPlacement(component, where);
    if (kind === 'spout') {
      if (inputs.length > 0 || subscriptions.length > 0) this.#add(spoutInputFault(), where);
      if (streams.length === 0) this.#illegal(where, 'the spout has no stream', 'emits or streams');
      if (component.stateful || component.manual || component.unordered || tickMs !== null) {
        this.#illegal(
          where,
          'the spout has a part that only bolts have',
          'no state, manual, unordered or period',
        );
      }
    } else if (inputs.length === 0) this.#illegal(where, 'the bolt has no input', 'takes or inputs');
  }

  #checkPlacement({ slotSharingGroup, coLocationGroup, load }: ComponentDescription, where: string): void {
    this.#add(groupNameFault(slotSharingGroup, 'slotSharingGroup'), where);
    this.#add(groupNameFault(coLocationGroup, 'coLocationGroup'), where);
    if (load !== undefined && !(load >= 0 && load <= MAX_LOAD))
      this.#illegal(where, `load is ${load}`, `a number from 0 to ${MAX_LOAD}`);
  }

  /** Co-located executors share a slot by index: they need equal numbers, and a group in which they may share. */
  #checkCoLocation(components: readonly ComponentDescription[]): void {
    const first = new Map<string, ComponentDescription>();
    for (const component of components) {
      const { coLocationGroup: group, parallelism, slotSharingGroup } = component;
      if (group === undefined) continue;
      const other = first.get(group);
      if (other === undefined) first.set(group, component);
      else if (other.parallelism !== parallelism) {
        const message = `is co-located with "${other.id}", which has parallelism ${other.parallelism}, and has ${parallelism}`;
        this.#illegal(whereIs(component), message, `parallelism ${other.parallelism}`);
      } else if (other.slotSharingGroup !== slotSharingGroup) {
        const message = `is co-located with "${other.id}", but is in another slot sharing group`;
        this.#illegal(whereIs(component), message, other.slotSharingGroup ?? 'no slotSharingGroup');
      }
    }
  }

  #checkFields(fields: readonly FieldDescription[], where: string): ReadonlyMap<string, FieldDescription> {
    const byName = new Map<string, FieldDescription>();
    for (const field of fields) {
      this.#add(fieldNameFault(field.name), where);
      if (byName.has(field.name)) {
        this.#add(
          {
            code: 'FIELD_NAME_ILLEGAL',
            message: `field ${show(field.name)} is declared twice`,
            expected: 'each field once',
          },
          where,
        );
      }
      byName.set(field.name, field);
    }
    return byName;
  }

  #checkInputs(component: ComponentDescription): void {
    const { id, kind, inputs, subscriptions } = component;
    if (kind === 'spout') return;
    const where = whereIs(component);
    const inputFields = new Map<string, readonly FieldDescription[]>();
    for (const { name, fields } of inputs) {
      if (inputs.length > 1 || name !== DEFAULT_STREAM) this.#add(inputNameFault(name), where);
      if (inputFields.has(name))
        this.#illegal(where, `input ${show(name)} is declared twice`, 'each input once');
      this.#checkFields(fields, `${where}, input ${show(name)}`);
      inputFields.set(name, fields);
    }
    const seen = new Set<string>();
    const connected = new Set<string>();
    for (const subscription of subscriptions) {
      const { input, source, stream } = subscription;
      connected.add(input);
      const fields = inputFields.get(input);
      if (fields === undefined) {
        const names = inputs.map(({ name }) => name).join(', ');
        this.#illegal(where, `a subscription names the input ${show(input)}`, `one of ${names}`);
        continue;
      }
      const key = JSON.stringify([input, source, stream]);
      if (seen.has(key)) {
        this.#add(
          {
            code: 'SUBSCRIPTION_DUPLICATE',
            message: `stream ${show(stream)} of ${show(source)} is subscribed to twice`,
            expected: 'one grouping for a stream and an input',
          },
          where,
        );
        continue;
      }
      seen.add(key);
      this.#checkSubscription(subscription, fields, where);
    }
    for (const { name } of inputs) {
      if (connected.has(name) || this.#isExcused(id, name)) continue;
      this.#add(
        {
          code: 'BOLT_WITHOUT_INPUT',
          message:
            name === DEFAULT_STREAM
              ? 'the bolt has no subscription'
              : `input ${show(name)} has no subscription`,
          expected: 'at least one grouping',
          found: 'none',
        },
        where,
      );
    }
  }

  #checkSubscription(
    { input, source, stream, grouping }: SubscriptionDescription,
    takes: readonly FieldDescription[],
    component: string,
  ): void {
    const where = `${component}, ${input === DEFAULT_STREAM ? '' : `input ${show(input)}, `}subscription to ${
      stream === DEFAULT_STREAM ? '' : `stream ${show(stream)} of `
    }${show(source)}`;
    const streams = this.#streams.get(source);
    if (streams === undefined) {
      this.#add(
        {
          code: 'COMPONENT_UNKNOWN',
          message: `there is no component ${show(source)}`,
          expected: 'a component of this topology',
          found: show(source),
        },
        where,
      );
      return;
    }
    const known = streams.get(stream);
    if (known === undefined) {
      this.#add(
        {
          code: 'STREAM_UNKNOWN',
          message: `${show(source)} does not declare a stream ${show(stream)}`,
          expected:
            streams.size === 0 ? 'a component with a stream' : `one of ${[...streams.keys()].join(', ')}`,
          found: show(stream),
        },
        where,
      );
      return;
    }
    this.#checkDirect(source, stream, grouping.kind === 'direct', where);
    for (const field of takes) this.#add(misfit(known.fields.get(field.name), field), where);
    if (grouping.kind !== 'fields' && grouping.kind !== 'partial-key') return;
    if (grouping.fields.length === 0) {
      this.#add(
        {
          code: 'FIELDS_GROUPING_EMPTY',
          message: `the ${grouping.kind} grouping names no field`,
          expected: 'at least one field',
          found: 'none',
        },
        where,
      );
    }
    const keys = new Set<string>();
    for (const key of grouping.fields) {
      if (keys.has(key)) this.#illegal(where, `the key ${show(key)} is named twice`, 'each key once');
      keys.add(key);
      if (known.fields.has(key)) continue;
      this.#add(
        {
          code: 'FIELD_UNKNOWN',
          message: `the ${grouping.kind} grouping names ${show(key)}, which is not a field of the stream`,
          expected: `one of ${known.stream.fields.map(({ name }) => name).join(', ')}`,
          found: show(key),
        },
        where,
      );
    }
  }

  /** No emit can serve direct subscribers and others, so a stream has either. */
  #checkDirect(source: string, stream: string, isDirect: boolean, where: string): void {
    const key = JSON.stringify([source, stream]);
    const isFirstDirect = this.#isDirect.get(key) ?? isDirect;
    this.#isDirect.set(key, isFirstDirect);
    if (isFirstDirect === isDirect) return;
    this.#add(
      {
        code: 'DIRECT_EMIT_MISMATCH',
        message: `stream ${show(stream)} of ${show(source)} has direct subscribers and others`,
        expected: isDirect
          ? 'another grouping than direct, as its other subscribers'
          : 'direct, as its other subscribers',
        found: isDirect ? 'direct' : 'another grouping',
      },
      where,
    );
  }
}

export function spoutInputFault(): NameFault {
  return {
    code: 'SPOUT_HAS_INPUT',
    message: 'a spout has an input',
    expected: 'no input',
    found: 'an input',
  };
}

export function whereIs({ kind, id }: { readonly kind: 'spout' | 'bolt'; readonly id: unknown }): string {
  return `${kind} ${show(id)}`;
}
