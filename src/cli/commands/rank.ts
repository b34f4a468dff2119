import type { Command } from 'commander';
import type { RankingApp } from '../../app.ts';
import { deadlineIn } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { holdTitle } from '../../core/describe.ts';
import { type Direction, directions, type RankRequest } from '../../core/model.ts';
import type { RoleName } from '../../core/role-name.ts';
import type { CallContext } from '../../ports/index.ts';
import type { HoldAsked } from '../../usecases/change/change-command.ts';
import { errorOf } from '../../usecases/change/change-outcome.ts';
import { changeRank } from '../../usecases/change/change-rank.ts';
import { backgroundDeadlineMs } from '../../usecases/change/ranking.ts';
import { testRank } from '../../usecases/change/test-rank.ts';
import { changeDocument } from '../../usecases/documents/change.ts';
import { memberDocument } from '../../usecases/documents/group.ts';
import { holdDocument } from '../../usecases/documents/hold.ts';
import { showMember } from '../../usecases/group/group.ts';
import { asKept } from '../../usecases/history/history.ts';
import { openHold } from '../../usecases/holds/open-hold.ts';
import { requireKey } from '../../usecases/keys/find-key.ts';
import type { Cli } from '../cli.ts';
import { type AskedUser, asPlaceId, asRank, asRanker, asReason, asUser } from '../input/arguments.ts';
import { rankOf, userOf } from '../input/people.ts';
import { whileLooking } from '../late-looks.ts';
import { examples } from '../output/help.ts';
import { table } from '../output/table.ts';
import { printDryRun } from './dry-run.ts';
import { type AskedList, changeList } from './rank-list.ts';
import { forOption, type HoldOptions, lengthOf, suspendCommands, untilOption } from './suspension.ts';

const userHelp = 'user id, name, or address of the profile page';
const rankHelp = 'rank number (1..255), role id or role name';

interface ChangeOptions {
  /** 0: the operator, who is not a player. */
  ranker: AskedUser;
  reason?: string;
}

interface TestOptions {
  ranker: AskedUser;
  key?: string;
  place?: number;
}

const rankerOption = ['--ranker <user>', 'the user who asks for it, checked as policy says', asRanker, 0] as const;

const fileOption = ['--file <file>', 'everybody in this file, one user on each line; - for standard input'] as const;

const reasonOption = ['--reason <text>', 'why, in your own words; the history keeps it', asReason] as const;

export function rankCommands(program: Command, cli: Cli): void {
  const command = program
    .command('rank')
    .description("members' ranks")
    .addHelpText('after', examples('rankd rank test 1001 20', 'rankd rank set 1001 20'));
  command
    .command('test')
    .description('dry run: make every check of a rank change and change nothing')
    .argument('<user>', userHelp, asUser)
    .argument('<rank>', rankHelp, asRank)
    .option('--key <key>', 'as this key (id or name); without it, as the operator')
    .option('--place <id>', 'from this place', asPlaceId)
    .option(...rankerOption)
    .addHelpText(
      'after',
      examples('rankd rank test 1001 20', 'rankd rank test 1001 20 --key my-game --place 920587237 --ranker 1003'),
    )
    .action((user: AskedUser, rank: RoleName, options: TestOptions) => test(cli, { user, rank }, options));
  const set = command.command('set');
  set
    .description("change a member's rank, or that of everybody in a file")
    .usage('[options] <user> <rank> | <rank> --file <file>')
    .argument('[user]', `${userHelp}; left out with --file`, (text) => (isListed(set) ? asRank(text) : asUser(text)))
    .argument('[rank]', rankHelp, asRank)
    .option(...fileOption)
    .option(...rankerOption)
    .option(...reasonOption)
    .option(...forOption)
    .option(...untilOption)
    .option('--lift', 'also if the member is suspended; this ends the suspension')
    .addHelpText(
      'after',
      examples(
        'rankd rank set 1001 20',
        'rankd rank set @Newcomer Officer --reason training',
        'rankd rank set 1001 12884901999 --json',
        'rankd rank set 1001 20 --for 7d',
        'rankd rank set Officer --file passed.txt --reason training',
      ),
    )
    .action((first: AskedUser | RoleName | undefined, rank: RoleName | undefined, options: SetOptions) => {
      const { file, ...rest } = options;
      if (file !== undefined) return changeList(cli, { file, ...listedRank(first, rank, rest) });
      if (first === undefined) return missing(set, 'user');
      if (rank === undefined) return missing(set, 'rank');
      return change(cli, { user: first, rank, ...rest });
    });
  for (const direction of directions) {
    const step = command.command(direction);
    step
      .description(
        `give a member, or everybody in a file, the next ${direction === 'promote' ? 'higher' : 'lower'} rank`,
      )
      .usage('[options] <user> | --file <file>')
      .argument('[user]', `${userHelp}; left out with --file`, asUser)
      .option(...fileOption)
      .option(...rankerOption)
      .option(...reasonOption)
      .addHelpText(
        'after',
        examples(
          `rankd rank ${direction} 1001`,
          `rankd rank ${direction} 1001 --ranker 1003`,
          `rankd rank ${direction} --file names.txt --reason training`,
        ),
      )
      .action((user: AskedUser | undefined, { file, ...options }: ChangeOptions & { file?: string }) => {
        if (file !== undefined) {
          if (user !== undefined) throw twice();
          return changeList(cli, { file, step: direction, rank: 0, ...options });
        }
        if (user === undefined) return missing(step, 'user');
        return change(cli, { user, rank: 0, ...options }, direction);
      });
  }
  suspendCommands(command, cli);
  command
    .command('show')
    .description("a member's roles, read from Roblox")
    .argument('<user>', userHelp, asUser)
    .addHelpText('after', examples('rankd rank show 1001', 'rankd rank show 1001 --json'))
    .action((user: AskedUser) => show(cli, user));
}

type SetOptions = Omit<AskedChange, 'user' | 'rank'> & { file?: string };

function isListed(command: Command): boolean {
  return command.opts<{ file?: string }>().file !== undefined;
}

/** The rank for everybody in a file: the only argument. */
function listedRank(
  rank: RoleName | undefined,
  more: unknown,
  { ranker, reason, ...others }: Omit<SetOptions, 'file'>,
): Omit<AskedList, 'file'> {
  if (rank === undefined || more !== undefined) throw twice();
  if (Object.values(others).some((option) => option !== undefined)) {
    throw new RankdError('usage', '--for, --until and --lift are for one member at a time.', {
      hint: 'leave them out, or name one user in place of --file',
    });
  }
  return { rank, ranker, reason };
}

/** As commander says it of an argument that is always needed. */
function missing(command: Command, argument: string): never {
  return command.error(`error: missing required argument '${argument}'`, { code: 'commander.missingArgument' });
}

function twice(): RankdError {
  return new RankdError('usage', 'With --file, the users are listed in the file, one on each line.', {
    hint: 'rankd rank set RANK --file FILE, or rankd rank promote --file FILE',
  });
}

async function test(
  cli: Cli,
  { user, rank }: { user: AskedUser; rank: RoleName },
  { key, place, ranker }: TestOptions,
): Promise<void> {
  if (place !== undefined && key === undefined) {
    throw new RankdError('usage', '--place is checked against the whitelist of a key.', { hint: 'add --key KEY' });
  }
  await cli.withRanking(async (app, call) => {
    const request = await requestOf(cli, app, { user, rank, ranker }, call);
    const command = { request, placeId: place, key: key === undefined ? undefined : await requireKey(app, key) };
    printDryRun(cli, await testRank(app, command, call));
  });
}

async function change(cli: Cli, asked: AskedChange, step?: Direction): Promise<void> {
  const work = async (app: RankingApp, call: CallContext) => {
    const request = await requestOf(cli, app, asked, call);
    using deadline = deadlineIn(app.clock, backgroundDeadlineMs(app));
    void cli.io.stopSignal.then(() =>
      cli.say(
        'Stopping: the change is brought to its end first. Ctrl-C again stops at once; how the change ended is then found out later.',
      ),
    );
    const hold = await holdAsked(app, request.rankeeId, asked);
    const command = { caller: { by: cli.by, dryRun: false }, request, ...(step && { step }), ...(hold && { hold }) };
    const answer = await whileLooking(cli, app, () => changeRank(app, command, deadline));
    const done = await asKept(app, answer.change);
    const refusal = errorOf(done, answer.error);
    if (refusal !== undefined) throw refusal;
    cli.print({ change: changeDocument({ change: done }) }, done.message);
  };
  await cli.withRanking(work, { isWriting: true });
}

async function show(cli: Cli, asked: AskedUser): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const { id } = await userOf(cli, app, asked, call);
    const member = await showMember(app, id, call);
    const hold = await openHold(app, id);
    const rows = member.held.toReversed().map(({ id, name, rank }) => [String(rank), name, String(id)]);
    const document = { member: memberDocument(member), suspension: hold ? holdDocument(hold) : null };
    cli.print(document, table(['rank', 'role', 'id'], rows), hold ? holdTitle(hold) : '');
  });
}

interface AskedChange extends ChangeOptions, HoldOptions {
  lift?: boolean;
  user: AskedUser;
  rank: RoleName;
}

/** The hold that the change is to begin, or to end; `undefined` if it is an ordinary change. */
async function holdAsked(app: RankingApp, rankeeId: number, asked: AskedChange): Promise<HoldAsked | undefined> {
  const isTemporary = asked.for !== undefined || asked.until !== undefined;
  if (isTemporary && asked.lift)
    throw new RankdError('usage', '--lift ends a suspension, and a temporary rank would begin another one.', {
      hint: 'leave out --lift, or --for and --until',
    });
  if (isTemporary) return { kind: 'temporary', ...lengthOf(app, asked) };
  const open = asked.lift ? await openHold(app, rankeeId) : undefined;
  return open && { kind: 'lift', id: open.id };
}

/** The request, with everybody's name who was asked for by name. */
async function requestOf(
  cli: Cli,
  app: RankingApp,
  { user, rank, ranker, reason }: AskedChange,
  call: CallContext,
): Promise<RankRequest> {
  const rankee = await userOf(cli, app, user, call);
  const by = ranker === 0 ? { id: 0, name: 'operator' } : await userOf(cli, app, ranker, call);
  return {
    rankeeId: rankee.id,
    rankeeName: rankee.name,
    rankerId: by.id,
    rankerName: by.name,
    newRankId: await rankOf(cli, app, rank, call),
    command: 'rankd rank',
    ...(reason !== undefined && { reason }),
  };
}
