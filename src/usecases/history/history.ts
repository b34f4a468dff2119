import { RankdError } from '../../base/errors.ts';
import { discordPrefix, personBehind } from '../../core/discord-person.ts';
import type { ChangeState, RankChange } from '../../core/model.ts';
import type { Ports as AllPorts, ChangeFilter, ChangeSelection } from '../../ports/index.ts';
import { namesOf } from '../people/users.ts';

export interface ChangeView {
  change: RankChange;
  /** Absent if the change was not requested with a key. */
  keyName?: string | undefined;
  /** The member's current name on the platform; absent if unknown. */
  userName?: string | undefined;
  /** Absent if the change was not requested on Discord, or if the person was forgotten. */
  discordUserId?: string | undefined;
}

type Ports = Pick<AllPorts, 'store' | 'clock'>;

/** Lists changes, newest first. */
export async function listChanges(ports: Ports, filter: ChangeFilter): Promise<ChangeView[]> {
  return withNames(ports, await ports.store.listChanges(filter));
}

/** Returns a page of search results; see `ChangeStore.searchChanges`. */
export async function searchChanges(
  ports: Ports,
  filter: ChangeFilter & { cursor?: string | undefined },
): Promise<{ changes: ChangeView[]; next: string | undefined }> {
  const { changes, next } = await ports.store.searchChanges(filter);
  return { changes: await withNames(ports, changes), next };
}

const pageRows = 500;

/** Yields the selected changes page by page, newest first, so that memory use does not grow with their number. */
export async function* changePages(ports: Ports, selection: ChangeSelection): AsyncGenerator<ChangeView[]> {
  let cursor: string | undefined;
  do {
    const { changes, next } = await ports.store.pageChanges({ ...selection, limit: pageRows, cursor });
    yield await withNames(ports, changes);
    cursor = next;
  } while (cursor !== undefined);
}

export async function showChange(ports: Ports, id: string): Promise<ChangeView> {
  const change = await ports.store.findChange(id);
  const [view] = await withNames(ports, change === undefined ? [] : [change]);
  if (view !== undefined) return view;
  throw new RankdError('not_found', `There is no rank change with the id "${id}".`, { hint: 'rankd history list' });
}

/** Returns the change as currently stored: a late read may have marked it as unknown. */
export async function asStored({ store }: Pick<Ports, 'store'>, change: RankChange): Promise<RankChange> {
  return (await store.findChange(change.id)) ?? change;
}

export async function withNames(ports: Ports, changes: RankChange[]): Promise<ChangeView[]> {
  const ids = [...new Set(changes.flatMap(({ keyId = [] }) => keyId))];
  const names = new Map(
    ids.length === 0 ? [] : (await ports.store.listKeys({ ids })).map(({ id, name }) => [id, name]),
  );
  const userNames = await namesOf(
    ports,
    changes.map(({ rankeeId }) => rankeeId),
  );
  const people = changes.some(({ by }) => by.startsWith(discordPrefix)) ? await ports.store.listDiscordPeople() : [];
  return changes.map((change) => ({
    change,
    discordUserId: personBehind(change.by, people)?.discordId,
    keyName: change.keyId && names.get(change.keyId),
    userName: userNames.get(change.rankeeId),
  }));
}

export interface ChangeCounts {
  openChanges: number;
  /** Changes since midnight in this machine's time zone; `undefined` until they are counted. */
  today: Record<ChangeState, number> | undefined;
}

export async function countOpenChanges({ store }: Pick<Ports, 'store'>): Promise<number> {
  return (await store.openChanges()).length;
}

/** Counts all open changes, and today's changes in the group with this title or, by default, in all groups. */
export async function countChanges({ store, clock }: Ports, group?: string): Promise<ChangeCounts> {
  const midnight = new Date(clock.now()).setHours(0, 0, 0, 0);
  return { openChanges: await countOpenChanges({ store }), today: await store.countChanges(midnight, group) };
}
