import { InvalidArgumentError } from 'commander';
import type { RankingApp } from '../../app.ts';
import { deadlineIn } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { holdTitle } from '../../core/describe.ts';
import { type Direction, directions, type RankRequest, type RoleChangeKind } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import type { UserRef } from '../../core/user-ref.ts';
import type { CallContext } from '../../ports/index.ts';
import { changeRank } from '../../usecases/change/change-rank.ts';
import { errorOf } from '../../usecases/change/change-record.ts';
import { backgroundDeadlineMs, type RequestedHold } from '../../usecases/change/ranking.ts';
import { testRank } from '../../usecases/change/test-rank.ts';
import { showMember } from '../../usecases/group/group.ts';
import { memberDocument } from '../../usecases/group/group-document.ts';
import { changeDocument } from '../../usecases/history/change-document.ts';
import { asStored } from '../../usecases/history/history.ts';
import { holdDocument } from '../../usecases/holds/hold-document.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { requireKey } from '../../usecases/keys/find-key.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, flag, option, type ValuesOf } from '../command.ts';
import { asPlaceId, asRank, asReason, asUser, userHelp } from '../input/arguments.ts';
import { alongsideOf, rankOf, userOf } from '../input/people.ts';
import { withVerification } from '../late-reads.ts';
import { table } from '../output/table.ts';
import { printDryRun } from './dry-run.ts';
import { changeList, type ListSource } from './rank-list.ts';
import { type HoldOptions, holdOptions, lengthOf, ranker, reason, suspendCommands } from './suspension.ts';

export const leftOut = 'omit it with --file or --holding';
const rankHelp = 'rank number (1..255), role id or role name';
const testOptions = {
  key: option('--key <key>', 'as this key (id or name); without it, as the operator'),
  place: option('--place <id>', 'from this place', asPlaceId),
  ranker,
  reason: option('--reason <text>', 'the reason in the request', asReason),
};
/** Shared by the commands of `rank` and `role` that change either one member or many. */
export const changeOptions = {
  file: option('--file <file>', 'every user in this file, one on each line; - for standard input'),
  holding: option('--holding <role>', 'every member who holds this role', asRank).conflicts('file'),
  ranker,
  reason,
};
const stepOptions = {
  ...changeOptions,
  ifRank: option('--if-rank <rank>', 'only if the member has this rank', asRank),
};
const setOptions = {
  ...stepOptions,
  atLeast: flag('--at-least', 'skip a member who already has this rank or a higher one'),
  ...holdOptions,
  lift: flag('--lift', 'even if the member is suspended, which ends the suspension'),
};

export const rankCommands = commandGroup({
  name: 'rank',
  about: "members' ranks",
  examples: ['rankd rank test 1001 20', 'rankd rank set 1001 20'],
  commands: [
    command({
      name: 'test',
      about: 'dry run: make every check of a rank change and change nothing',
      args: [argument('<user>', userHelp, asUser), argument('<rank>', rankHelp, asRank)],
      options: testOptions,
      examples: ['rankd rank test 1001 20', 'rankd rank test 1001 20 --key my-game --place 920587237 --ranker 1003'],
      run: test,
    }),
    command({
      name: 'set',
      about: 'change the rank of one member, or of many',
      usage: '[options] <user> <rank> | <rank> --file <file> | <rank> --holding <role>',
      args: [argument('[user]', `${userHelp}; ${leftOut}`), argument('[rank]', rankHelp, asRank)],
      options: setOptions,
      examples: [
        'rankd rank set 1001 20',
        'rankd rank set @Newcomer Officer --reason training',
        'rankd rank set 1001 12884901999 --json',
        'rankd rank set 1001 20 --for 7d',
        'rankd rank set 1001 Officer --if-rank Trainee',
        'rankd rank set Officer --file passed.txt --reason training',
        'rankd rank set Officer --holding Trainee',
      ],
      run: set,
    }),
    ...directions.map((direction) =>
      command({
        name: direction,
        about: `give one member, or many, the next ${direction === 'promote' ? 'higher' : 'lower'} rank`,
        usage: '[options] <user> | --file <file> | --holding <role>',
        args: [argument('[user]', `${userHelp}; ${leftOut}`, asUser)],
        options: stepOptions,
        examples: [
          `rankd rank ${direction} 1001`,
          `rankd rank ${direction} 1001 --ranker 1003`,
          `rankd rank ${direction} --file names.txt --reason training`,
          `rankd rank ${direction} --holding Officer`,
        ],
        run: (cli, user, options) => {
          if (isForMany(options)) {
            if (user !== undefined) throw listedTwice(options, `rankd rank ${direction}`);
            return changeList(cli, { step: direction, rank: 0, ...options });
          }
          if (user === undefined) throw missing('user', `rankd rank ${direction} --help`);
          return change(cli, { user, rank: 0, ...options }, direction);
        },
      }),
    ),
    ...suspendCommands,
    command({
      name: 'show',
      about: "a member's roles, read from Roblox",
      args: [argument('<user>', userHelp, asUser)],
      examples: ['rankd rank show 1001', 'rankd rank show 1001 --json'],
      run: show,
    }),
  ],
});

interface RequestedChange extends HoldOptions {
  kind?: RoleChangeKind;
  user: UserRef;
  rank: RoleName;
  ranker: UserRef;
  reason?: string;
  ifRank?: RoleName;
  atLeast?: boolean;
  lift?: boolean;
}

function set(
  cli: Cli,
  first: string | undefined,
  rank: RoleName | undefined,
  options: ValuesOf<typeof setOptions>,
): Promise<void> {
  return changeOneOrMany(cli, { first, rank, noun: 'rank', line: 'rankd rank set' }, options);
}

type ManyOptions = Partial<ValuesOf<typeof setOptions>> & { ranker: UserRef; kind?: RoleChangeKind };

/**
 * Changes one member or, with --file or --holding, many. `first` is the user or, for many members, the rank or role.
 */
export async function changeOneOrMany(
  cli: Cli,
  { first, rank, noun, line }: { first: string | undefined; rank: RoleName | undefined; noun: string; line: string },
  { file, holding, ...options }: ManyOptions,
): Promise<void> {
  const help = `${line} --help`;
  if (!isForMany({ file, holding })) {
    if (first === undefined) throw missing('user', help);
    const user = parsed('user', first, { parse: asUser, help });
    if (rank === undefined) throw missing(noun, help);
    return change(cli, { user, rank, ...options });
  }
  if (first === undefined) throw missing(noun, help);
  if (rank !== undefined) throw listedTwice({ file }, `${line} ${noun.toUpperCase()}`);
  const { lift, for: forMs, until, ...rest } = options;
  if (lift || forMs !== undefined || until !== undefined) {
    throw new RankdError('usage', '--for, --until and --lift are for one member at a time.', {
      hint: `leave them out, or name one user instead of --${file === undefined ? 'holding' : 'file'}`,
    });
  }
  return changeList(cli, { file, holding, rank: parsed(noun, first, { parse: asRank, help }), ...rest });
}

function parsed<Value>(
  name: string,
  text: string,
  { parse, help }: { parse: (text: string) => Value; help: string },
): Value {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new RankdError('usage', `The ${name} can't be '${text}'. ${error.message}`, {
      hint: help,
    });
  }
}

/** Uses commander's message for a missing argument. */
function missing(argument: string, help: string): RankdError {
  return new RankdError('usage', `Missing required argument '${argument}'.`, { hint: help });
}

function isForMany({ file, holding }: ListSource): boolean {
  return file !== undefined || holding !== undefined;
}

function listedTwice({ file }: ListSource, line: string): RankdError {
  const [words, option] =
    file === undefined
      ? ['With --holding, the users are the members who hold that role, so none can be named.', '--holding ROLE']
      : ['With --file, the users are listed in the file, one on each line, so none can be named.', '--file FILE'];
  return new RankdError('usage', words, { hint: `${line} ${option}` });
}

async function test(
  cli: Cli,
  user: UserRef,
  rank: RoleName,
  { key, place, ...rest }: ValuesOf<typeof testOptions>,
): Promise<void> {
  if (place !== undefined && key === undefined) {
    throw new RankdError('usage', '--place needs a key, because each key has its own whitelist.', {
      hint: 'add --key KEY',
    });
  }
  await cli.withRanking(async (app, call) => {
    const request = await requestOf(cli, app, { user, rank, ...rest }, call);
    const command = { request, placeId: place, key: key === undefined ? undefined : await requireKey(app, key) };
    printDryRun(cli, await testRank(app, command, call));
  });
}

async function change(cli: Cli, asked: RequestedChange, step?: Direction): Promise<void> {
  const work = async (app: RankingApp, call: CallContext) => {
    const request = await requestOf(cli, app, asked, call);
    using deadline = deadlineIn(app.clock, backgroundDeadlineMs(app));
    void cli.io.stopSignal.then(() =>
      cli.say(
        'Stopping after this change. Press Ctrl-C again to stop at once; rankd then finds out the outcome later.',
      ),
    );
    const hold = await requestedHold(app, request.rankeeId, asked);
    const { kind, ifRank, atLeast } = asked;
    const command = {
      ...{ caller: { by: cli.by, dryRun: false }, request },
      ...(kind !== undefined && { kind }),
      ...(step && { step }),
      ...(hold && { hold }),
      ...(ifRank !== undefined && { ifRank }),
      ...(atLeast && { atLeast }),
    };
    const answer = await withVerification(cli, app, () => changeRank(app, command, deadline));
    const done = await asStored(app, answer.change);
    const refusal = errorOf(done, answer.error);
    if (refusal !== undefined) throw refusal;
    cli.print({ change: changeDocument({ change: done }) }, done.message);
  };
  await cli.withRanking(work, { isWriting: true });
}

async function show(cli: Cli, asked: UserRef): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const { id } = await userOf(cli, app, asked, call);
    const member = await showMember(app, id, call);
    const hold = await openHold(app, id);
    const rows = member.held.toReversed().map(({ id, name, rank }) => [String(rank), name, String(id)]);
    const document = { member: memberDocument(member), suspension: hold ? holdDocument(hold) : null };
    cli.print(document, table(['rank', 'role', 'id'], rows), hold ? holdTitle(hold) : '');
  });
}

/** Returns the hold that the change begins or ends; `undefined` for an ordinary change. */
async function requestedHold(
  app: RankingApp,
  rankeeId: number,
  asked: RequestedChange,
): Promise<RequestedHold | undefined> {
  const isTemporary = asked.for !== undefined || asked.until !== undefined;
  if (isTemporary && asked.atLeast)
    throw new RankdError('usage', '--at-least may leave the rank unchanged, but a temporary rank always changes it.', {
      hint: 'leave out --at-least, or --for and --until',
    });
  if (isTemporary && asked.lift)
    throw new RankdError('usage', "--lift ends a suspension, so it can't be combined with a temporary rank.", {
      hint: 'leave out --lift, or --for and --until',
    });
  if (isTemporary) return { kind: 'temporary', ...lengthOf(app, asked) };
  const open = asked.lift ? await openHold(app, rankeeId) : undefined;
  return open && { kind: 'lift', id: open.id };
}

async function requestOf(
  cli: Cli,
  app: RankingApp,
  { user, rank, ranker, reason, kind }: RequestedChange,
  call: CallContext,
): Promise<RankRequest> {
  const rankee = await userOf(cli, app, user, call);
  const by = ranker === 0 ? { id: 0, name: 'operator' } : await userOf(cli, app, ranker, call);
  return {
    rankeeId: rankee.id,
    rankeeName: rankee.name,
    rankerId: by.id,
    rankerName: by.name,
    newRankId: await (kind === undefined ? rankOf : alongsideOf)(cli, app, rank, call),
    command: kind === undefined ? 'rankd rank' : 'rankd role',
    ...(reason !== undefined && { reason }),
  };
}
