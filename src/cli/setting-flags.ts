/** Settings as `--set key=value` gives them. Pure. */
import { canonicalSettingName, IsobarError } from '../base/index.js';

/** Settings by the names that were used for them; each may be given once, under whatever name. */
export class SettingFlags {
  readonly raw: Record<string, string> = {};
  readonly #given = new Set<string>();

  /** @param flag how the user gave it, for the message. @throws USAGE if it was given before */
  add(key: string, value: string, flag: string): void {
    const name = canonicalSettingName(key) ?? key;
    if (this.#given.has(name)) {
      throw new IsobarError('USAGE', `setting ${name} is given twice`, {
        expected: 'one value',
        where: flag,
      });
    }
    this.#given.add(name);
    this.raw[key] = value;
  }

  /** @throws USAGE */
  addPairs(pairs: readonly string[]): void {
    for (const pair of pairs) {
      const at = pair.indexOf('=');
      if (at < 1) {
        throw new IsobarError('USAGE', `--set ${pair} is not understood`, {
          expected: 'key=value, such as topology.workers=2',
          found: pair,
          where: '--set',
        });
      }
      this.add(pair.slice(0, at).trim(), pair.slice(at + 1).trim(), `--set ${pair}`);
    }
  }

  /** Whether a setting was given, under whatever name. */
  has(name: string): boolean {
    return this.#given.has(name);
  }
}
