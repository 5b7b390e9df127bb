import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { childPath, idOfName, nameOfId } from './paths.js';

const SEED = 20_261;

describe('names of nodes', () => {
  it('stand for any id, and for one only', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (id) => {
        const name = nameOfId(id);
        expect(name).toMatch(/^[\w%-][\w%.-]*$/);
        expect(idOfName(name)).toBe(id);
      }),
      { seed: SEED },
    );
  });

  it('keep what people read', () => {
    expect(childPath('/topologies', 'word-count_1.2')).toBe('/topologies/word-count_1.2');
    expect(nameOfId('..')).toBe('%002e.');
    expect(nameOfId('a/b')).toBe('a%002fb');
  });
});
