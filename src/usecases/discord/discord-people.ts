import { type DiscordPerson, judgeLink, judgeUnlink, newDiscordPerson } from '../../core/discord-person.ts';
import type { Ports } from '../../ports/index.ts';

/**
 * Returns a Discord user's record, and creates it if necessary. Without the record, entries in the history and the
 * audit log could not be linked to the user.
 */
export async function findOrCreatePerson({ store }: Pick<Ports, 'store'>, discordId: string): Promise<DiscordPerson> {
  const known = await store.findDiscordPerson(discordId);
  if (known !== undefined) return known;
  const fresh = newDiscordPerson(discordId);
  return store.updateDiscordPerson(discordId, (found = fresh) => ({ change: found, events: [] }));
}

export interface Linking {
  discordId: string;
  userId: number;
  by: string;
}

/** Links a Discord user to a Roblox user. `before` is the Roblox user of the previous link, if any. */
export async function linkPerson(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { discordId, userId, by }: Linking,
): Promise<{ person: DiscordPerson; before: number | undefined }> {
  const before = (await store.findDiscordPerson(discordId))?.userId;
  const judge = judgeLink(newDiscordPerson(discordId), userId, { by, at: clock.now() });
  return { person: await store.updateDiscordPerson(discordId, judge), before };
}

/** Removes a Discord user's link. Throws `not_found` if there is none. */
export async function unlinkPerson(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { discordId, by }: Omit<Linking, 'userId'>,
): Promise<void> {
  await store.updateDiscordPerson(discordId, judgeUnlink(discordId, { by, at: clock.now() }));
}
