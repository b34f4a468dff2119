/**
 * The wait in milliseconds that a `retry-after` header asks for. The header holds seconds or an HTTP date (RFC 9110, 10.2.3); a date in
 * the past gives 0. `undefined` if the header is absent or is neither.
 */
export function retryAfterMs(value: string | null | undefined, nowMs: number): number | undefined {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(text)) return undefined;
  // The oldest form of a date (asctime) names no zone and means GMT, but Date.parse would read it as local time.
  const at = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
