/**
 * What receivers are given of a row: the fields that their input takes, and nothing else. An asynchronous bolt keeps rows
 * of one key in order, so the key's fields travel along and are taken off when the row is handed to user code.
 */
import { createRowView, type RowCodec, type RowView } from '../messaging/index.js';
import type {
  ComponentDescription,
  GroupingDescription,
  SubscriptionDescription,
} from '../topology/index.js';
import type { Handler } from './bolt-task.js';
import type { Edge } from './outputs.js';

/** The views of all subscriptions; those of one stream with the same fields are one. */
export class RowViews {
  readonly #known = new Map<RowCodec, Map<string, RowView>>();

  of(
    subscription: Pick<SubscriptionDescription, 'input' | 'grouping'>,
    target: ComponentDescription,
    stream: RowCodec,
  ): RowView {
    const seen = takenNames(target, subscription.input);
    for (const key of orderKeys(target, subscription.grouping)) seen.add(key);
    return this.#view(stream, seen);
  }

  #view(stream: RowCodec, seen: ReadonlySet<string>): RowView {
    const views = this.#known.get(stream) ?? new Map<string, RowView>();
    this.#known.set(stream, views);
    const key = JSON.stringify([...seen].sort());
    const view = views.get(key) ?? createRowView(stream, (field) => seen.has(field));
    views.set(key, view);
    return view;
  }
}

/** Fields by which an executor tells which rows must stay in order; none: by their sender, or not at all. */
export function orderKeys(target: ComponentDescription, grouping: GroupingDescription): readonly string[] {
  const isKeyed = grouping.kind === 'fields' || grouping.kind === 'partial-key';
  return isKeyed && !target.unordered ? grouping.fields : [];
}

/** The handler of an edge; it is given the fields that its input takes, also where the row brings others along. */
export function takingOnly(edge: Edge, target: ComponentDescription, handler: Handler): Handler {
  const taken = takenNames(target, edge.input);
  const { narrow } = createRowView(edge.codec, (field) => taken.has(field));
  return narrow === null ? handler : (row, out, anchor) => handler(narrow(row), out, anchor);
}

function takenNames(target: ComponentDescription, input: string): Set<string> {
  const fields = target.inputs.find(({ name }) => name === input)?.fields ?? [];
  return new Set(fields.map(({ name }) => name));
}
