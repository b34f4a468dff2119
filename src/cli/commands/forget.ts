import { RankdError } from '../../base/errors.ts';
import { counted } from '../../base/text.ts';
import type { AskedUser } from '../../core/asked-user.ts';
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
  about: 'remove a user from the history and the audit, for good',
  args: [argument('[user]', 'user id, name, or address of the profile page', asUser)],
  options: {
    requested: flag(
      '--requested',
      "everyone who asked for it through Roblox's webhook: list them, ask once, forget them",
    ),
    dryRun: flag('--dry-run', 'show how many records name the user; change nothing'),
  },
  help: `
The user's id and names leave the history and the audit. A negative number, which no user has, replaces them, the same one
everywhere. The audit can still be verified. This can't be undone, and history undo can't put this user's roles back any more.

Not touched are texts that you wrote yourself (rankd.yaml, the notes of places), backups, the log of the daemon, and the group on
Roblox. A running daemon may have old copies in the write-ahead log of its database until it is restarted.
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

async function forgetUser(cli: Cli, user: AskedUser, dryRun: boolean): Promise<void> {
  const userId = await userIdOf(cli, user);
  const forgotten = await cli.withStore(
    (ports) =>
      forgetPerson(ports, { userId, by: cli.by, dryRun }, (found) =>
        confirm(cli, `Forget user ${userId} in ${howMuch(found)}, for good?`),
      ),
    { isWriting: !dryRun },
  );
  const planned = `${howMuch(forgotten)} name user ${userId}; nothing was changed.`;
  cli.print(forgottenDocument(forgotten), dryRun ? planned : doneText({ userId, ...forgotten }));
  if (!dryRun) cli.say('Backups, and the log of the daemon, still name the user.');
}

async function forgetRequested(cli: Cli, dryRun: boolean): Promise<void> {
  const requesters = await cli.withStore(listRequesters);
  if (requesters.length === 0) cli.say('No request waits.');
  if (dryRun || requesters.length === 0) {
    cli.print({ dryRun, requests: requesters.map(requesterDocument) }, requestersTable(requesters));
    return;
  }
  cli.say(cli.shown([requestersTable(requesters)]));
  await confirm(cli, `Forget ${requesters.length === 1 ? 'this user' : `these ${requesters.length} users`}, for good?`);
  const results = await cli.withWrites((ports) => forgetRequesters(ports, requesters, { by: cli.by }));
  const outcomes = results.map((result) =>
    result.error === undefined ? doneText(result) : `User ${result.userId}: ${result.error.message}`,
  );
  cli.print({ dryRun, requests: results.map(requesterDocument) }, outcomes.join('\n'));
  cli.say('Backups, and the log of the daemon, still name these users.');
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
  return `User ${done.userId} is forgotten in ${howMuch(done)}, which name ${done.pseudonym} instead.`;
}

function howMuch({ changes, events }: Found): string {
  return `${counted(changes, 'rank change')} and ${counted(events, 'audit event')}`;
}
