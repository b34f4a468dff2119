import type { RankingApp } from '../../app.ts';
import { counted } from '../../base/text.ts';
import { roleTitle } from '../../core/describe.ts';
import type { Direction, Role, RoleChangeKind } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import type { UserRef } from '../../core/user-ref.ts';
import type { CallContext } from '../../ports/index.ts';
import {
  type ListCommand,
  type ListedMember,
  listAfterLateReads,
  type MemberChange,
  type PlannedList,
  planList,
  recordList,
  runList,
} from '../../usecases/change/change-list.ts';
import { findHolders } from '../../usecases/group/members.ts';
import { listDocument, listMessage, withId } from '../../usecases/history/change-document.ts';
import { findListed } from '../../usecases/pasted-list.ts';
import type { Run } from '../../usecases/run-many.ts';
import type { Cli } from '../cli.ts';
import { confirm } from '../input/confirm.ts';
import { readUsers } from '../input/lists.ts';
import { alongsideOf, findHeldRole, rankOf, userOf } from '../input/people.ts';
import { withVerification } from '../late-reads.ts';
import { ExitCode, exitCodeOfRun, formatError } from '../output/errors.ts';
import { table } from '../output/table.ts';
import { Progress } from '../output/terminal.ts';

export interface ListSource {
  file?: string | undefined;
  holding?: RoleName | undefined;
}

interface RequestedList extends ListSource {
  /** Moves each member to the next rank up or down; `rank` is then ignored. */
  step?: Direction | undefined;
  /** If set, `rank` names an extra role. */
  kind?: RoleChangeKind | undefined;
  rank: RoleName;
  ranker: UserRef;
  reason?: string | undefined;
  ifRank?: RoleName | undefined;
  atLeast?: boolean | undefined;
}

type ListRun = Run<ListedMember, MemberChange> & { isInterrupted: boolean };

/**
 * Finds all members, asks once for confirmation, then changes a few members at a time, and continues after refusals.
 */
export async function changeList(cli: Cli, asked: RequestedList): Promise<void> {
  const lines = asked.file === undefined ? [] : await readUsers(cli.io, asked.file);
  const work = async (app: RankingApp, call: CallContext) => {
    const held = asked.holding === undefined ? undefined : await findHeldRole(cli, app, asked.holding, call);
    const command = await commandOf(cli, app, { asked, held }, call);
    const members = held === undefined ? await findListed(app, lines) : await readHolders(cli, app, held, call);
    const plan = await planList(app, command, members);
    if (held !== undefined && members.length === 0) {
      if (plan.isContinued) await recordList(app, 'end', { plan, command, members });
      const run = { results: [], left: [], error: undefined };
      return cli.print({ list: listDocument({ plan, run }) }, `No member holds ${roleTitle(held)}.`);
    }
    await confirm(cli, questionOf(asked, { plan, members, held }));
    if (plan.isContinued) cli.say(`${plan.id} continues: members already ranked are skipped.`);
    const run = await carryOut(cli, app, { plan, command, members });
    const isDone = run.left.length === 0 && run.results.every((result) => 'change' in result);
    if (isDone) await recordList(app, 'end', { plan, command, members });
    printList(cli, { plan, run, asked });
  };
  await cli.withRanking(work, { isWriting: true });
}

async function commandOf(
  cli: Cli,
  app: RankingApp,
  { asked, held }: { asked: RequestedList; held: Role | undefined },
  call: CallContext,
): Promise<ListCommand> {
  const { step, kind, rank, ranker, reason, ifRank, atLeast } = asked;
  const by = ranker === 0 ? { id: 0, name: 'operator' } : await userOf(cli, app, ranker, call);
  const find = kind === undefined ? rankOf : alongsideOf;
  const newRankId = step === undefined ? await find(cli, app, rank, call) : 0;
  // rejects an unknown rank once, rather than for each member
  if (step === undefined && kind === undefined) await app.group.target(newRankId, call);
  return {
    step,
    ...(kind !== undefined && { kind }),
    ...(ifRank !== undefined && { ifRank }),
    ...(held !== undefined && { holding: held.id }),
    ...(atLeast && { atLeast }),
    request: { rankerId: by.id, rankerName: by.name, newRankId, ...(reason !== undefined && { reason }) },
    command: `rankd ${kind === undefined ? `rank ${step ?? 'set'}` : `role ${verbs[kind]}`} --${held === undefined ? 'file' : 'holding'}`,
    by: cli.by,
  };
}

const verbs = { role_added: 'add', role_removed: 'remove' } as const;

async function readHolders(cli: Cli, app: RankingApp, held: Role, call: CallContext): Promise<ListedMember[]> {
  using _held = cli.line.hold();
  const report = (found: number) => cli.line.show(`reading the members with ${roleTitle(held)}: ${found}`);
  const holders = await findHolders(app, held, { call, report });
  return holders.map(({ id, name }) => ({ rankeeId: id, rankeeName: name }));
}

function questionOf(
  { step, kind, rank }: RequestedList,
  { plan, members, held }: { plan: PlannedList; members: ListedMember[]; held: Role | undefined },
): string {
  const whom = counted(members.length, 'member') + (held === undefined ? '' : ` with the role ${roleTitle(held)}`);
  if (plan.isContinued) return `Continue ${plan.id} (${whom}), skipping those already done?`;
  if (kind !== undefined)
    return kind === 'role_added' ? `Give ${whom} the role ${rank}?` : `Take the role ${rank} from ${whom}?`;
  if (step !== undefined) return `${step === 'promote' ? 'Promote' : 'Demote'} ${whom}?`;
  return `Give ${whom} the rank ${rank}?`;
}

async function carryOut(
  cli: Cli,
  app: RankingApp,
  list: { plan: PlannedList; command: ListCommand; members: ListedMember[] },
): Promise<ListRun> {
  const stopping = new AbortController();
  void cli.io.stopSignal.then(() => {
    stopping.abort();
    cli.say('Stopping after the members in progress. Press Ctrl-C again to stop at once.');
  });
  const run = await withVerification(cli, app, async () => {
    using progress = new Progress(cli.line, list.members.length);
    return await runList(app, list, { stop: stopping.signal, report: (done) => progress.show(done) });
  });
  return { ...(await listAfterLateReads(app, run)), isInterrupted: stopping.signal.aborted };
}

/** `already` means that the member needed no change. */
function wordsFor({ kind, atLeast }: RequestedList): Record<MemberChange['state'], string> {
  const same = atLeast ? 'already had the rank or a higher one' : 'already had the rank';
  return {
    changed: 'changed',
    already: kind === undefined ? same : kind === 'role_added' ? 'already had the role' : 'did not have the role',
    done: 'already changed by this list',
    refused: 'refused',
    unknown: 'not confirmed yet',
  };
}

/**
 * Prints a summary, and the members whose change failed. Throws `ExitCode` if a change failed or a member was not
 * reached.
 */
function printList(cli: Cli, { plan, run, asked }: { plan: PlannedList; run: ListRun; asked: RequestedList }): void {
  const words = wordsFor(asked);
  const failed = run.results
    .filter(({ state }) => state === 'refused' || state === 'unknown')
    .sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  const hasLines = failed.some(({ line }) => line !== undefined);
  const rows = failed.map((result) => [
    ...(hasLines ? [String(result.line)] : []),
    ...[withId(result.rankeeName, result.rankeeId), words[result.state], listMessage(result)],
  ]);
  const headings = [...(hasLines ? ['line'] : []), 'member', 'outcome', 'detail'];
  cli.print(
    { list: listDocument({ plan, run }) },
    table(headings, rows, { wrapsLast: true }),
    summaryOf(plan, run, asked),
  );
  if (run.error !== undefined && !cli.options.json)
    cli.io.stderr(cli.asTyped(formatError(run.error, { asJson: false })));
  if (run.left.length > 0) cli.say('Run the same command again to continue with the rest.');
  else if (failed.length > 0) cli.say('To retry these members only, run the same command again.');
  const code = exitCodeOfRun(run);
  if (code !== 0) throw new ExitCode(code);
}

function summaryOf({ id }: PlannedList, { results, left }: ListRun, asked: RequestedList): string {
  const counts = Object.entries(wordsFor(asked)).map(([state, text]) => [
    results.filter((result) => result.state === state).length,
    text,
  ]);
  const parts = [...counts, [left.length, 'not reached']].flatMap(([count, what]) =>
    count === 0 ? [] : [`${count} ${what}`],
  );
  return `${id}: of ${counted(results.length + left.length, 'member')}, ${parts.join('; ')}.`;
}
