import { RankdError } from '../../base/errors.ts';
import type { ChangeState, RankChange } from '../../core/model.ts';
import type { ChangeFilter, ChangeSelection, Ports } from '../../ports/index.ts';

/** The changes, newest first, and the names of the keys that asked for them, by id. */
export async function listChanges(
  { store }: Pick<Ports, 'store'>,
  filter: ChangeFilter,
): Promise<{ changes: RankChange[]; keyNames: Map<string, string> }> {
  const changes = await store.listChanges(filter);
  const ids = [...new Set(changes.flatMap(({ keyId = [] }) => keyId))];
  return { changes, keyNames: new Map((await store.listKeys({ ids })).map(({ id, name }) => [id, name])) };
}

const pageRows = 500;

/** All selected changes, newest first, page by page: memory stays flat however long the history is. */
export async function* changePages(
  { store }: Pick<Ports, 'store'>,
  selection: ChangeSelection,
): AsyncGenerator<RankChange[]> {
  let cursor: string | undefined;
  do {
    const { changes, next } = await store.pageChanges({ ...selection, limit: pageRows, cursor });
    yield changes;
    cursor = next;
  } while (cursor !== undefined);
}

/** The change with this id. Throws `not_found`. */
export async function showChange({ store }: Pick<Ports, 'store'>, id: string): Promise<RankChange> {
  const change = await store.findChange(id);
  if (change !== undefined) return change;
  throw new RankdError('not_found', `There is no rank change with the id "${id}".`, { hint: 'rankd history list' });
}

export interface ChangeCounts {
  openChanges: number;
  /** Since the last midnight of this machine. */
  today: Record<ChangeState, number>;
}

export async function countChanges({ store, clock }: Pick<Ports, 'store' | 'clock'>): Promise<ChangeCounts> {
  const midnight = new Date(clock.now()).setHours(0, 0, 0, 0);
  return { openChanges: (await store.openChanges()).length, today: await store.countChanges(midnight) };
}
