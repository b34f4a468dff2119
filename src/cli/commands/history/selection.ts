import { type Command, Option } from 'commander';
import type { ChangeState } from '../../../core/model.ts';
import type { ChangeSelection } from '../../../ports/index.ts';
import { asPlaceId, asUserId, moment, wholeNumber } from '../../input/arguments.ts';

/** The options that select rank changes. */
export interface SelectionOptions {
  key?: string;
  place?: number;
  ranker?: number;
  user?: number;
  by?: string;
  since?: number;
  until?: number;
  state?: ChangeState[];
}

const states = ['pending', 'applied', 'refused', 'failed', 'unknown'] as const satisfies ChangeState[];

export function withSelection(command: Command): Command {
  return command
    .option('--key <key>', 'only those asked for with this key (id, or name: then the newest key that had it)')
    .option('--place <id>', 'only those asked for from this place', asPlaceId)
    .option('--ranker <user>', 'only those asked for by this user', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .option(
      '--by <operator>',
      'only those of this operator, as the audit names them: cli:ann@host; `cli` is every operator',
    )
    .option('--user <id>', 'only those of this member', asUserId)
    .option('--since <when>', 'only from then on: 24h ago, or 2026-05-01T18:00Z', moment)
    .option('--until <when>', 'only from before then', moment);
}

export function stateOption(): Option {
  return new Option('--state <state...>', 'only those in one of these states').choices(states);
}

/** The query that the options stand for. */
export function queryOf({
  key,
  place,
  ranker,
  user,
  by,
  since,
  until,
  state,
}: SelectionOptions): ChangeSelection & { key: string | undefined } {
  return { key, placeId: place, rankerId: ranker, rankeeId: user, by, since, until, states: state };
}
