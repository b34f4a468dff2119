import { InvalidArgumentError } from 'commander';
import type { RankingApp } from '../../app.ts';
import { deadlineIn } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { isoTime, parseDuration, parseMoment } from '../../base/time.ts';
import { memberTitle, untilWhen } from '../../core/describe.ts';
import type { UserRef } from '../../core/user-ref.ts';
import type { CallContext } from '../../ports/index.ts';
import { changeRank } from '../../usecases/change/change-rank.ts';
import { errorOf } from '../../usecases/change/change-record.ts';
import { backgroundDeadlineMs, type RequestedHold } from '../../usecases/change/ranking.ts';
import { testRank } from '../../usecases/change/test-rank.ts';
import { changeDocument, withId } from '../../usecases/history/change-document.ts';
import { asStored } from '../../usecases/history/history.ts';
import { holdDocument } from '../../usecases/holds/hold-document.ts';
import { extendHold, liftHold, listHolds, requireHold, requireLength } from '../../usecases/holds/holds.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { namesOf } from '../../usecases/people/users.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, flag, option, type ValuesOf } from '../command.ts';
import { asRank, asRanker, asReason, asUser, userHelp, wholeNumber } from '../input/arguments.ts';
import { userOf } from '../input/people.ts';
import { withVerification } from '../late-reads.ts';
import { facts, table, when } from '../output/table.ts';
import { printDryRun } from './dry-run.ts';

const user = argument('<user>', userHelp, asUser);
/** Defaults to 0, which means the operator, who is not a player. */
export const ranker = option(
  '--ranker <user>',
  'the user who asks for the change, whom rankd checks against the policy',
  asRanker,
  0,
);
export const reason = option('--reason <text>', 'the reason, which is stored in the history', asReason);
const until = option('--until <time>', 'the end, such as 2027-01-31 or 2027-01-31T18:00Z', asEnd);
/** A hold's length: either `--for` or `--until`, but not both. */
export const holdOptions = {
  for: option('--for <duration>', 'how long, such as 3d, 12h or 30m; ever means until you end it', asLength),
  until,
};
export type HoldOptions = ValuesOf<typeof holdOptions>;

const suspendOptions = {
  ...holdOptions,
  role: option(
    '--role <rank>',
    'the role that the member has in the meantime, instead of policy.suspension.role',
    asRank,
  ),
  ranker,
  reason,
  dryRun: flag('--dry-run', 'make every check and show which roles it would take; change nothing'),
};
const unsuspendOptions = { force: flag('--force', "even if the member's roles were changed in the meantime"), reason };

export const suspendCommands = [
  command({
    name: 'suspend',
    about: "take away all of a member's roles for a set time, then give the same roles back",
    args: [user],
    options: suspendOptions,
    examples: ['rankd rank suspend 1001 --for 3d --reason "spam"', 'rankd rank suspend @Newcomer --until 2027-01-31'],
    run: suspend,
  }),
  command({
    name: 'unsuspend',
    about: 'end a suspension or a temporary rank, and give back the previous roles',
    args: [user],
    options: unsuspendOptions,
    examples: ['rankd rank unsuspend 1001', 'rankd rank unsuspend @Newcomer --reason "appeal"'],
    run: unsuspend,
  }),
];

const listOptions = {
  all: flag('--all', 'also those that have ended'),
  limit: option('--limit <count>', 'at most this many', wholeNumber(1, 1000), 50),
};

export const suspensionCommands = commandGroup({
  name: 'suspension',
  about: 'suspensions and temporary ranks',
  examples: ['rankd suspension list', 'rankd suspension extend 1001 --for 2d'],
  commands: [
    command({
      name: 'list',
      about: 'the suspensions and temporary ranks in force, newest first',
      options: listOptions,
      examples: ['rankd suspension list', 'rankd suspension list --all --json'],
      run: list,
    }),
    command({
      name: 'show',
      about: 'everything about one suspension or temporary rank',
      args: [argument('<user>', `${userHelp}, or the id of a suspension`, asHoldOrUser)],
      examples: ['rankd suspension show 1001', 'rankd suspension show hold_4Jk2mQ'],
      run: show,
    }),
    command({
      name: 'extend',
      about: 'extend a suspension or a temporary rank',
      args: [user],
      options: {
        for: option('--for <duration>', 'how much longer, counted from the current end', asLength),
        until,
      },
      examples: ['rankd suspension extend 1001 --for 2d'],
      run: extend,
    }),
  ],
});

async function suspend(cli: Cli, user: UserRef, options: ValuesOf<typeof suspendOptions>): Promise<void> {
  const work = async (app: RankingApp, call: CallContext) => {
    const { role } = options;
    const hold: RequestedHold = { kind: 'suspension', ...lengthOf(app, options), ...(role !== undefined && { role }) };
    const rankee = await userOf(cli, app, user, call);
    const ranker = options.ranker === 0 ? { id: 0, name: 'operator' } : await userOf(cli, app, options.ranker, call);
    const request = {
      ...{ rankeeId: rankee.id, rankeeName: rankee.name, rankerId: ranker.id, rankerName: ranker.name },
      ...{
        newRankId: 0,
        command: 'rankd rank suspend',
        ...(options.reason !== undefined && { reason: options.reason }),
      },
    };
    if (options.dryRun)
      return printDryRun(cli, await testRank(app, { request, hold, key: undefined, placeId: undefined }, call));
    using deadline = deadlineIn(app.clock, backgroundDeadlineMs(app));
    const command = { caller: { by: cli.by, dryRun: false }, request, hold };
    const answer = await withVerification(cli, app, () => changeRank(app, command, deadline));
    const change = await asStored(app, answer.change);
    const refusal = errorOf(change, answer.error);
    if (refusal !== undefined) throw refusal;
    const kept = await openHold(app, rankee.id);
    cli.print({ change: changeDocument({ change }), suspension: kept ? holdDocument(kept) : null }, change.message);
  };
  await cli.withRanking(work, { isWriting: options.dryRun !== true });
}

async function unsuspend(cli: Cli, user: UserRef, { force, reason }: ValuesOf<typeof unsuspendOptions>): Promise<void> {
  const work = async (app: RankingApp, call: CallContext) => {
    const { id: rankeeId } = await userOf(cli, app, user, call);
    const caller = { by: cli.by, dryRun: false };
    const { hold, finished } = await withVerification(cli, app, () =>
      liftHold(app, { rankeeId, caller, force, reason }),
    );
    const change = await asStored(app, finished.change);
    const refusal = errorOf(change, finished.error);
    if (refusal !== undefined) throw refusal;
    cli.print({ change: changeDocument({ change }), suspension: holdDocument(hold) }, change.message);
  };
  await cli.withRanking(work, { isWriting: true });
}

async function list(cli: Cli, { all, limit }: ValuesOf<typeof listOptions>): Promise<void> {
  await cli.withRanking(async (app) => {
    const listed = await listHolds(app, { isAll: all, limit });
    const names = await namesOf(
      app,
      listed.map(({ rankeeId }) => rankeeId),
    );
    const holds = listed.map((hold) => ({ ...hold, rankeeName: hold.rankeeName || (names.get(hold.rankeeId) ?? '') }));
    const rows = holds.map((hold) => [
      ...[memberTitle(hold), hold.kind, when(hold.beginsAt)],
      hold.endsAt === undefined ? 'lifted by hand' : when(hold.endsAt),
      ...[hold.by.replace(/^cli:/, ''), hold.reason ?? '', hold.state, hold.id],
    ]);
    const text =
      rows.length === 0
        ? 'No member is suspended or has a temporary rank.'
        : table(['member', 'kind', 'since', 'until', 'by', 'reason', 'state', 'id'], rows);
    cli.print({ suspensions: holds.map(holdDocument) }, text);
  });
}

async function show(cli: Cli, asked: UserRef): Promise<void> {
  await cli.withRanking(async (app, call) => {
    const isHold = typeof asked === 'string' && asked.startsWith('hold_');
    const hold = await requireHold(app, isHold ? asked : (await userOf(cli, app, asked, call)).id);
    const roles = await app.store.findRoles(app.group.title); // from the store, so that this works without Roblox
    const named = (ids: number[]) =>
      ids.map((id) => withId(roles.find((role) => role.id === id)?.name ?? '', id)).join(', ');
    const document = holdDocument(hold);
    const { rolesBefore, rolesDuring } = hold;
    const text = facts({ ...document, rolesBefore: named(rolesBefore), rolesDuring: named(rolesDuring) });
    cli.print({ suspension: document }, text);
  });
}

async function extend(cli: Cli, user: UserRef, options: HoldOptions): Promise<void> {
  const work = async (app: RankingApp, call: CallContext) => {
    const { id: rankeeId } = await userOf(cli, app, user, call);
    const hold = await extendHold(app, { rankeeId, by: cli.by, ...extension(options) });
    cli.print({ suspension: holdDocument(hold) }, `${memberTitle(hold)}: ${untilWhen(hold)}.`);
  };
  await cli.withRanking(work, { isWriting: true });
}

function extension({ for: length, until }: HoldOptions): { forMs: number } | { endsAt: number } {
  if (length === undefined && until !== undefined) return { endsAt: until };
  if (typeof length === 'number' && until === undefined) return { forMs: length };
  if (length === 'ever' && until === undefined)
    throw new RankdError(
      'usage',
      'An extension needs an end; --for ever is only for a new suspension or temporary rank.',
      {
        hint: 'use --for 2d or --until 2027-01-31 instead',
      },
    );
  throw new RankdError('usage', 'Give either a duration or a new end time.', {
    hint: length === undefined ? 'add --for 2d, or --until 2027-01-31' : 'leave out --for or --until',
  });
}

/**
 * Returns a hold's end; with `--for ever`, it has none. Throws `usage` if the end is in the past, if `requireLength`
 * rejects the length, or unless exactly one of `--for` and `--until` is given.
 */
export function lengthOf(
  app: Pick<RankingApp, 'clock' | 'suspension'>,
  { for: length, until }: HoldOptions,
): { endsAt?: number } {
  if ((length === undefined) === (until === undefined))
    throw new RankdError('usage', 'Give either a duration or an end.', {
      hint: length === undefined ? 'add --for 3d, --for ever, or --until 2027-01-31' : 'leave out --for or --until',
    });
  if (length === 'ever') return {};
  const now = app.clock.now();
  const endsAt = until ?? now + (length ?? 0);
  if (endsAt <= now)
    throw new RankdError('usage', `${isoTime(endsAt)} is in the past.`, { hint: 'give a time in the future' });
  requireLength(app, endsAt - now);
  return { endsAt };
}

function asLength(text: string): number | 'ever' {
  if (text === 'ever') return text;
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidArgumentError('It must be a duration above 0s, such as 3d, 12h or 30m, or `ever`.');
}

function asEnd(text: string): number {
  const at = parseMoment(text);
  if (at !== undefined) return at;
  throw new InvalidArgumentError(
    'It must be a date such as 2027-01-31, or a time in UTC or with an offset, such as 2027-01-31T18:00Z.',
  );
}

/** Parses a user or a hold's id. A user name that has the form of a hold's id is taken for an id. */
function asHoldOrUser(text: string): UserRef {
  return /^hold_\w{10,}$/.test(text) ? text : asUser(text);
}
