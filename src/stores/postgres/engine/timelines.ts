/** The highest timeline that this process has seen of each cluster. */
const seen = new Map<string, number>();

/** True if a later primary of this cluster was seen already: this one was replaced, and is not believed again. */
export function isSuperseded({ cluster, timeline }: { cluster: string; timeline: number }): boolean {
  const highest = seen.get(cluster) ?? 0;
  if (timeline < highest) return true;
  seen.set(cluster, timeline);
  return false;
}
