/**
 * The input of every word count here: 10,000 sentences of six words, drawn Zipf-like (s = 1) from 5,000 words of 3 to
 * 10 letters by seeded generators, so that product and ceiling (and any other system with the same generator) see the
 * same text. It knows nothing of who counts.
 */

export const SENTENCE_COUNT = 10_000;
export const WORDS_PER_SENTENCE = 6;
const VOCABULARY_SIZE = 5_000;
const VOCABULARY_SEED = 7;
const RANK_SEED = 3;

/** Xorshift with 32 bits of state (Marsaglia, 2003); returns unsigned 32-bit numbers. */
export function xorshift32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** The sentences, always the same. The strings are flat, so that no reader pays for joining them. */
export function generateSentences(): string[] {
  const words = vocabulary();
  const ranks = zipfRanks(SENTENCE_COUNT * WORDS_PER_SENTENCE);
  return Array.from({ length: SENTENCE_COUNT }, (_, index) => {
    const from = index * WORDS_PER_SENTENCE;
    const text = Array.from(ranks.subarray(from, from + WORDS_PER_SENTENCE), (rank) => words[rank]!).join(
      ' ',
    );
    return Buffer.from(text, 'latin1').toString('latin1');
  });
}

/**
 * How often each word occurs when readers have each read `sentencesRead[i]` sentences, from the first one, over and over.
 */
export function expectedCounts(
  sentences: readonly string[],
  sentencesRead: readonly number[],
): Map<string, number> {
  const timesRead = new Float64Array(sentences.length);
  for (const total of sentencesRead) {
    const rounds = Math.floor(total / sentences.length);
    const rest = total % sentences.length;
    for (let i = 0; i < sentences.length; i++) timesRead[i]! += rounds + (i < rest ? 1 : 0);
  }
  const counts = new Map<string, number>();
  sentences.forEach((sentence, index) => {
    const times = timesRead[index]!;
    if (times === 0) return;
    for (const word of sentence.split(' ')) counts.set(word, (counts.get(word) ?? 0) + times);
  });
  return counts;
}

function vocabulary(): string[] {
  const random = xorshift32(VOCABULARY_SEED);
  const words = new Set<string>();
  while (words.size < VOCABULARY_SIZE) {
    const letters = Buffer.alloc(3 + (random() % 8));
    for (let i = 0; i < letters.length; i++) letters[i] = 97 + (random() % 26);
    words.add(letters.toString('latin1'));
  }
  return [...words];
}

function zipfRanks(draws: number): Int32Array {
  const cumulated = new Float64Array(VOCABULARY_SIZE);
  let total = 0;
  for (let i = 0; i < VOCABULARY_SIZE; i++) {
    total += 1 / (i + 1);
    cumulated[i] = total;
  }
  const random = xorshift32(RANK_SEED);
  const ranks = new Int32Array(draws);
  for (let draw = 0; draw < draws; draw++) {
    const sought = (random() / 4_294_967_296) * total;
    let low = 0;
    let high = VOCABULARY_SIZE - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (cumulated[middle]! < sought) low = middle + 1;
      else high = middle;
    }
    ranks[draw] = low;
  }
  return ranks;
}
