import { type ChangeState, changeStates } from '../../core/model.ts';
import type { ChangeSelection } from '../../ports/index.ts';
import type { Cli } from '../cli.ts';
import { choices, option, type ValuesOf } from '../command.ts';
import { asPlaceId, asRanker, asUser, moment, refuseEmptyPeriod } from './arguments.ts';
import { userIdOf } from './people.ts';

export const selection = {
  key: option('--key <key>', 'only changes made with this key (id or name; if several keys had the name, the newest)'),
  place: option('--place <id>', 'only changes made from this place', asPlaceId),
  ranker: option('--ranker <user>', 'only changes that this user asked for (id or name)', asRanker),
  by: option(
    '--by <operator>',
    'only changes by this operator, as the audit names them: cli:ann@host, web:ann@host, discord:44…; `cli` alone means every operator in a shell, `web` on the page, `discord` on Discord',
  ),
  user: option('--user <user>', 'only changes of this member (id or name)', asUser),
  since: option('--since <when>', 'only changes since then: 24h ago, or 2026-05-01T18:00Z', moment),
  until: option('--until <when>', 'only changes before then', moment),
};

export const state = choices('--state <state...>', 'only changes in one of these states', changeStates);

type Selected = ValuesOf<typeof selection>;

export async function queryOf(
  cli: Cli,
  { key, place, ranker, user, by, since, until, state }: Selected & { state?: ChangeState[] },
): Promise<ChangeSelection & { key: string | undefined }> {
  refuseEmptyPeriod({ since, until });
  const rankerId = ranker === undefined ? undefined : await userIdOf(cli, ranker);
  const rankeeId = user === undefined ? undefined : await userIdOf(cli, user);
  return { key, placeId: place, rankerId, rankeeId, by, since, until, states: state };
}
