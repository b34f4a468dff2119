const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof unitMs;

/** A whole number and one of s, m, h, d: what every duration in settings and flags looks like. */
export const durationPattern = /^(\d+)([smhd])$/;

/** `2s`, `5m`, `24h` or `90d` in milliseconds; `undefined` for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = durationPattern.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const ms = Number(count) * unitMs[unit as Unit];
  return Number.isSafeInteger(ms) ? ms : undefined;
}
