const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof unitMs;

/** A whole number and one of s, m, h, d: what every duration in settings, flags and output looks like. */
export const durationPattern = /^(\d+)([smhd])$/;

/** `2s`, `5m`, `24h` or `90d` in milliseconds; `undefined` for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = durationPattern.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const ms = Number(count) * unitMs[unit as Unit];
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** The shortest text that `parseDuration` reads back as `ms`; parts of a second are rounded up. */
export function formatDuration(ms: number): string {
  const wholeMs = Math.ceil(ms / unitMs.s) * unitMs.s;
  const unit = (['d', 'h', 'm'] as const).find((unit) => wholeMs > 0 && wholeMs % unitMs[unit] === 0) ?? 's';
  return `${wholeMs / unitMs[unit]}${unit}`;
}
