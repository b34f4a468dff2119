import { newPseudonym } from '../../core/audit.ts';
import { judgeForgetting, type Mentions, notNamed } from '../../core/forgetting.ts';
import type { Ports } from '../../ports/index.ts';

/** The number of a person's records, and the pseudonym that replaces the person from now on. */
interface Forgotten extends Pick<Mentions, 'changes' | 'events'> {
  /** `undefined` in a dry run, which does nothing. */
  pseudonym: number | undefined;
}

/**
 * Removes a user's id and names from history and audit. Throws `not_found` if no record names the user, and `conflict`
 * while a rank change that names the user is running. Calls `agreed` before it does anything.
 */
export async function forgetPerson(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { userId, by, dryRun }: { userId: number; by: string; dryRun: boolean },
  agreed: (mentions: Mentions) => Promise<void>,
): Promise<Forgotten> {
  const mentions = await store.mentionsOf(userId);
  if (!mentions.isNamed) throw notNamed(userId);
  if (dryRun) return { ...mentions, pseudonym: undefined };
  await agreed(mentions);
  const forgetting = { userId, pseudonym: newPseudonym() };
  const judge = judgeForgetting(forgetting, { by, at: clock.now() });
  return { ...(await store.forgetPerson(forgetting, judge)), pseudonym: forgetting.pseudonym };
}

/** The number of records of a person that were, or would be, changed; `pseudonym` is null in a dry run. */
export function forgottenDocument({ changes, events, pseudonym }: Forgotten) {
  return { dryRun: pseudonym === undefined, changes, events, pseudonym: pseudonym ?? null };
}
