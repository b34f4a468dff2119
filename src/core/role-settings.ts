import { RankdError } from '../base/errors.ts';
import { shorten } from '../base/text.ts';
import { originHint, roleTitle } from './describe.ts';
import { type Actor, configurationDrifted, configurationFits, type DomainEvent, type Verdict } from './events.ts';
import type { Key, Role, RoleKind } from './model.ts';
import {
  isRank,
  isUnclear,
  type RoleName,
  type RoleScheme,
  rolesCalled,
  rolesMeant,
  writableName,
} from './role-scheme.ts';
import { isNamed } from './rules/rule.ts';
import { describeKind } from './target.ts';

/** The changes that a misfit blocks: changes to ranks and extra roles, suspensions, or all of them. `null`: none. */
type Stops = 'ranks' | 'suspensions' | 'everything' | null;

interface SettingKind {
  isList: boolean;
  /**
   * True if each entry must identify exactly one role that members can hold. If false, an entry includes every matching
   * role.
   */
  entryNamesOneRole: boolean;
  /** The changes that are refused until the entry is resolved for the first time. */
  ifUnread: Stops;
  /** The changes that are refused once the role is gone. */
  ifGone: Stops;
  /** The consequence of a missing role, for the end of a message. */
  loss: string;
}

const guard = { isList: true, entryNamesOneRole: false, ifUnread: 'everything', ifGone: null } as const;
const single = { isList: false, entryNamesOneRole: true } as const;
const bound = { ...single, ifUnread: 'everything', ifGone: 'everything', loss: 'no rank can be changed' } as const;

const settingKinds = {
  'group.ladder': {
    ...{ isList: true, entryNamesOneRole: true, ifUnread: 'ranks', ifGone: null },
    loss: 'the ladder continues without it',
  },
  'policy.locked_roles': { ...guard, loss: 'the entry locks nothing' },
  'policy.privileged_roles': { ...guard, loss: 'the entry makes nothing privileged' },
  'policy.protected_roles': { ...guard, loss: 'the entry protects no one' },
  'policy.suspension.role': {
    ...{ ...single, ifUnread: 'suspensions', ifGone: 'suspensions' },
    loss: 'no member can be suspended',
  },
  'policy.max_rank': bound,
  'policy.min_rank': bound,
} as const satisfies Record<string, SettingKind>;

/**
 * A misfit of a key's bound blocks nothing here, because the rules `ceiling` and `floor` refuse the changes of that
 * key.
 */
const keyBound: SettingKind = { ...single, ifUnread: null, ifGone: null, loss: "the key can't change any rank" };

export type RoleSetting = keyof typeof settingKinds;

/**
 * One entry of a setting that names roles. `setting` is a `RoleSetting` or, for a key's bound, e.g.
 * `the max_rank of key NAME`.
 */
export interface RoleEntry {
  setting: string;
  entry: RoleName;
  /** The role's rank when a key's bound was set; absent for other entries. */
  shownRank?: number | undefined;
}

/** The roles that an entry named when rankd first resolved or last relearned it, with their names and ranks then. */
export interface RoleMeaning {
  setting: string;
  /** The entry as written. */
  entry: string;
  /** Empty if the entry was never resolved. */
  roles: Array<Pick<Role, 'id' | 'name' | 'rank'>>;
  /** The text of the last alarm about this entry; null if the entry fits. */
  alarm: string | null;
}

/** An entry that does not identify its role, or no longer does. */
export interface RoleMisfit {
  setting: string;
  entry: string;
  message: string;
  /** The line to write, or the command to run. */
  fix: string;
  stops: Stops;
  /**
   * True if the entry was never resolved or, for two rungs that share a rank, if the ladder has a newly resolved entry.
   */
  isUnread: boolean;
}

export interface ResolvedRoles {
  /** The roles that each setting currently means. */
  named: Readonly<Record<RoleSetting, readonly Role[]>>;
  misfits: readonly RoleMisfit[];
}

export interface GroupScheme extends RoleScheme, ResolvedRoles {}

export interface NamingSettings {
  ladder: RoleName[] | undefined;
  suspensionRole: RoleName | undefined;
  lockedRoles: RoleName[];
  privilegedRoles: 'allow' | 'operator' | RoleName[];
  protectedRoles: RoleName[];
  /** A number up to 255 is a rank, not a role. */
  maxRank: RoleName;
  minRank: RoleName;
}

export function roleEntries(settings: NamingSettings): RoleEntry[] {
  const { ladder = [], suspensionRole, lockedRoles, privilegedRoles, protectedRoles, maxRank, minRank } = settings;
  const entries: Record<RoleSetting, RoleName[]> = {
    'group.ladder': ladder,
    'policy.locked_roles': lockedRoles,
    'policy.privileged_roles': Array.isArray(privilegedRoles) ? privilegedRoles : [],
    'policy.protected_roles': protectedRoles,
    'policy.suspension.role': suspensionRole === undefined ? [] : [suspensionRole],
    'policy.max_rank': isRank(maxRank) ? [] : [maxRank],
    'policy.min_rank': isRank(minRank) ? [] : [minRank],
  };
  return Object.entries(entries).flatMap(([setting, names]) => names.map((entry) => ({ setting, entry })));
}

export function keyEntries(
  keys: ReadonlyArray<Pick<Key, 'name' | 'maxRank' | 'maxRankRole' | 'minRank' | 'minRankRole'>>,
): RoleEntry[] {
  return keys.flatMap(({ name, maxRank, maxRankRole, minRank, minRankRole }) => {
    const bounds = [
      { setting: `the max_rank of key ${name}`, entry: maxRankRole, shownRank: maxRank },
      { setting: `the min_rank of key ${name}`, entry: minRankRole, shownRank: minRank },
    ];
    return bounds.flatMap(({ entry, ...rest }) => (entry === undefined ? [] : [{ ...rest, entry }]));
  });
}

type Roles = Pick<RoleScheme, 'roles' | 'rankOne'>;

/**
 * Resolves entries to roles. An entry that was resolved before still means the same roles, even if their ranks and
 * names have changed since. `newMeanings`: the meanings of entries that are resolved for the first time.
 */
export function resolveRoles(
  group: Roles,
  entries: readonly RoleEntry[],
  meanings: readonly RoleMeaning[],
): ResolvedRoles & { newMeanings: RoleMeaning[] } {
  const read = entries.map((one) => ({ ...one, ...resolveEntry(group, one, meanings) }));
  const named = Object.fromEntries(
    Object.keys(settingKinds).map((setting) => {
      const meant = new Set(read.flatMap((one) => (one.setting === setting ? one.roles : [])));
      return [setting, group.roles.filter((role) => meant.has(role))];
    }),
  ) as unknown as ResolvedRoles['named'];
  const clash = clashOf(named['group.ladder']);
  const isNew = (one: (typeof read)[number]) => one.newMeaning !== undefined && one.setting === 'group.ladder';
  const misfits = [
    ...read.flatMap((one) => misfitOf(group, one, read)),
    ...(clash === undefined ? [] : [misfitOfClash(clash, read.some(isNew))]),
  ];
  const rungs = read.filter(({ setting }) => setting === 'group.ladder');
  return {
    named,
    misfits: rungs.length > 0 && rungs.every(({ roles }) => roles.length === 0) ? misfits.map(stopsRanks) : misfits,
    newMeanings: read.flatMap(({ newMeaning }) => newMeaning ?? []),
  };
}

/**
 * Makes a ladder misfit block all rank changes, because no entry of the ladder resolves to a role. Returns other
 * misfits unchanged.
 */
function stopsRanks(misfit: RoleMisfit): RoleMisfit {
  return misfit.setting === 'group.ladder' && misfit.stops === null ? { ...misfit, stops: 'ranks' } : misfit;
}

/** An entry's roles, and the differences between them and its text. */
interface ResolvedEntry {
  roles: Role[];
  /** Set if the entry is resolved for the first time. */
  newMeaning?: RoleMeaning;
  flaw?: string;
  /** The entry's roles that the group no longer has or, if it must name one role, that members can no longer hold. */
  gone: RoleMeaning['roles'];
  /** The entry's roles that no longer match its text or, for a key's bound, no longer have the rank `shownRank`. */
  moved: Role[];
  /** The roles that match the entry's text, but that the entry does not mean. */
  others: Role[];
}

function resolveEntry(group: Roles, one: RoleEntry, meanings: readonly RoleMeaning[]): ResolvedEntry {
  const { setting, entry, shownRank } = one;
  const fits = { gone: [], moved: [], others: [] };
  const now = readEntry(group, one);
  const meaning = meanings.find((kept) => isSameEntry(kept, one) && kept.roles.length > 0);
  if (meaning === undefined) {
    if (now.flaw !== undefined || now.isUnclear) return { ...fits, ...now };
    const roles = now.roles.map(({ id, name, rank }) => ({ id, name, rank }));
    return { ...fits, roles: now.roles, newMeaning: { setting, entry: String(entry), roles, alarm: null } };
  }
  const roles = group.roles.filter(({ id }) => meaning.roles.some((was) => was.id === id));
  const usable = kindOf(setting).entryNamesOneRole ? roles.filter(canBeHeld) : roles;
  const gone = meaning.roles.filter(({ id }) => !usable.some((role) => role.id === id));
  if (now.isUnclear) return { ...fits, roles: usable, gone };
  const matching = matchingRoles(group, one);
  return {
    roles: usable,
    gone,
    moved: usable.filter((role) => !matching.includes(role) || role.rank !== (shownRank ?? role.rank)),
    others: matching.filter((role) => !meaning.roles.some(({ id }) => id === role.id)),
  };
}

export function isSameEntry(
  one: { setting: string; entry: RoleName },
  other: { setting: string; entry: RoleName },
): boolean {
  return one.setting === other.setting && String(one.entry) === String(other.entry);
}

function kindOf(setting: string): SettingKind {
  return (settingKinds as Record<string, SettingKind>)[setting] ?? keyBound;
}

function canBeHeld({ kind }: Role): boolean {
  return kind !== 'guest' && kind !== 'owner' && kind !== 'private';
}

/**
 * Returns the current roles that match the entry's text. In a list of locked, privileged or protected roles, a rank
 * matches every role with that rank, even the base role.
 */
function matchingRoles(group: Roles, { setting, entry }: RoleEntry): Role[] {
  if (kindOf(setting).entryNamesOneRole) return rolesMeant(group, entry);
  if (typeof entry === 'string') return rolesCalled(group.roles, entry);
  return group.roles.filter((role) => isNamed(role, [entry]));
}

/**
 * Resolves an entry by its text. `isUnclear`: set if the result depends on which role is the base role, which the
 * platform currently does not show.
 */
function readEntry(group: Roles, one: RoleEntry): { roles: Role[]; flaw?: string; isUnclear?: true } {
  const { setting, entry } = one;
  const roles = matchingRoles(group, one);
  const [role, other] = roles;
  if (role === undefined) {
    const what =
      typeof entry === 'number' ? `${entry} is not a rank or role id` : `no role in the group is called "${entry}"`;
    return { roles, flaw: typeof entry === 'number' ? `${what} in the group` : what };
  }
  if (!kindOf(setting).entryNamesOneRole) return { roles };
  if (roles.every(isUnclear)) return { roles, isUnclear: true };
  if (other !== undefined) {
    const shared = typeof entry === 'number' ? `rank ${entry} is shared by` : `"${entry}" is the name of both`;
    return { roles: [], flaw: `${shared} role ${role.id} and role ${other.id}; use the role id` };
  }
  if (canBeHeld(role)) return { roles };
  return { roles: [], flaw: `${entry} ${describeKind(role)}, which can never be given` };
}

/** Returns two rungs with the same rank, if any. */
function clashOf(ladder: readonly Role[]): [Role, Role] | undefined {
  const rungs = ladder.filter(isRung);
  const index = rungs.findIndex((role, at) => !isUnclear(role) && role.rank === rungs[at + 1]?.rank);
  const [one, other] = rungs.slice(index, index + 2);
  return index < 0 || one === undefined || other === undefined ? undefined : [one, other];
}

/** True unless the role is the base role, which is below every rung. */
function isRung({ kind }: { kind: RoleKind }): boolean {
  return kind !== 'base';
}

export function ladderOf(entries: readonly RoleEntry[], { named }: Pick<ResolvedRoles, 'named'>): Role[] | undefined {
  return entries.some(({ setting }) => setting === 'group.ladder') ? named['group.ladder'].filter(isRung) : undefined;
}

// ---- messages about misfits ----

const lookUpHint = '`rankd group roles` lists ranks and role ids';

function correctionHint(setting: string): string {
  if (!(setting in settingKinds)) return keyFix(setting);
  return `correct ${setting} ${originHint}; ${lookUpHint}`;
}

function misfitOfClash([one, other]: [Role, Role], isNew: boolean): RoleMisfit {
  const setting = 'group.ladder';
  const shared = `two of its roles share rank ${one.rank}, so neither is above the other`;
  return {
    ...{ setting, entry: `rank ${one.rank}`, stops: isNew ? 'ranks' : null, isUnread: isNew },
    message: `${setting} does not fit the group: ${shared}.`,
    fix: isNew ? correctionHint(setting) : `give ${roleTitle(one)} or ${roleTitle(other)} a different rank on Roblox`,
  };
}

function misfitOf(group: Roles, one: RoleEntry & ResolvedEntry, all: Array<RoleEntry & ResolvedEntry>): RoleMisfit[] {
  const { setting, entry, flaw, gone, moved, others } = one;
  const { ifUnread, ifGone } = kindOf(setting);
  const about = { setting, entry: String(entry) };
  if (flaw !== undefined) {
    const message = `${setting} does not fit the group: ${flaw}.`;
    return [{ ...about, message, fix: correctionHint(setting), stops: ifUnread, isUnread: true }];
  }
  if (gone.length + moved.length + others.length === 0) return [];
  const message = `${setting} names ${quoted(entry)}, ${driftOf(one)}.`;
  const stops = one.roles.length === 0 ? ifGone : null;
  return [{ ...about, message, fix: fixOf(group, one, all), stops, isUnread: false }];
}

function quoted(name: RoleName): string {
  return typeof name === 'number' ? String(name) : `"${shorten(name, 40)}"`;
}

function driftOf({ setting, entry, shownRank, roles, gone, moved, others }: RoleEntry & ResolvedEntry): string {
  const now = ({ name, rank }: Role) =>
    typeof entry === 'number' ? `now has rank ${rank}` : `is now called "${shorten(name, 40)}"`;
  const was = ({ id }: Role) => (shownRank === undefined ? `is role ${id}` : `had rank ${shownRank}`);
  const meant = roles.filter((role) => !moved.includes(role)).map((role) => `means ${titleOf(role)}`);
  const clauses = [
    ...gone.map((role) => `which was ${titleOf(role)}: Roblox no longer lists that role, so ${kindOf(setting).loss}`),
    ...moved.map((role) => `which ${was(role)}: ${typeof entry === 'number' ? role.name : 'it'} ${now(role)}`),
    ...(gone.length + moved.length === 0 ? meant : []),
    ...others.map((role) => `${titleOf(role)} now matches the entry, but is not the intended role`),
  ];
  return clauses.join('; ');
}

function titleOf({ id, name }: Pick<Role, 'id' | 'name'>): string {
  return `${shorten(name, 40)} (role id ${id})`;
}

/**
 * Returns the fix for a misfit, with the corrected line if possible. That line contains the current rank or name in
 * place of an outdated entry.
 */
function fixOf(group: Roles, one: RoleEntry & ResolvedEntry, all: Array<RoleEntry & ResolvedEntry>): string {
  const { setting, others } = one;
  if (!(setting in settingKinds)) return keyFix(setting);
  const siblings = all.filter((other) => other.setting === setting);
  const taken = new Set(siblings.map(({ entry }) => String(entry)));
  const words = siblings.flatMap((sibling) =>
    sibling.gone.length + sibling.moved.length + sibling.others.length === 0
      ? [written(sibling.entry)]
      : sibling.roles.map((role) => written(nameOf(group, role, { ...sibling, taken }))),
  );
  const key = setting.slice(setting.lastIndexOf('.') + 1);
  const relearn =
    others.length === 0 ? '' : `; to use ${others.map(titleOf).join(' and ')} instead: rankd reload --relearn`;
  const { isList } = kindOf(setting);
  if (words.length === 0 && (!isList || setting === 'group.ladder'))
    return `use a different role in ${setting} ${originHint}, or remove the entry; ${lookUpHint}${relearn}`;
  const value = isList ? `[${words.join(', ')}]` : words[0];
  return `correct ${setting} ${originHint}: write ${key}: ${value} and run: rankd reload (a variable needs a restart)${relearn}`;
}

function keyFix(setting: string): string {
  const [, rule = '', name = ''] = /^the (\w+) of key (.*)$/.exec(setting) ?? [];
  return `rankd key set ${name} --${rule.replace('_', '-')} RANK`;
}

/**
 * Returns the role's current rank or name, whichever the entry used. If that text is ambiguous, already in the list or
 * not allowed in a setting, returns the role id, or the rank for a bound.
 */
function nameOf(
  group: Roles,
  role: Role,
  { setting, entry, taken }: RoleEntry & { taken: ReadonlySet<string> },
): RoleName {
  const name: RoleName = typeof entry === 'number' ? role.rank : role.name;
  const matching = matchingRoles(group, { setting, entry: name });
  const isWritable = typeof name === 'number' || writableName.test(name);
  const isClear = isWritable && matching.length === 1 && matching[0] === role && !taken.has(String(name));
  if (isClear) return name;
  return isBound(setting) ? role.rank : role.id;
}

function isBound(setting: string): boolean {
  return setting === 'policy.max_rank' || setting === 'policy.min_rank';
}

function written(name: RoleName): string {
  return typeof name === 'number' ? String(name) : JSON.stringify(name);
}

export function refusalOfMisfit(
  { misfits }: Pick<ResolvedRoles, 'misfits'>,
  of: 'ranks' | 'suspensions' | 'everything',
): RankdError | undefined {
  const misfit = misfits.find(({ stops }) => stops !== null && (stops === 'everything' || stops === of));
  return misfit && misfitError(misfit);
}

function misfitError({ message, fix }: Pick<RoleMisfit, 'message' | 'fix'>): RankdError {
  return new RankdError('configuration_misfit', `${message} The operator can correct this: rankd doctor.`, {
    hint: fix,
  });
}

// ---- the stored part ----

/**
 * Decides which meanings to store for the resolved entries. The first meaning that any daemon stored wins, unless
 * `isRenewed` returns true for it. `prunes`: also deletes the meanings of entries that no longer exist.
 */
export function judgeMeanings(
  { entries, newMeanings, isRenewed, prunes }: ResolvedMeanings,
  actor: Actor,
): (kept: RoleMeaning[]) => Verdict<RoleMeaning[]> {
  return (kept) => {
    const events: DomainEvent[] = [];
    const isWritten = (one: RoleMeaning) => entries.some((entry) => isSameEntry(one, entry));
    const remaining = kept.filter((one) => {
      const isUnread = one.roles.length === 0;
      const isReplaced = (isUnread || isRenewed(one)) && newMeanings.some((read) => isSameEntry(one, read));
      const remains = !isReplaced && (!prunes || isUnread || isWritten(one));
      if (!remains && one.alarm !== null) events.push(configurationFits(one, actor));
      return remains;
    });
    const added = newMeanings.filter((read) => !remaining.some((one) => isSameEntry(one, read)));
    return { change: [...remaining, ...added], events };
  };
}

export interface ResolvedMeanings {
  entries: readonly RoleEntry[];
  newMeanings: readonly RoleMeaning[];
  isRenewed: (one: Pick<RoleMeaning, 'setting' | 'entry'>) => boolean;
  prunes: boolean;
}

/** Returns an event for each misfit that is new or has a new message, and for each entry that fits again. */
export function judgeAlarms(
  misfits: readonly RoleMisfit[],
  actor: Actor,
): (kept: RoleMeaning[]) => Verdict<RoleMeaning[]> {
  return (kept) => {
    const events: DomainEvent[] = [];
    const unknown = misfits.filter((misfit) => !kept.some((one) => isSameEntry(one, misfit)));
    const added = unknown.map(({ setting, entry }): RoleMeaning => ({ setting, entry, roles: [], alarm: null }));
    const change = [...kept, ...added].flatMap((one): RoleMeaning[] => {
      const misfit = misfits.find((candidate) => isSameEntry(candidate, one));
      if (misfit !== undefined) {
        if (misfit.message !== one.alarm) events.push(configurationDrifted(misfit, actor));
        return [{ ...one, alarm: misfit.message }];
      }
      if (one.alarm !== null) events.push(configurationFits(one, actor));
      return one.roles.length === 0 ? [] : [{ ...one, alarm: null }];
    });
    return { change, events };
  };
}
