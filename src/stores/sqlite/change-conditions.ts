import type { ChangeFilter } from '../../ports/index.ts';
import { isDoneBy, whereOf } from '../where.ts';
import type { Bindings } from './engine/statements.ts';

type PageFilter = ChangeFilter & { cursor?: string | undefined };

/**
 * The condition for each part of a filter. The plus signs stop SQLite from reading lists by the index of times: it
 * would sort all changes between two times for each page. Instead, they are read in order, until a page is full; for
 * the last page, to the end of the history.
 */
const conditions = {
  group: 'group_title = @group',
  ids: 'id IN (SELECT value FROM json_each(@ids))',
  rankeeId: 'rankee_id = @rankeeId',
  rankeeName: `(substr(rankee_name, 1, length(@rankeeName)) COLLATE NOCASE = @rankeeName OR rankee_id IN
    (SELECT user_id FROM user_names WHERE substr(name, 1, length(@rankeeName)) COLLATE NOCASE = @rankeeName))`,
  rankerId: 'ranker_id = @rankerId',
  keyId: 'key_id = @keyId',
  placeId: 'place_id = @placeId',
  by: isDoneBy,
  undoId: 'undo_id = @undoId',
  states: 'instr(@states, json_quote(state)) > 0',
  since: '+requested_at >= @since',
  until: '+requested_at < @until',
  cursor: 'seq < @cursor',
} as const satisfies Record<Exclude<keyof PageFilter, 'limit'>, string>;

/** The condition of everything that a filter asks for. */
export function conditionsOf(filter: PageFilter): string {
  return whereOf(conditions, filter);
}

/** The values in it. */
export function bindingsOf(filter: PageFilter): Bindings {
  return {
    ...filter,
    cursor: Number(filter.cursor),
    states: JSON.stringify(filter.states),
    ids: JSON.stringify(filter.ids),
  };
}
