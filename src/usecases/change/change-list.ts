import { deadlineIn } from '../../base/clock.ts';
import { isRankdError, type RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { newId } from '../../core/api-key.ts';
import { mayStillSucceed } from '../../core/change-codes.ts';
import { rankList } from '../../core/events.ts';
import type { Direction, RankChange, RankRequest } from '../../core/model.ts';
import { type Run, runMany } from '../run-many.ts';
import { changeRank } from './change-rank.ts';
import { errorOf, outcomeUnknown } from './change-record.ts';
import { isReportStillTrue } from './late-read.ts';
import { backgroundDeadlineMs, type ChangeCommand, type Ranking } from './ranking.ts';

/** A request to make the same change to every member of a list. */
export interface ListCommand extends Pick<ChangeCommand, 'kind' | 'ifRank' | 'holding' | 'atLeast'> {
  step: Direction | undefined;
  request: Omit<RankRequest, 'rankeeId' | 'rankeeName' | 'command'>;
  command: string;
  by: string;
}

export interface ListedMember {
  /** The line number in the list; absent if the members were read from Roblox. */
  line?: number | undefined;
  rankeeId: number;
  rankeeName: string;
}

/** The outcome for one member. `done` means that an earlier run of the list already changed the member. */
export type MemberChange =
  | { state: 'changed' | 'already' | 'done'; change: RankChange }
  | { state: 'refused' | 'unknown'; changeId?: string | undefined; error: RankdError };

export interface PlannedList {
  id: string;
  /** SHA-256 hash (hex) of the request and of either the members or the role that they hold. */
  content: string;
  /** True if an earlier command started the list but did not complete it. */
  isContinued: boolean;
}

/** Within this time, repeating the command continues with the remaining members; after that, it starts over. */
const resumableForMs = 24 * 3_600_000;

/**
 * Decides whether a command starts a new list or continues an interrupted one. Two lists are the same if they request
 * the same change for the same members, in any order, or for the holders of the same role. The holders themselves are
 * not compared, because the list may change who holds the role.
 */
export async function planList(
  { store, group, clock }: Pick<Ranking, 'store' | 'group' | 'clock'>,
  { step, kind, request, ifRank, holding, atLeast }: ListCommand,
  members: readonly ListedMember[],
): Promise<PlannedList> {
  const ids = members.map(({ rankeeId }) => rankeeId).sort((one, other) => one - other);
  const content = crypto().hash(
    'sha256',
    JSON.stringify([group.title, step ?? request.newRankId, holding ?? ids, kind, ifRank, atLeast]),
  );
  const events = await store.listAudit({ action: 'rank.list', since: clock.now() - resumableForMs, limit: 10_000 });
  const latest = events.find(({ detail }) => detail['content'] === content);
  if (latest?.detail['does'] === 'begin') return { id: latest.subject, content, isContinued: true };
  return { id: newId('list'), content, isContinued: false };
}

/**
 * Changes the members with `runMany`. Skips members whom an earlier run of the list has already changed, even in
 * another process.
 */
export async function runList(
  app: Ranking,
  { plan, command, members }: { plan: PlannedList; command: ListCommand; members: ListedMember[] },
  control: { stop: AbortSignal; report: (done: number) => void },
): Promise<Run<ListedMember, MemberChange>> {
  if (!plan.isContinued) await recordList(app, 'begin', { plan, command, members });
  const act = {
    act: (member: ListedMember) => changeListed(app, { command, list: plan.id, member }),
    refused: (error: RankdError): MemberChange => ({ state: 'refused', error }),
  };
  return runMany(app, { members, act }, control);
}

/**
 * Records the start or the end of the list in the audit log. Once the end is recorded, the same command starts a new
 * list.
 */
export async function recordList(
  { store, clock }: Pick<Ranking, 'store' | 'clock'>,
  does: 'begin' | 'end',
  { plan, command, members }: { plan: PlannedList; command: ListCommand; members: ListedMember[] },
): Promise<void> {
  const { id, content } = plan;
  await store.appendAudit(
    rankList(id, { does, content, members: members.length }, { by: command.by, at: clock.now() }),
  );
}

/** Marks each result contradicted by a late read as unknown. */
export async function listAfterLateReads(
  app: Pick<Ranking, 'store'>,
  run: Run<ListedMember, MemberChange>,
): Promise<Run<ListedMember, MemberChange>> {
  const results = run.results.map(async (result) => {
    const isApplied = result.state === 'changed';
    if (!isApplied && result.state !== 'refused') return result;
    const changeId = 'change' in result ? result.change.id : result.changeId;
    if (await isReportStillTrue(app, changeId, { isApplied })) return result;
    const { line, rankeeId, rankeeName } = result;
    return { line, rankeeId, rankeeName, state: 'unknown' as const, error: outcomeUnknown() };
  });
  return { ...run, results: await Promise.all(results) };
}

/** Throws RankdError only if a retry may have a different outcome. */
async function changeListed(
  app: Ranking,
  { command, list, member }: { command: ListCommand; list: string; member: ListedMember },
): Promise<MemberChange> {
  const { step, kind, by, ifRank, holding, atLeast } = command;
  const { rankeeId, rankeeName } = member;
  using deadline = deadlineIn(app.clock, backgroundDeadlineMs(app));
  let changeId: string | undefined;
  try {
    const request = { ...command.request, rankeeId, rankeeName, command: `${command.command}, ${list}` };
    const asked = { caller: { by, dryRun: false }, request, list };
    const expected = {
      ...(ifRank !== undefined && { ifRank }),
      ...(holding !== undefined && { holding }),
      ...(atLeast && { atLeast }),
    };
    const { change, error, replayed } = await changeRank(
      app,
      { ...asked, ...expected, ...(step && { step }), ...(kind && { kind }) },
      deadline,
    );
    changeId = change.id;
    const refusal = errorOf(change, error);
    if (refusal !== undefined) throw refusal;
    if (replayed) return { state: 'done', change };
    return { state: change.rolesBefore.join() === change.rolesAfter.join() ? 'already' : 'changed', change };
  } catch (error) {
    if (!isRankdError(error)) throw error;
    if (error.code === 'outcome_unknown') return { state: 'unknown', error };
    if (mayStillSucceed(error.code) && error.code !== 'cooldown') throw error;
    return { state: 'refused', changeId, error };
  }
}
