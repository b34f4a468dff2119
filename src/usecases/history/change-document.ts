import { isoOrNull, isoTime } from '../../base/time.ts';
import { discordPrefix } from '../../core/discord-person.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import type { RankChange } from '../../core/model.ts';
import type { ListedMember, MemberChange, PlannedList } from '../change/change-list.ts';
import type { CheckResult, DryRun } from '../change/test-rank.ts';
import { hintOf } from '../error-document.ts';
import type { Run } from '../run-many.ts';
import type { ChangeView } from './history.ts';

/**
 * The fields of a rank change, in the order used in JSON documents and CSV files. The dashboard's types are derived
 * from them. Absent and unknown values are null; times are ISO 8601.
 */
const listFields = {
  id: ({ change }) => change.id,
  kind: ({ change }) => change.kind ?? null,
  state: ({ change }) => change.state,
  code: ({ change }) => change.code,
  rankeeId: ({ change }) => change.rankeeId,
  rankeeName: ({ change }) => change.rankeeName,
  userName: ({ userName }) => userName ?? null,
  rankerId: ({ change }) => change.rankerId,
  rankerName: ({ change }) => change.rankerName,
  newRankId: ({ change }) => requestedRank(change),
  roleId: ({ change }) => change.roleId ?? null,
  rolesBefore: ({ change }) => change.rolesBefore,
  rolesAfter: ({ change }) => (change.finishedAt === undefined ? null : change.rolesAfter),
  keyId: ({ change }) => change.keyId ?? null,
  placeId: ({ change }) => change.placeId ?? null,
  command: ({ change }) => change.command ?? null,
  requestedAt: ({ change }) => isoTime(change.requestedAt),
  finishedAt: ({ change }) => isoOrNull(change.finishedAt),
  dryRun: ({ change }) => change.dryRun,
  who: ({ change }) => whoRequested(change),
  via: (view) => (isFromDiscord(view.change) ? 'discord' : originOf(view)),
  discordUserId: ({ discordUserId }) => discordUserId ?? null,
  keyName: ({ keyName }) => keyName ?? null,
  oldRoleId: ({ change }) => change.oldRoleId ?? null,
  roles: ({ change }) => change.roles ?? [],
  reason: ({ change }) => change.reason ?? null,
  message: ({ change }) => change.message,
  by: ({ change, discordUserId }) => (discordUserId === undefined ? change.by : discordPrefix + discordUserId),
  group: ({ change }) => change.group,
  simulated: ({ change }) => isSimulatedGroup(change.group),
  hold: ({ change }) => holdPartDocument(change),
} satisfies Fields;

/** Fields that lists omit. They appear in a change's details, in exports and in webhook events. */
const detailFields = {
  phase: ({ change }) => change.phase,
  oldRankName: ({ change }) => change.oldRankName ?? null,
  prefix: ({ change }) => change.prefix ?? null,
  webhookHost: ({ change }) => change.webhookHost ?? null,
  undoOf: ({ change }) => change.undoOf ?? null,
  undoId: ({ change }) => change.undoId ?? null,
  idempotencyKey: ({ change }) => change.idempotencyKey ?? null,
} satisfies Fields;

type Fields = Readonly<Record<string, (view: ChangeView) => unknown>>;
type DocumentOf<Shown extends Fields> = { [Name in keyof Shown]: ReturnType<Shown[Name]> };

export function changeDocument(view: ChangeView): DocumentOf<typeof listFields> {
  return documentOf(listFields, view);
}

export function detailedChangeDocument(view: ChangeView): DocumentOf<typeof listFields & typeof detailFields> {
  return documentOf(allFields, view);
}

const allFields = { ...listFields, ...detailFields };

function documentOf<Shown extends Fields>(fields: Shown, view: ChangeView): DocumentOf<Shown> {
  return Object.fromEntries(Object.entries(fields).map(([name, of]) => [name, of(view)])) as DocumentOf<Shown>;
}

type DetailedChange = ReturnType<typeof detailedChangeDocument>;

/** The columns of the CSV export: nested fields become separate columns, and role names are added for readability. */
const csvColumns: Readonly<Record<string, (change: DetailedChange) => string | number | boolean | null>> = {
  ...Object.fromEntries(
    Object.keys(allFields)
      .filter((name) => name !== 'roles' && name !== 'hold')
      .map((name) => [
        name,
        (change: DetailedChange) => csvCell(change[name as Exclude<keyof DetailedChange, 'roles' | 'hold'>]),
      ]),
  ),
  roleName: (change) => roleNames(change, [change.roleId]),
  oldRoleName: (change) => roleNames(change, [change.oldRoleId]),
  rolesBeforeNames: (change) => roleNames(change, change.rolesBefore),
  rolesAfterNames: (change) => roleNames(change, change.rolesAfter ?? []),
  hold: ({ hold }) => hold?.does ?? '',
  holdKind: ({ hold }) => hold?.kind ?? '',
  holdEndsAt: ({ hold }) => hold?.endsAt ?? '',
};

export const changeHeadings: readonly string[] = Object.keys(csvColumns);

export function changeCells(change: DetailedChange): Array<string | number | boolean | null> {
  return Object.values(csvColumns).map((of) => of(change));
}

function csvCell<Value>(value: Value | number[]): Value | string {
  return Array.isArray(value) ? value.join(' ') : value;
}

/** Joins role names with semicolons, because names can contain spaces. Roles outside the plan appear as ids. */
function roleNames({ roles }: Pick<DetailedChange, 'roles'>, ids: Array<number | null>): string {
  const known = ids.filter((id) => id !== null);
  return known.map((id) => roles.find((role) => role.id === id)?.name ?? String(id)).join('; ');
}

function holdPartDocument({ hold }: RankChange) {
  if (hold === undefined) return null;
  const does = { begin: 'begin', renew: 'renew', return: 'end', lift: 'override', undo: 'undo' } as const;
  const isLifted = hold.does === 'return' && hold.as === 'lifted';
  const endsAt = hold.does === 'begin' ? hold.endsAt : undefined;
  return {
    does: isLifted ? 'lift' : does[hold.does],
    kind: hold.does === 'begin' ? hold.kind : null,
    endsAt: isoOrNull(endsAt),
  } as const;
}

/**
 * Returns the change's requester: a player, `the game`, `someone on Discord`, an operator as `ann@host`, or `daemon`.
 */
export function whoRequested(change: RankChange): string {
  const { keyId, by, rankerId, rankerName } = change;
  if (keyId === undefined) return by.replace(/^(cli|web):/, '');
  const unnamed = isFromDiscord(change) ? 'someone on Discord' : 'the game';
  return rankerId === 0 ? rankerName || unnamed : withId(rankerName, rankerId);
}

function isFromDiscord({ by }: RankChange): boolean {
  return by.startsWith(discordPrefix);
}

/** Returns the change's origin: a key's name, `discord/` and a key's name, `undo`, `page`, `daemon` or `shell`. */
export function originOf({ change, keyName }: ChangeView): string {
  const { keyId, undoId, by } = change;
  if (isFromDiscord(change)) return `discord/${keyName ?? keyId}`;
  if (keyId !== undefined) return keyName ?? keyId;
  if (undoId !== undefined) return 'undo';
  if (by.startsWith('web:')) return 'page';
  return by === 'daemon' ? 'daemon' : 'shell';
}

export function withId(name: string, id: number): string {
  return name === '' ? String(id) : `${name} (${id})`;
}

export function holdWords({ hold }: RankChange): string | undefined {
  if (hold === undefined) return undefined;
  if (hold.does === 'begin') {
    const until = hold.endsAt === undefined ? '' : ` until ${isoTime(hold.endsAt).slice(0, 16)}Z`;
    return hold.kind === 'temporary' ? `temporary${until}` : `suspended${until}`;
  }
  if (hold.does === 'return') return hold.as === 'lifted' ? 'lifted early' : 'time is up';
  if (hold.does === 'undo') return hold.reopens === undefined ? 'ended by undo' : 'in force again after an undo';
  return hold.does === 'renew' ? 'rejoined the group: still in force' : 'ends the suspension';
}

/**
 * Returns the old and the new role, e.g. `Trainee → Officer` or `+ VIP`, or the requested rank if there was no plan.
 */
export function changeTitle(change: RankChange): string {
  const { kind, roleId, oldRoleId } = change;
  if (kind !== undefined)
    return `${kind === 'role_added' ? '+' : '−'} ${roleId === undefined ? (requestedRank(change) ?? '?') : roleName(change, roleId)}`;
  if (roleId === undefined) return `→ ${requestedRank(change) ?? '?'}`;
  const target = roleName(change, roleId);
  return oldRoleId === undefined || oldRoleId === roleId ? target : `${roleName(change, oldRoleId)} → ${target}`;
}

/** Returns the roles' names, each with its id, e.g. `Trainee (70010)`. */
export function namedRoles({ roles = [] }: RankChange, ids: number[]): string {
  const name = (id: number) => roles.find((role) => role.id === id)?.name;
  return ids.map((id) => withId(name(id) ?? '', id)).join(', ');
}

function roleName({ roles = [] }: RankChange, roleId: number): string {
  return roles.find(({ id }) => id === roleId)?.name ?? String(roleId);
}

/** Returns null for an undo that was refused before it was planned. */
function requestedRank({ newRankId, undoId }: RankChange): number | null {
  return undoId !== undefined && newRankId === 0 ? null : newRankId;
}

export function dryRunDocument({ checks, approved }: DryRun) {
  return { allowed: approved !== undefined, steps: approved?.plan.steps ?? [], checks: checks.map(checkDocument) };
}

function checkDocument(result: CheckResult) {
  const { name, state } = result;
  if (result.state !== 'FAIL') return { name, state, detail: result.detail };
  const { code, message } = result.error;
  return { name, state, code, detail: message, try: hintOf(result.error) };
}

export function listDocument({ plan, run }: { plan: PlannedList; run: Run<ListedMember, MemberChange> }) {
  const { error } = run;
  return {
    id: plan.id,
    members: run.results.map((result) => ({
      line: result.line ?? null,
      rankeeId: result.rankeeId,
      rankeeName: result.rankeeName,
      state: result.state,
      changeId: 'change' in result ? result.change.id : null,
      code: 'error' in result ? result.error.code : null,
      message: listMessage(result),
    })),
    left: run.left.map(({ line, rankeeId, rankeeName }) => ({ line: line ?? null, rankeeId, rankeeName })),
    stoppedBy: error === undefined ? null : { code: error.code, message: error.message },
  };
}

export function listMessage(result: MemberChange): string {
  return 'error' in result ? result.error.message : result.change.message;
}
