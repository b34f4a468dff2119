import { counted } from '../../base/text.ts';
import { forgetPerson, forgottenDocument } from '../../usecases/history/forget.ts';
import { argument, command, flag } from '../command.ts';
import { asUser } from '../input/arguments.ts';
import { confirm } from '../input/confirm.ts';
import { userIdOf } from '../input/people.ts';

export const forgetCommand = command({
  name: 'forget',
  about: 'remove a user from the history and the audit, for good',
  args: [argument('<user>', 'user id, name, or address of the profile page', asUser)],
  options: { dryRun: flag('--dry-run', 'show how many records name the user; change nothing') },
  help: `
The user's id and names leave the history and the audit. A negative number, which no user has, replaces them, the same one
everywhere. The audit can still be verified. This can't be undone, and history undo can't put this user's roles back any more.

Not touched are texts that you wrote yourself (rankd.yaml, the notes of places), backups, the log of the daemon, and the group on
Roblox. A running daemon may have old copies in the write-ahead log of its database until it is restarted.
`,
  examples: ['rankd forget 1001 --dry-run', 'rankd forget 1001 -y'],
  run: async (cli, user, { dryRun }) => {
    const userId = await userIdOf(cli, user);
    const forgotten = await cli.withStore(
      (ports) =>
        forgetPerson(ports, { userId, by: cli.by, dryRun }, (found) =>
          confirm(cli, `Forget user ${userId} in ${howMuch(found)}, for good?`),
        ),
      { isWriting: !dryRun },
    );
    const { pseudonym } = forgotten;
    const done = `User ${userId} is forgotten in ${howMuch(forgotten)}, which name ${pseudonym} instead.`;
    const planned = `${howMuch(forgotten)} name user ${userId}; nothing was changed.`;
    cli.print(forgottenDocument(forgotten), dryRun ? planned : done);
    if (!dryRun) cli.say('Backups, and the log of the daemon, still name the user.');
  },
});

function howMuch({ changes, events }: { changes: number; events: number }): string {
  return `${counted(changes, 'rank change')} and ${counted(events, 'audit event')}`;
}
