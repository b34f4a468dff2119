/** A date, or a time of UTC or with an offset: without one, it would mean another moment on each machine. */
const momentPattern = /^(\d{4}-\d\d-(\d\d))([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/** `2027-01-31` (as UTC begins it) or `2027-01-31T18:00Z` in epoch milliseconds; `undefined` for anything else, 30 February included. */
export function parseMoment(text: string): number | undefined {
  const [, date = '', day] = momentPattern.exec(text) ?? [];
  const at = Date.parse(text);
  // `Date` takes 30 February for 2 March.
  const exists = !Number.isNaN(at) && new Date(date).getUTCDate() === Number(day);
  return exists ? at : undefined;
}
