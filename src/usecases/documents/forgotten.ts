import type { Forgotten } from '../history/forget.ts';

/** What was, or would be, forgotten of a person; `pseudonym` is null in a dry run. */
export function forgottenDocument({ changes, events, pseudonym }: Forgotten) {
  return { dryRun: pseudonym === undefined, changes, events, pseudonym: pseudonym ?? null };
}
