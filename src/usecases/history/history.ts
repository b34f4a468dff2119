import { RankdError } from '../../base/errors.ts';
import type { ChangeState, RankChange } from '../../core/model.ts';
import type { ChangeFilter, ChangeSelection, Ports } from '../../ports/index.ts';

/** A rank change and the name of the key that asked for it, as the key is called now. */
export interface ToldChange {
  change: RankChange;
  /** Absent for a change by the operator. */
  keyName?: string | undefined;
}

/** The changes, newest first. */
export async function listChanges({ store }: Pick<Ports, 'store'>, filter: ChangeFilter): Promise<ToldChange[]> {
  return withKeyNames(store, await store.listChanges(filter));
}

const pageRows = 500;

/** All selected changes, newest first, page by page: memory stays flat however long the history is. */
export async function* changePages(
  { store }: Pick<Ports, 'store'>,
  selection: ChangeSelection,
): AsyncGenerator<ToldChange[]> {
  let cursor: string | undefined;
  do {
    const { changes, next } = await store.pageChanges({ ...selection, limit: pageRows, cursor });
    yield await withKeyNames(store, changes);
    cursor = next;
  } while (cursor !== undefined);
}

/** The change with this id. Throws `not_found`. */
export async function showChange({ store }: Pick<Ports, 'store'>, id: string): Promise<ToldChange> {
  const change = await store.findChange(id);
  const [told] = await withKeyNames(store, change === undefined ? [] : [change]);
  if (told !== undefined) return told;
  throw new RankdError('not_found', `There is no rank change with the id "${id}".`, { hint: 'rankd history list' });
}

async function withKeyNames(
  { listKeys }: Pick<Ports['store'], 'listKeys'>,
  changes: RankChange[],
): Promise<ToldChange[]> {
  const ids = [...new Set(changes.flatMap(({ keyId = [] }) => keyId))];
  const names = new Map(ids.length === 0 ? [] : (await listKeys({ ids })).map(({ id, name }) => [id, name]));
  return changes.map((change) => ({ change, keyName: change.keyId && names.get(change.keyId) }));
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
