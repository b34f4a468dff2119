/** Waits that double: `firstMs` after the first try (0), twice that after the second, and never more than `longestMs`. */
export function doubling(firstMs: number, longestMs: number): (triesBefore: number) => number {
  return (triesBefore) => Math.min(firstMs * 2 ** triesBefore, longestMs);
}
