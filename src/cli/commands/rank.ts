import type { Command } from 'commander';
import type { RankingApp } from '../../app.ts';
import { deadlineIn } from '../../base/clock.ts';
import { type ErrorCode, RankdError } from '../../base/errors.ts';
import { roleTitle } from '../../core/describe.ts';
import { directions, type RankRequest } from '../../core/model.ts';
import type { ChangeCommand } from '../../usecases/change/change-command.ts';
import { errorOf } from '../../usecases/change/change-outcome.ts';
import { changeRank } from '../../usecases/change/change-rank.ts';
import type { ApprovedChange } from '../../usecases/change/check-plan.ts';
import { backgroundDeadlineMs } from '../../usecases/change/ranking.ts';
import { type CheckResult, testRank } from '../../usecases/change/test-rank.ts';
import { changeDocument, dryRunDocument } from '../../usecases/documents/change.ts';
import { memberDocument } from '../../usecases/documents/group.ts';
import { showMember } from '../../usecases/group/group.ts';
import { requireKey } from '../../usecases/keys/find-key.ts';
import type { Cli } from '../cli.ts';
import { asPlaceId, asRank, asReason, asUserId, wholeNumber } from '../input/arguments.ts';
import { whileLooking } from '../late-looks.ts';
import { ExitCode, exitCodes, formatError } from '../output/errors.ts';
import { examples } from '../output/help.ts';
import { table } from '../output/table.ts';

const userHelp = 'user id: the number in the address of the profile page';
const rankHelp = 'rank number (1..255) or role id';

interface ChangeOptions {
  /** 0: the operator, who is not a player. */
  ranker: number;
  reason?: string;
}

interface TestOptions {
  ranker: number;
  key?: string;
  place?: number;
}

const rankerOption = [
  '--ranker <user>',
  'the user who asks for it, checked as policy says',
  wholeNumber(0, Number.MAX_SAFE_INTEGER),
  0,
] as const;

const reasonOption = ['--reason <text>', 'why, in your own words; the history keeps it', asReason] as const;

export function rankCommands(program: Command, cli: Cli): void {
  const command = program
    .command('rank')
    .description("members' ranks")
    .addHelpText('after', examples('rankd rank test 1001 20', 'rankd rank set 1001 20'));
  command
    .command('test')
    .description('dry run: make every check of a rank change and change nothing')
    .argument('<user>', userHelp, asUserId)
    .argument('<rank>', rankHelp, asRank)
    .option('--key <key>', 'as this key (id or name); without it, as the operator')
    .option('--place <id>', 'from this place', asPlaceId)
    .option(...rankerOption)
    .addHelpText(
      'after',
      examples('rankd rank test 1001 20', 'rankd rank test 1001 20 --key my-game --place 920587237 --ranker 1003'),
    )
    .action((user: number, newRank: number, options: TestOptions) => test(cli, { user, newRank }, options));
  command
    .command('set')
    .description("change a member's rank")
    .argument('<user>', userHelp, asUserId)
    .argument('<rank>', rankHelp, asRank)
    .option(...rankerOption)
    .option(...reasonOption)
    .addHelpText(
      'after',
      examples(
        'rankd rank set 1001 20',
        'rankd rank set 1001 20 --reason training',
        'rankd rank set 1001 12884901999 --json',
      ),
    )
    .action((user: number, newRank: number, options: ChangeOptions) =>
      change(cli, { request: requestOf({ user, newRank, ...options }) }),
    );
  for (const direction of directions) {
    command
      .command(direction)
      .description(`give a member the next ${direction === 'promote' ? 'higher' : 'lower'} rank`)
      .argument('<user>', userHelp, asUserId)
      .option(...rankerOption)
      .option(...reasonOption)
      .addHelpText('after', examples(`rankd rank ${direction} 1001`, `rankd rank ${direction} 1001 --ranker 1003`))
      .action((user: number, options: ChangeOptions) =>
        change(cli, { request: requestOf({ user, newRank: 0, ...options }), step: direction }),
      );
  }
  command
    .command('show')
    .description("a member's roles, read from the platform")
    .argument('<user>', userHelp, asUserId)
    .addHelpText('after', examples('rankd rank show 1001', 'rankd rank show 1001 --json'))
    .action((user: number) => show(cli, user));
}

async function test(
  cli: Cli,
  { user, newRank }: { user: number; newRank: number },
  { key, place, ranker }: TestOptions,
): Promise<void> {
  if (place !== undefined && key === undefined) {
    throw new RankdError('usage', '--place is checked against the whitelist of a key.', { hint: 'add --key KEY' });
  }
  await cli.withRanking(async (app, call) => {
    const request = requestOf({ user, newRank, ranker });
    const command = { request, placeId: place, key: key === undefined ? undefined : await requireKey(app, key) };
    const dryRun = await testRank(app, command, call);
    const { checks, approved } = dryRun;
    const lines = checks.map((result) => [result.state, result.name, detailOf(result)]);
    const fixes = checks.flatMap((result) =>
      result.state === 'FAIL' ? [formatError(result.error, { asJson: false })] : [],
    );
    const steps = approved === undefined ? [] : describeSteps(approved);
    const outcome =
      approved === undefined ? 'refused' : steps.length === 0 ? 'nothing to change' : `would ${steps.join(', then ')}`;
    cli.print(
      dryRunDocument(dryRun),
      [table(['', 'check', ''], lines), ...fixes.map((fix) => cli.asTyped(fix.trimEnd())), outcome].join('\n'),
    );
    if (approved === undefined) throw new ExitCode(exitCodeOf(checks));
  });
}

async function change(cli: Cli, asked: Pick<ChangeCommand, 'request' | 'step'>): Promise<void> {
  const work = async (app: RankingApp) => {
    using deadline = deadlineIn(app.clock, backgroundDeadlineMs(app));
    void cli.io.stopSignal.then(() =>
      cli.say(
        'Stopping: the change is brought to its end first. Ctrl-C again stops at once; how the change ended is then found out later.',
      ),
    );
    const caller = { by: cli.by, dryRun: false };
    const answer = await whileLooking(cli, app, () => changeRank(app, { caller, ...asked }, deadline));
    const done = (await app.store.findChange(answer.change.id)) ?? answer.change; // a late look may have made it unknown
    const refusal = errorOf(done, answer.error);
    if (refusal !== undefined) throw refusal;
    cli.print({ change: changeDocument({ change: done }) }, done.message);
  };
  await cli.withRanking(work, { isWriting: true });
}

async function show(cli: Cli, user: number): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const member = await showMember(app, user, call);
    const rows = member.held.toReversed().map(({ id, name, rank }) => [String(rank), name, String(id)]);
    cli.print({ member: memberDocument(member) }, table(['rank', 'role', 'id'], rows));
  });
}

/** A request without names: the command line knows only ids. */
function requestOf({ user, newRank, ranker, reason }: ChangeOptions & { user: number; newRank: number }): RankRequest {
  return {
    rankeeId: user,
    rankeeName: '',
    rankerId: ranker,
    rankerName: ranker === 0 ? 'operator' : '',
    newRankId: newRank,
    command: 'rankd rank',
    ...(reason !== undefined && { reason }),
  };
}

function describeSteps({ plan, scheme }: ApprovedChange): string[] {
  return plan.steps.map(({ kind, roleId }) => {
    const role = scheme.roles.find(({ id }) => id === roleId);
    return `${kind === 'assign' ? 'give' : 'take'} ${role === undefined ? roleId : roleTitle(role)}`;
  });
}

/** Errors that keep rankd from finding out whether a change is allowed: the answer is neither yes nor no. */
const obstacles: ErrorCode[] = [
  'platform_unavailable',
  'platform_busy',
  'platform_credential',
  'store_unavailable',
  'config_invalid',
];

/** 5 if the answer is no; for an obstacle, its own code. */
function exitCodeOf(checks: CheckResult[]): number {
  const codes = checks.flatMap((result) => (result.state === 'FAIL' ? [result.error.code] : []));
  const obstacle = codes.find((code) => obstacles.includes(code));
  return obstacle === undefined ? 5 : exitCodes[obstacle];
}

function detailOf(result: CheckResult): string {
  return result.state === 'FAIL' ? result.error.message : result.detail;
}
