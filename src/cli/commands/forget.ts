import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import type { UserRef } from '../../core/user-ref.ts';
import {
  forgetPerson,
  forgetRequesters,
  forgottenDocument,
  listRequesters,
  type Requester,
  requesterDocument,
} from '../../usecases/history/forget.ts';
import type { Cli } from '../cli.ts';
import { argument, command, flag } from '../command.ts';
import { asUser } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { userIdOf } from '../input/people.ts';
import { ExitCode } from '../output/errors.ts';
import { type Shown, table, when } from '../output/table.ts';

export const forgetCommand = command({
  name: 'forget',
  about: 'permanently remove a user from the history and the audit',
  args: [argument('[user]', 'user id, name, or address of the profile page', asUser)],
  options: {
    requested: flag(
      '--requested',
      "forget all users who requested it through Roblox's webhook, after listing them and asking once",
    ),
    dryRun: flag('--dry-run', 'show how many records name the user; change nothing'),
  },
  help: `
This removes the user's id and names from the history and the audit. The same negative number, which no user has, replaces
them everywhere. The audit can still be verified. This can't be undone, and history undo can no longer restore this user's roles.

It does not change text that you wrote yourself (rankd.yaml, notes on places), backups, the daemon's log, or the group on
Roblox. Until a running daemon is restarted, the write-ahead log of its database may contain old copies.
`,
  examples: ['rankd forget 1001 --dry-run', 'rankd forget 1001 -y', 'rankd forget --requested'],
  run: (cli, user, { requested, dryRun }) => {
    if ((user === undefined) !== requested) {
      throw new RankdError('usage', 'Name one user, or give --requested.', {
        hint: 'rankd forget USER, or rankd forget --requested',
      });
    }
    return user === undefined ? forgetRequested(cli, dryRun) : forgetUser(cli, user, dryRun);
  },
});

async function forgetUser(cli: Cli, user: UserRef, dryRun: boolean): Promise<void> {
  const userId = await userIdOf(cli, user);
  const forgotten = await cli.withStore(
    (ports) =>
      forgetPerson(ports, { userId, by: cli.by, dryRun }, (found) =>
        confirm(cli, `Permanently forget user ${userId} in ${howMuch(found)}?`),
      ),
    { isWriting: !dryRun },
  );
  const planned = `${howMuch(forgotten)} name user ${userId}; nothing was changed.`;
  cli.print(forgottenDocument(forgotten), dryRun ? planned : doneText({ userId, ...forgotten }));
  if (!dryRun) cli.say("Backups and the daemon's log still name the user.");
}

async function forgetRequested(cli: Cli, dryRun: boolean): Promise<void> {
  const requesters = await cli.withStore(listRequesters);
  if (requesters.length === 0) cli.say('No requests are waiting.');
  if (dryRun || requesters.length === 0) {
    cli.print({ dryRun, requests: requesters.map(requesterDocument) }, requestersTable(requesters));
    return;
  }
  cli.say(cli.shown([requestersTable(requesters)]));
  await confirm(
    cli,
    `Permanently forget ${requesters.length === 1 ? 'this user' : `these ${requesters.length} users`}?`,
  );
  const results = await cli.withWrites((ports) => forgetRequesters(ports, requesters, { by: cli.by }));
  const outcomes = results.map((result) =>
    result.error === undefined ? doneText(result) : `User ${result.userId}: ${result.error.message}`,
  );
  cli.print({ dryRun, requests: results.map(requesterDocument) }, outcomes.join('\n'));
  cli.say(`Backups and the daemon's log still name ${requesters.length === 1 ? 'the user' : 'these users'}.`);
  if (results.some(({ error }) => error !== undefined)) throw new ExitCode(4);
}

function requestersTable(requesters: readonly Requester[]): Shown {
  return table(
    ['user', 'requested', 'arrived', 'rank changes', 'audit events'],
    requesters.map(({ userId, requestedAt, receivedAt, changes, events }) => [
      ...[String(userId), when(requestedAt), when(receivedAt), String(changes), String(events)],
    ]),
  );
}

type Found = Pick<Requester, 'changes' | 'events'>;

function doneText(done: Found & { userId: number; pseudonym?: number | undefined }): string {
  return `User ${done.userId} is forgotten: ${howMuch(done)} now name ${done.pseudonym} instead.`;
}

function howMuch({ changes, events }: Found): string {
  return `${counted(changes, 'rank change')} and ${counted(events, 'audit event')}`;
}
