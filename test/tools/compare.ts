import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';

/**
 * The fields of a rank change that `compare` uses. Except where noted, the records in the store and the output of
 * `history list --json` have all of them.
 */
export interface StoredChange {
  id: string;
  state: string;
  rankeeId: number;
  newRankId: number;
  /** Role ids in ascending order, including the base role if rankd knew its id. */
  rolesBefore: number[];
  rolesAfter: number[];
  /** The caller's name for the request. If the caller repeats the request, the name stays the same. */
  command?: string | null | undefined;
  dryRun: boolean;
  /** `compensate` if the change was being reverted. `history list` omits this field. */
  phase?: string;
  /** The intended roles (ids as in `rolesAfter`) if the change was reverted; only `compareRecords` adds them. */
  intended?: number[] | undefined;
}

export interface Answered {
  status: number;
  /** The change's id in the header `x-rank-change`; empty if the response lacks the header. */
  changeId: string;
  rankeeId: number;
  newRankId: number;
}

/** The inconsistencies, one sentence each. */
export interface Inconsistencies {
  /** Requests that got a 200, although the history does not show them as applied. */
  lost: string[];
  /** Requests that were applied more than once. */
  doubled: string[];
  /** Writes that had an effect, but belong neither to an applied change nor to a reverted one. */
  stray: string[];
  /** Inconsistencies between the responses, the history and the members' roles. */
  differing: string[];
}

export interface Records {
  fake: FakeOpenCloud;
  /** Each member's initial roles (ids, without the base role); only these members' writes and roles are checked. */
  initialRoles: ReadonlyMap<number, number[]>;
  /** Oldest first. */
  history: StoredChange[];
  answered: Answered[];
}

/** Compares the callers' responses with the history, and the history with the fake's requests and state. */
export function compare({ history, ...rest }: Records): Inconsistencies {
  const records = { ...rest, history: history.map((change) => withBase(change, rest.fake.group.base.id)) };
  const { answered, initialRoles } = records;
  const byId = new Map(records.history.map((change) => [change.id, change]));
  return {
    lost: answered.flatMap((one) => lostChange(one, byId.get(one.changeId))),
    doubled: doubled(records),
    stray: [...initialRoles.keys()].flatMap((userId) => stray(userId, records)),
    differing: [
      ...answered.flatMap((one) => deniedChange(one, byId.get(one.changeId))),
      ...[...initialRoles].flatMap(([userId, roles]) => differing({ userId, roles }, records)),
    ],
  };
}

/**
 * Adds the base role to the roles of a finished change, because every member has it, even if rankd did not know its id.
 */
function withBase(change: StoredChange, base: number): StoredChange {
  const added = (ids: number[]) => (ids.length === 0 || ids.includes(base) ? ids : sorted([...ids, base]));
  const { state, rolesBefore, rolesAfter, intended } = change;
  if (state === 'pending' || state === 'unknown') return change;
  return {
    ...change,
    rolesBefore: added(rolesBefore),
    rolesAfter: added(rolesAfter),
    intended: intended && added(intended),
  };
}

function lostChange({ status, changeId, rankeeId, newRankId }: Answered, stored: StoredChange | undefined): string[] {
  if (status !== 200) return [];
  if (stored?.state === 'applied' && stored.rankeeId === rankeeId && stored.newRankId === newRankId) return [];
  return [
    `${changeId} of member ${rankeeId} was answered with 200 and is ${stored?.state ?? 'missing'} in the history`,
  ];
}

/** Reports an error response if its change was not refused and did not fail. Ignores 504, an unknown outcome. */
function deniedChange({ status, changeId }: Answered, stored: StoredChange | undefined): string[] {
  if (status === 200 || status === 504 || changeId === '' || stored?.state === 'refused' || stored?.state === 'failed')
    return [];
  return [`${changeId} was answered with ${status} and is ${stored?.state ?? 'missing'} in the history`];
}

function doubled({ history }: Records): string[] {
  // includes changes without a write, because a repeated request must get the outcome of the first one
  const applied = history.filter(isApplied);
  const byRequest = Map.groupBy(applied, ({ command }) => command);
  return [...byRequest].flatMap(([command, changes]) =>
    command && changes.length > 1 ? [`${command} was applied as ${changes.map(({ id }) => id).join(' and ')}`] : [],
  );
}

/**
 * Reports the first write that no change explains. An applied change explains all of its writes; a reverted one
 * explains the writes that it made and those that reverted them.
 */
function stray(userId: number, { fake, history }: Records): string[] {
  const seen = fake.journal
    .writes(userId)
    .filter(({ applied }) => applied)
    .map(({ operation, roleId }) => `${operation} ${roleId}`);
  const expected: string[] = [];
  for (const change of history.filter(({ rankeeId }) => rankeeId === userId))
    expected.push(...(isApplied(change) ? writesOf(change) : writesAndReverts(change, seen.slice(expected.length))));
  const at = seen.findIndex((write, index) => write !== expected[index]);
  return at === -1
    ? []
    : [`member ${userId}: ${seen[at]} had an effect, the history expects ${expected[at] ?? 'nothing'}`];
}

/** Returns the writes in `seen` that a reverted change made, and those that reverted them. */
function writesAndReverts({ intended, ...change }: StoredChange, seen: string[]): string[] {
  if (intended === undefined) return [];
  for (const made = writesOf({ ...change, rolesAfter: intended }); made.length > 0; made.pop()) {
    const writes = [...made, ...made.map(opposite).reverse()];
    if (writes.every((write, index) => write === seen[index])) return writes;
  }
  return [];
}

function opposite(write: string): string {
  return write.startsWith('un') ? write.slice(2) : `un${write}`;
}

function differing({ userId, roles }: { userId: number; roles: number[] }, { fake, history }: Records): string[] {
  const base = fake.group.base.id;
  const found: string[] = [];
  let held = sorted([base, ...roles]);
  for (const { id, state, phase, rolesBefore, rolesAfter } of history.filter((change) => isOf(change, userId))) {
    if (!isSame(rolesBefore, held)) found.push(`${id} began with ${rolesBefore}, member ${userId} held ${held}`);
    // a reverted change can leave the roles different if Roblox refused to restore them
    const mayChange = state === 'applied' || phase === 'compensate';
    if (!mayChange && !isSame(rolesBefore, rolesAfter)) found.push(`${id} is ${state} and changed roles`);
    held = rolesAfter;
  }
  const now = sorted([base, ...(fake.group.held(userId) ?? [])]);
  return isSame(now, held) ? found : [...found, `member ${userId} holds ${now}, by the history ${held}`];
}

/** True for the member's changes, except for dry runs and changes that ended before rankd read the member's roles. */
function isOf({ rankeeId, rolesBefore, dryRun }: StoredChange, userId: number): boolean {
  return rankeeId === userId && rolesBefore.length > 0 && !dryRun;
}

function isApplied({ state, dryRun }: StoredChange): boolean {
  return state === 'applied' && !dryRun;
}

function writesOf({ rolesBefore, rolesAfter }: StoredChange): string[] {
  return [
    ...rolesAfter.filter((id) => !rolesBefore.includes(id)).map((id) => `assign ${id}`),
    ...rolesBefore.filter((id) => !rolesAfter.includes(id)).map((id) => `unassign ${id}`),
  ];
}

function sorted(ids: number[]): number[] {
  return [...ids].sort((a, b) => a - b);
}

function isSame(some: number[], others: number[]): boolean {
  return some.join() === others.join();
}
