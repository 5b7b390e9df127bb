/** Runs one case through the product in compatibility mode and judges it. Used by the command and by the tests. */
import { z } from 'zod';
import { agrees, stableText } from './compare.js';
import { operationOf, OPERATIONS } from './operations/index.js';
import type { Facts } from './operations/operation.js';
import { NotSupported } from './operations/operation.js';
import { oneLine, type VectorCase } from './read-cases.js';

/** A fact on which the product and the case do not agree. */
export interface Disagreement {
  readonly what: string;
  readonly expected: string;
  readonly actual: string;
}

export type Verdict =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly disagreements: readonly Disagreement[] }
  | { readonly kind: 'not supported'; readonly what: string };

export function runCase(test: VectorCase): Verdict {
  const name = operationOf(test.input);
  const operation = name === undefined ? undefined : OPERATIONS.get(name);
  if (operation === undefined) {
    return { kind: 'not supported', what: name === undefined ? 'cases of an unknown shape' : `op ${name}` };
  }
  let facts: Facts;
  try {
    facts = operation(test);
  } catch (error) {
    if (error instanceof NotSupported) return { kind: 'not supported', what: error.message };
    const [what, text] =
      error instanceof z.ZodError
        ? ['malformed input', oneLine(error)]
        : ['the product threw', String(error)];
    return { kind: 'failed', disagreements: [{ what, expected: stableText(test.expected), actual: text }] };
  }
  return judge(test, facts);
}

function judge({ expected }: VectorCase, facts: Facts): Verdict {
  const disagreements: Disagreement[] = [];
  for (const [what, value] of Object.entries(expected)) {
    const fact = Object.hasOwn(facts, what) ? facts[what] : undefined;
    if (fact === undefined) {
      // An error where none was expected hides all other facts; anything else is a fact that is not computed here.
      if (!Object.hasOwn(facts, 'error') && what !== 'error' && what !== 'reason') {
        return { kind: 'not supported', what: `expected fact ${what}` };
      }
      disagreements.push({ what, expected: stableText(value), actual: shown(facts) });
    } else if ('check' in fact) {
      const problem = fact.check(value);
      if (problem !== undefined) disagreements.push({ what, expected: stableText(value), actual: problem });
    } else if (!agrees(value, fact.value, fact.compare)) {
      disagreements.push({ what, expected: stableText(value), actual: stableText(fact.value) });
    }
  }
  if (Object.hasOwn(facts, 'error') && !Object.hasOwn(expected, 'error')) {
    disagreements.push({ what: 'error', expected: 'none', actual: shown(facts) });
  }
  return disagreements.length === 0 ? { kind: 'passed' } : { kind: 'failed', disagreements };
}

function shown(facts: Facts): string {
  const values = Object.entries(facts).map(
    ([what, fact]) => [what, 'value' in fact ? fact.value : '…'] as const,
  );
  return stableText(Object.fromEntries(values));
}
