/** A built topology with other definitions in place of some of its components. */
import { IsobarError } from '../base/index.js';
import {
  type BuiltTopology,
  type ComponentDescription,
  type Definition,
  isDefinition,
} from '../topology/index.js';

/** Definitions by component id: what `spout(…)` or `bolt(…)` returned. */
export type StandIns = Readonly<Record<string, unknown>>;

/** @throws COMPONENT_NOT_FOUND, DEFINITION_ILLEGAL where a definition does not fit its place */
export function withStandIns(built: BuiltTopology, standIns: StandIns): BuiltTopology {
  const components = new Map(built.components);
  const described = new Map(built.description.components.map((component) => [component.id, component]));
  for (const [id, definition] of Object.entries(standIns)) {
    const component = described.get(id);
    if (component === undefined) {
      throw new IsobarError('COMPONENT_NOT_FOUND', `there is no component "${id}" that could be replaced`, {
        expected: [...described.keys()].join(', '),
        found: id,
        where: `replace.${id}`,
      });
    }
    if (!isDefinition(definition)) throw unfit(id, 'what spout(…) or bolt(…) returned', typeof definition);
    checkFit(id, component, definition);
    components.set(id, definition.runtime);
    described.set(id, { ...component, ...definition.shape });
  }
  return {
    ...built,
    components,
    description: { ...built.description, components: [...described.values()] },
  };
}

function checkFit(id: string, component: ComponentDescription, { shape }: Definition): void {
  if (shape.kind !== component.kind) throw unfit(id, `a ${component.kind}`, `a ${shape.kind}`);
  for (const part of ['streams', 'inputs'] as const) {
    const [expected, found] = [JSON.stringify(component[part]), JSON.stringify(shape[part])];
    if (expected !== found) throw unfit(id, `${part} ${expected}`, `${part} ${found}`);
  }
}

function unfit(id: string, expected: string, found: string): IsobarError {
  return new IsobarError('DEFINITION_ILLEGAL', `the definition does not fit in the place of "${id}"`, {
    expected,
    found,
    where: `replace.${id}`,
  });
}
