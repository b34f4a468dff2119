import { isoOrNull } from '../../base/time.ts';
import type { DiscordPerson } from '../../core/discord-person.ts';
import type { Ports } from '../../ports/index.ts';
import { namesOfLinked } from '../people/users.ts';

interface NamedLink extends DiscordPerson {
  userId: number;
  userName: string | undefined;
}

/** Lists the Discord users who are linked to a Roblox user, with the Roblox user's name if it is known. */
export async function listNamedLinks(ports: Pick<Ports, 'store' | 'clock'>): Promise<NamedLink[]> {
  const people = await ports.store.listDiscordPeople();
  const links = people.flatMap(({ userId, ...rest }) => (userId === undefined ? [] : [{ ...rest, userId }]));
  const names = await namesOfLinked(
    ports,
    links.map(({ userId }) => userId),
  );
  return links.map((link) => ({ ...link, userName: names.get(link.userId) }));
}

export function linksDocument(links: NamedLink[]) {
  return links.map(({ discordId, userId, userName = null, linkedBy = null, linkedAt }) => ({
    ...{ discordId, userId, userName, linkedBy, linkedAt: isoOrNull(linkedAt) },
  }));
}
