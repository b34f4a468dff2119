import { type DiscordPerson, judgeLink, judgeUnlink, newDiscordPerson } from '../../core/discord-person.ts';
import type { Ports } from '../../ports/index.ts';

/** The person with this Discord id, who is stored from now on: history and audit refer to the stored record. */
export async function meetPerson({ store }: Pick<Ports, 'store'>, discordId: string): Promise<DiscordPerson> {
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

/** Links a person in Discord to a Roblox user. Resolves with the user whom the person was linked to before. */
export async function linkPerson(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { discordId, userId, by }: Linking,
): Promise<{ person: DiscordPerson; before: number | undefined }> {
  const before = (await store.findDiscordPerson(discordId))?.userId;
  const judge = judgeLink(newDiscordPerson(discordId), userId, { by, at: clock.now() });
  return { person: await store.updateDiscordPerson(discordId, judge), before };
}

/** Throws `not_found` if the person is not linked. */
export async function unlinkPerson(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { discordId, by }: Omit<Linking, 'userId'>,
): Promise<void> {
  await store.updateDiscordPerson(discordId, judgeUnlink(discordId, { by, at: clock.now() }));
}
