import { argument, command, commandGroup } from '../command.ts';
import { asRank, userHelp } from '../input/arguments.ts';
import { changeOneOrMany, changeOptions, leftOut } from './rank.ts';
import { holdOptions } from './suspension.ts';

const args = [
  argument('[user]', `${userHelp}; ${leftOut}`),
  argument('[role]', 'role name, role id or rank number', asRank),
] as const;

export const roleCommands = commandGroup({
  name: 'role',
  about: "members' extra roles, such as VIP",
  examples: ['rankd role add 1001 VIP', 'rankd role remove @Newcomer VIP'],
  commands: [
    command({
      name: 'add',
      about: 'give one member, or many, a role that is not on the ladder; their rank stays the same',
      usage: '[options] <user> <role> | <role> --file <file> | <role> --holding <role>',
      args,
      options: { ...changeOptions, ...holdOptions },
      examples: [
        'rankd role add 1001 VIP',
        'rankd role add 1001 VIP --for 7d',
        'rankd role add VIP --file buyers.txt',
        'rankd role add VIP --holding Officer',
      ],
      run: (cli, first, rank, asked) =>
        changeOneOrMany(cli, { first, rank, noun: 'role', line: 'rankd role add' }, { ...asked, kind: 'role_added' }),
    }),
    command({
      name: 'remove',
      about: 'take a role that is not on the ladder from one member, or from many; their rank stays the same',
      usage: '[options] <user> <role> | <role> --file <file> | <role> --holding <role>',
      args,
      options: changeOptions,
      examples: [
        'rankd role remove 1001 VIP',
        'rankd role remove VIP --file refunds.txt --reason refunded',
        'rankd role remove VIP --holding VIP',
      ],
      run: (cli, first, rank, asked) =>
        changeOneOrMany(
          cli,
          { first, rank, noun: 'role', line: 'rankd role remove' },
          { ...asked, kind: 'role_removed' },
        ),
    }),
  ],
});
