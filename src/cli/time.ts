/** Epoch milliseconds as ISO 8601, as `--json` and tables show times. */
export function isoOrNull(epochMs: number | undefined): string | null {
  return epochMs === undefined ? null : new Date(epochMs).toISOString();
}
