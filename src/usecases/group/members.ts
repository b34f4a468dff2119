import { RankdError } from '../../base/errors.ts';
import type { NamedUser, Role } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import { resolveHeld } from '../../core/target.ts';
import type { CallContext } from '../../ports/index.ts';
import { callWithin, readPages } from '../../ports/platform.ts';
import { backgroundDeadlineMs, type Ranking } from '../change/ranking.ts';
import { namesOf } from '../people/users.ts';
import { withRetries } from '../run-many.ts';

/** A page of a role's holders. The name of a member is empty if unknown. */
export interface ListedMembers {
  role: Role;
  members: NamedUser[];
  /** The cursor for the next page; absent on the last page. */
  next: string | undefined;
}

/** Lists at most `limit` members who hold the role, without duplicates. Throws `usage` for an invalid cursor. */
export async function listMembers(
  app: Ranking,
  { role: asked, limit, after }: { role: RoleName; limit: number; after?: string | undefined },
  call: CallContext,
): Promise<ListedMembers> {
  const role = await app.group.judged((scheme) => resolveHeld(scheme, asked), call);
  const found = new Set<number>();
  let next: string | undefined;
  let { skip, first } = readCursor(after);
  pages: for await (const { cursor = '', items } of pagesOf(app, role, first)) {
    for (const [index, id] of items.entries()) {
      if (index < skip) continue;
      if (found.size === limit) {
        next = `${index}-${cursor}`;
        break pages;
      }
      found.add(id);
    }
    skip = 0;
  }
  const names = await namesOf(app, [...found]);
  return { role, members: [...found].map((id) => ({ id, name: names.get(id) ?? '' })), next };
}

/** Returns the platform's cursor for the first page to read, and the number of members to skip on that page. */
function readCursor(cursor: string | undefined): { skip: number; first: string | undefined } {
  if (cursor === undefined) return { skip: 0, first: undefined };
  const [, skip, first] = /^(\d{1,3})-(.*)$/s.exec(cursor) ?? [];
  if (skip !== undefined) return { skip: Number(skip), first: first || undefined };
  throw new RankdError('usage', `"${cursor.slice(0, 40)}" is not a cursor of a member list.`, {
    hint: 'give --after the cursor at the end of the previous list, or leave --after out',
  });
}

const maxHolders = 100_000;

/**
 * Finds all members who hold the role, and calls `report` with the number found so far. Throws `usage` if there are
 * more than `maxHolders`.
 */
export async function findHolders(
  app: Ranking,
  role: Role,
  { call, report }: { call: CallContext; report: (found: number) => void },
): Promise<NamedUser[]> {
  if (role.kind === 'base') refuseTooMany(role, (await app.platform.group(call)).memberCount);
  const found = new Map<number, NamedUser>();
  for await (const { items } of pagesOf(app, role)) {
    const names = await namesOf(app, items);
    for (const id of items) found.set(id, { id, name: names.get(id) ?? '' });
    refuseTooMany(role, found.size);
    report(found.size);
  }
  return [...found.values()];
}

function refuseTooMany({ name }: Role, count: number): void {
  if (count <= maxHolders) return;
  throw new RankdError('usage', `More than ${maxHolders} members hold the role "${name}", too many for one command.`, {
    hint: 'list them with rankd group members, then change them in parts with --file',
  });
}

/** Reads the holders page by page. Each page has its own deadline, and is retried after a temporary failure. */
function pagesOf(app: Ranking, { id, kind }: Role, first?: string): ReturnType<typeof readPages<number>> {
  const read = (after: string | undefined) =>
    withRetries(app, async () => {
      using call = callWithin(app.clock, backgroundDeadlineMs(app), 'operator');
      return await app.platform.membersWith({ roleId: kind === 'base' ? undefined : id, after }, call);
    });
  return readPages(read, first);
}
