import { RankdError } from '../../base/errors.ts';
import type { Role } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import { resolveHeld } from '../../core/target.ts';
import type { NamedUser } from '../../core/user-name.ts';
import type { CallContext, MemberPage } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import { backgroundDeadlineMs, type Ranking } from '../change/ranking.ts';
import { namesOf } from '../people/users.ts';
import { insist } from '../run-many.ts';

/** Holders of a role; the name of a user is empty if it is not known. */
export interface ListedMembers {
  role: Role;
  members: NamedUser[];
  /** The cursor for the members after these; absent if there are none. */
  next: string | undefined;
}

/** At most `limit` members who hold the role, each once. Throws `usage` for a cursor of another kind, and as `resolveHeld`. */
export async function listMembers(
  app: Ranking,
  { role: asked, limit, after }: { role: RoleName; limit: number; after?: string | undefined },
  call: CallContext,
): Promise<ListedMembers> {
  const role = await app.group.judged((scheme) => resolveHeld(scheme, asked), call);
  const start = placeOf(after);
  const found = new Set<number>();
  let next: string | undefined;
  let { skip } = start;
  pages: for await (const { from, userIds } of memberPages(reader(app, role), start.from)) {
    for (const [index, id] of userIds.entries()) {
      if (index < skip) continue;
      if (found.size === limit) {
        next = `${index}-${from ?? ''}`;
        break pages;
      }
      found.add(id);
    }
    skip = 0;
  }
  const names = await namesOf(app, [...found]);
  return { role, members: [...found].map((id) => ({ id, name: names.get(id) ?? '' })), next };
}

/** A cursor has the cursor of a page, and the number of its members that come before. */
function placeOf(cursor: string | undefined): { skip: number; from: string | undefined } {
  if (cursor === undefined) return { skip: 0, from: undefined };
  const [, skip, from] = /^(\d{1,3})-(.*)$/s.exec(cursor) ?? [];
  if (skip !== undefined) return { skip: Number(skip), from: from || undefined };
  throw new RankdError('usage', `"${cursor.slice(0, 40)}" is not where a list of members can continue.`, {
    hint: 'give --after the text that the list before ended with, or leave it out',
  });
}

/** Above this number, a list of members is more than one command should change. */
const maxHolders = 100_000;

/** Every member who holds the role, once. Throws `usage` if there are too many; `report` gets the number so far. */
export async function findHolders(
  app: Ranking,
  role: Role,
  { call, report }: { call: CallContext; report: (found: number) => void },
): Promise<NamedUser[]> {
  if (role.kind === 'base') refuseTooMany(role, (await app.platform.group(call)).memberCount);
  const found = new Map<number, NamedUser>();
  for await (const { userIds } of memberPages(reader(app, role))) {
    const names = await namesOf(app, userIds);
    for (const id of userIds) found.set(id, { id, name: names.get(id) ?? '' });
    refuseTooMany(role, found.size);
    report(found.size);
  }
  return [...found.values()];
}

function refuseTooMany({ name }: Role, count: number): void {
  if (count <= maxHolders) return;
  throw new RankdError('usage', `More than ${maxHolders} members hold the role "${name}", too many for one command.`, {
    hint: 'list them with rankd group members, and give a part of them with --file',
  });
}

type ReadPage = (after: string | undefined) => Promise<MemberPage>;

/** Each page has its own deadline, and is read again after a failure that can pass. */
function reader(app: Ranking, { id, kind }: Role): ReadPage {
  return (after) =>
    insist(app, async () => {
      using call = callWithin(app.clock, backgroundDeadlineMs(app), 'operator');
      return await app.platform.membersWith({ roleId: kind === 'base' ? undefined : id, after }, call);
    });
}

/** A page may be empty although more pages follow; this many empty pages in a row are an error. */
const maxEmptyPages = 3;

/** The pages of a list from a cursor on, until a cursor repeats. A list that changes in between can show a member twice. */
export async function* memberPages(
  read: ReadPage,
  first?: string,
): AsyncGenerator<MemberPage & { from: string | undefined }> {
  const cursors = new Set([first]);
  let from = first;
  for (let emptyPages = 0; emptyPages < maxEmptyPages; ) {
    const page = await read(from);
    yield { ...page, from };
    if (page.next === undefined || cursors.has(page.next)) return;
    from = page.next;
    cursors.add(from);
    emptyPages = page.userIds.length === 0 ? emptyPages + 1 : 0;
  }
  throw new RankdError('platform_rejected', 'Roblox keeps returning empty pages of a list. Try again later.');
}
