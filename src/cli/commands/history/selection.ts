import { type Command, Option } from 'commander';
import { type ChangeState, changeStates } from '../../../core/model.ts';
import type { ChangeSelection } from '../../../ports/index.ts';
import type { Cli } from '../../cli.ts';
import { type AskedUser, asPlaceId, asRanker, asUser, moment, refuseEmptyPeriod } from '../../input/arguments.ts';
import { userIdOf } from '../../input/people.ts';

/** The options that select rank changes. */
export interface SelectionOptions {
  key?: string;
  place?: number;
  ranker?: AskedUser;
  user?: AskedUser;
  by?: string;
  since?: number;
  until?: number;
  state?: ChangeState[];
}

export function withSelection(command: Command): Command {
  return command
    .option('--key <key>', 'only those asked for with this key (id, or name: then the newest key that had it)')
    .option('--place <id>', 'only those asked for from this place', asPlaceId)
    .option('--ranker <user>', 'only those asked for by this user (id or name)', asRanker)
    .option(
      '--by <operator>',
      'only those of this operator, as the audit names them: cli:ann@host; `cli` is every operator',
    )
    .option('--user <user>', 'only those of this member (id or name)', asUser)
    .option('--since <when>', 'only from then on: 24h ago, or 2026-05-01T18:00Z', moment)
    .option('--until <when>', 'only what happened before then', moment);
}

export function stateOption(): Option {
  return new Option('--state <state...>', 'only those in one of these states').choices(changeStates);
}

/** The query that the options stand for. Names are looked up. */
export async function queryOf(
  cli: Cli,
  { key, place, ranker, user, by, since, until, state }: SelectionOptions,
): Promise<ChangeSelection & { key: string | undefined }> {
  refuseEmptyPeriod({ since, until });
  const rankerId = ranker === undefined ? undefined : await userIdOf(cli, ranker);
  const rankeeId = user === undefined ? undefined : await userIdOf(cli, user);
  return { key, placeId: place, rankerId, rankeeId, by, since, until, states: state };
}
