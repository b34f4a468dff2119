import type { Command } from 'commander';
import { counted } from '../../base/text.ts';
import { forgottenDocument } from '../../usecases/documents/forgotten.ts';
import { forgetPerson } from '../../usecases/history/forget.ts';
import type { Cli } from '../cli.ts';
import { type AskedUser, asUser } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { userIdOf } from '../input/people.ts';
import { examples } from '../output/help.ts';

const help = `
The user's id and names leave the history and the audit. A number below zero, which no user has, stands in their place; the same one
everywhere. The audit can still be verified. This can't be undone, and history undo can't put this user's roles back any more.

Not touched are texts that you wrote yourself (rankd.yaml, the notes of places), backups, the log of the daemon, and the group on
Roblox. A daemon that runs keeps old copies in the write-ahead log of its database until it is restarted.
`;

export function forgetCommand(program: Command, cli: Cli): void {
  program
    .command('forget')
    .description('remove a user from the history and the audit, for good')
    .argument('<user>', 'user id, name, or address of the profile page', asUser)
    .option('--dry-run', 'show how many records name the user; change nothing')
    .addHelpText('after', `${help}${examples('rankd forget 1001 --dry-run', 'rankd forget 1001 -y')}`)
    .action((user: AskedUser, options: { dryRun?: boolean }) => forget(cli, user, options));
}

async function forget(cli: Cli, user: AskedUser, { dryRun = false }: { dryRun?: boolean }): Promise<void> {
  const userId = await userIdOf(cli, user);
  const forgotten = await cli.withStore(
    (ports) =>
      forgetPerson(ports, { userId, by: cli.by, dryRun }, ({ changes, events }) =>
        confirm(cli, `Forget user ${userId} in ${howMuch({ changes, events })}, for good?`),
      ),
    { isWriting: !dryRun },
  );
  const { pseudonym } = forgotten;
  const done = `User ${userId} is forgotten in ${howMuch(forgotten)}, which name ${pseudonym} instead.`;
  const planned = `${howMuch(forgotten)} name user ${userId}; nothing was changed.`;
  cli.print(forgottenDocument(forgotten), dryRun ? planned : done);
  if (!dryRun) cli.say('Backups, and the log of the daemon, still name the user.');
}

function howMuch({ changes, events }: { changes: number; events: number }): string {
  return `${counted(changes, 'rank change')} and ${counted(events, 'audit event')}`;
}
