import type { Forgotten } from '../history/forget.ts';

/** The number of records of a person that were, or would be, changed; `pseudonym` is null in a dry run. */
export function forgottenDocument({ changes, events, pseudonym }: Forgotten) {
  return { dryRun: pseudonym === undefined, changes, events, pseudonym: pseudonym ?? null };
}
