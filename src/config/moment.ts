/** A date, or a time in UTC or with an offset. Without an offset, a time would mean another moment on each machine. */
const momentPattern = /^(\d{4}-\d\d-(\d\d))([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** `2027-01-31` (when it begins in UTC) or `2027-01-31T18:00Z` in epoch milliseconds; `undefined` for anything else, such as 30 February. */
export function parseMoment(text: string): number | undefined {
  const [, date = '', day] = momentPattern.exec(text) ?? [];
  const at = Date.parse(text);
  // `Date` reads 30 February as 2 March.
  const exists = !Number.isNaN(at) && new Date(date).getUTCDate() === Number(day);
  return exists ? at : undefined;
}
