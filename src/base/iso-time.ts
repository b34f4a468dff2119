/** Epoch milliseconds as ISO 8601. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** The same; null if there is no such time. */
export function isoOrNull(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : isoTime(epochMs);
}

/** The day of it, e.g. `2026-05-01`, in UTC. */
export function isoDay(epochMs: number): string {
  return isoTime(epochMs).slice(0, 10);
}
