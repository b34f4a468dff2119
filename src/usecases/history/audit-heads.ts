import { appendTo, linesOf } from '../../base/files.ts';
import { headIn, headLine } from '../../core/audit.ts';
import type { Ports } from '../../ports/index.ts';

const pageRows = 1_000;

/** Returns the id of the newest event ever written, or 0 if there is none. */
export async function newestEvent({ store }: Pick<Ports, 'store'>): Promise<number> {
  const { lastId } = await store.auditChain({ afterId: 0, limit: 0 });
  return lastId;
}

/**
 * Appends the hash of each event after `afterId` to a separate file, so that `rankd audit verify` can detect a
 * rewritten audit log. Returns the id of the last event. Throws an error from `asFileError` if the file can't be
 * written.
 */
export async function noteHeads(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { file, afterId }: { file: string; afterId: number },
): Promise<number> {
  let noted = afterId;
  for (;;) {
    const { rows } = await store.auditChain({ afterId: noted, limit: pageRows });
    const now = clock.now();
    if (rows.length > 0) await appendTo(file, rows.map((row) => headLine(row, now)).join(''));
    noted = rows.at(-1)?.id ?? noted;
    if (rows.length < pageRows) return noted;
  }
}

export async function readHeads(file: string): Promise<Map<number, Set<string>>> {
  const heads = new Map<number, Set<string>>();
  for await (const line of linesOf(file)) {
    const head = headIn(line);
    if (head !== undefined) heads.set(head.id, (heads.get(head.id) ?? new Set()).add(head.hash));
  }
  return heads;
}
