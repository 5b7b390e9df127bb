/**
 * Reads a description that came from outside: first its shape, then the rules of the graph. Shapes are closed (an unknown
 * key is a fault), sizes are bounded, and the answer is a fresh, frozen copy.
 */
import { deepFreeze } from './canonical.js';
import { isRecord } from './definition.js';
import type {
  ComponentDescription,
  FieldDescription,
  GroupingDescription,
  StreamDescription,
  SubscriptionDescription,
  TopologyDescription,
} from './description.js';
import { show, throwFaults, type TopologyFault } from './faults.js';
import { isFieldKind } from './fields.js';
import { MAX_COMPONENTS, MAX_FIELDS, MAX_STREAMS, MAX_SUBSCRIPTIONS } from './names.js';
import { graphFaults } from './rules.js';
import { readSettings } from './settings-data.js';

const MAX_TEXT_LENGTH = 10_000;
const MAX_WARNINGS = 2 * MAX_COMPONENTS;
/** More faults of shape say nothing more, and a hostile description could have millions. */
const MAX_SHAPE_FAULTS = 1_000;

/**
 * Checks an untrusted value to be a description that keeps every rule.
 *
 * @throws DESCRIPTION_INVALID with every fault in `details.faults`
 */
export function validateDescription(value: unknown): TopologyDescription {
  const reader = new ShapeReader();
  const description = reader.description(value);
  throwFaults(reader.faults, 'DESCRIPTION_INVALID');
  throwFaults(graphFaults(description), 'DESCRIPTION_INVALID');
  return deepFreeze(description);
}

type Parts = Readonly<Record<string, unknown>>;

/** Reads values; where one is not what it should be, notes one fault and goes on with a stand-in. */
class ShapeReader {
  readonly faults: TopologyFault[] = [];

  description(value: unknown): TopologyDescription {
    if (!isRecord(value)) {
      this.#fault('description', 'an object', value);
      return { format: 1, name: '', settings: {}, components: [], warnings: [] };
    }
    const parts = this.#closed(value, 'description', [
      'format',
      'name',
      'settings',
      'components',
      'warnings',
    ]);
    if (parts['format'] !== 1) this.#fault('description.format', '1', parts['format']);
    return {
      format: 1,
      name: this.#text(parts['name'], 'description.name'),
      settings: readSettings(parts['settings'], this.faults),
      components: this.#objects(parts['components'], 'components', MAX_COMPONENTS, (component, where) =>
        this.#component(component, where),
      ),
      // The canonical text leaves warnings out, since they follow from the rest.
      warnings: this.#list(parts['warnings'] ?? [], 'warnings', MAX_WARNINGS, (warning, where) =>
        this.#text(warning, where),
      ),
    };
  }

  #component(value: Parts, where: string): ComponentDescription {
    const parts = this.#closed(value, where, [
      'id',
      'kind',
      'parallelism',
      'tasks',
      'streams',
      'inputs',
      'subscriptions',
      'stateful',
      'movable',
      'tickMs',
      'manual',
      'unordered',
      'slotSharingGroup',
      'coLocationGroup',
      'load',
    ]);
    const { kind } = parts;
    if (kind !== 'spout' && kind !== 'bolt') this.#fault(`${where}.kind`, '"spout" or "bolt"', kind);
    return {
      id: this.#text(parts['id'], `${where}.id`),
      kind: kind === 'spout' ? 'spout' : 'bolt',
      parallelism: this.#number(parts['parallelism'], `${where}.parallelism`),
      tasks: parts['tasks'] === null ? null : this.#number(parts['tasks'], `${where}.tasks`),
      streams: this.#objects(parts['streams'], `${where}.streams`, MAX_STREAMS + 1, (stream, at) =>
        this.#stream(stream, at),
      ),
      inputs: this.#objects(parts['inputs'], `${where}.inputs`, MAX_STREAMS, (input, at) =>
        this.#stream(input, at),
      ),
      subscriptions: this.#objects(
        parts['subscriptions'],
        `${where}.subscriptions`,
        MAX_SUBSCRIPTIONS,
        (subscription, at) => this.#subscription(subscription, at),
      ),
      stateful: this.#flag(parts['stateful'], `${where}.stateful`),
      movable: this.#flag(parts['movable'], `${where}.movable`),
      tickMs: parts['tickMs'] === null ? null : this.#number(parts['tickMs'], `${where}.tickMs`),
      manual: this.#flag(parts['manual'], `${where}.manual`),
      unordered: this.#flag(parts['unordered'], `${where}.unordered`),
      ...this.#placement(parts, where),
    };
  }

  #placement(
    { slotSharingGroup, coLocationGroup, load }: Parts,
    where: string,
  ): Pick<ComponentDescription, 'slotSharingGroup' | 'coLocationGroup' | 'load'> {
    return {
      ...(slotSharingGroup === undefined
        ? {}
        : { slotSharingGroup: this.#text(slotSharingGroup, `${where}.slotSharingGroup`) }),
      ...(coLocationGroup === undefined
        ? {}
        : { coLocationGroup: this.#text(coLocationGroup, `${where}.coLocationGroup`) }),
      ...(load === undefined ? {} : { load: this.#number(load, `${where}.load`) }),
    };
  }

  /** A stream, or an input, which has the same shape. */
  #stream(value: Parts, where: string): StreamDescription {
    const parts = this.#closed(value, where, ['name', 'fields']);
    return {
      name: this.#text(parts['name'], `${where}.name`),
      fields: this.#objects(parts['fields'], `${where}.fields`, MAX_FIELDS, (field, at) =>
        this.#field(field, at),
      ),
    };
  }

  #field(value: Parts, where: string): FieldDescription {
    const { name, kind, nullable } = this.#closed(value, where, ['name', 'kind', 'nullable']);
    if (!isFieldKind(kind)) this.#fault(`${where}.kind`, 'a field kind', kind);
    return {
      name: this.#text(name, `${where}.name`),
      kind: isFieldKind(kind) ? kind : 'json',
      nullable: this.#flag(nullable, `${where}.nullable`),
    };
  }

  #subscription(value: Parts, where: string): SubscriptionDescription {
    const parts = this.#closed(value, where, ['input', 'source', 'stream', 'grouping']);
    return {
      input: this.#text(parts['input'], `${where}.input`),
      source: this.#text(parts['source'], `${where}.source`),
      stream: this.#text(parts['stream'], `${where}.stream`),
      grouping: this.#grouping(parts['grouping'], `${where}.grouping`),
    };
  }

  #grouping(value: unknown, where: string): GroupingDescription {
    const grouping = isRecord(value) ? value : {};
    const { kind } = grouping;
    switch (kind) {
      case 'fields':
      case 'partial-key': {
        const { fields } = this.#closed(grouping, where, ['kind', 'fields']);
        const read = (field: unknown, at: string): string => this.#text(field, at);
        return { kind, fields: this.#list(fields, `${where}.fields`, MAX_FIELDS, read) };
      }
      case 'shuffle':
      case 'local-or-shuffle':
      case 'all':
      case 'global':
      case 'none':
      case 'direct':
      case 'custom':
        this.#closed(grouping, where, ['kind']);
        return { kind };
      default:
        this.#fault(`${where}.kind`, 'a kind of grouping', isRecord(value) ? kind : value);
        return { kind: 'none' };
    }
  }

  #fault(where: string, expected: string, found: unknown): void {
    if (this.faults.length >= MAX_SHAPE_FAULTS) return;
    const message = `expected ${expected}, found ${show(found)}`;
    this.faults.push({ code: 'DESCRIPTION_INVALID', message, expected, found: show(found), where });
  }

  /** The object itself; a key that is not among those named is a fault. */
  #closed(value: Parts, where: string, keys: readonly string[]): Parts {
    const unknownKey = Object.keys(value).find((key) => !keys.includes(key));
    if (unknownKey !== undefined) this.#fault(where, `only ${keys.join(', ')}`, unknownKey);
    return value;
  }

  /** A list of objects; those that are none are left out. */
  #objects<T>(
    value: unknown,
    where: string,
    limit: number,
    read: (entry: Parts, where: string) => T,
  ): readonly T[] {
    const objects: T[] = [];
    this.#list(value, where, limit, (entry, at) => {
      if (isRecord(entry)) objects.push(read(entry, at));
      else this.#fault(at, 'an object', entry);
    });
    return objects;
  }

  #list<T>(
    value: unknown,
    where: string,
    limit: number,
    read: (entry: unknown, where: string) => T,
  ): readonly T[] {
    if (!Array.isArray(value)) {
      this.#fault(where, 'a list', value);
      return [];
    }
    if (value.length > limit) {
      this.#fault(where, `at most ${limit} entries`, value.length);
      return [];
    }
    return value.map((entry: unknown, index) => read(entry, `${where}[${index}]`));
  }

  #text(value: unknown, where: string): string {
    if (typeof value === 'string' && value.length <= MAX_TEXT_LENGTH) return value;
    this.#fault(where, `a text of at most ${MAX_TEXT_LENGTH} characters`, value);
    return '';
  }

  #number(value: unknown, where: string): number {
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.#fault(where, 'a number', value);
    return 1;
  }

  #flag(value: unknown, where: string): boolean {
    if (typeof value === 'boolean') return value;
    this.#fault(where, 'true or false', value);
    return false;
  }
}
