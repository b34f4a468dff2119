import { type AuditRow, breakBetween, type ChainBreak, type ChainLink, chainStart } from '../../core/audit.ts';
import type { Ports } from '../../ports/index.ts';

/** What a walk along the audit's chain found. */
export interface AuditVerdict {
  /** How many rows there are. */
  rows: number;
  /** What the chain begins after: the last row that retention removed, or `chainStart`. */
  anchor: ChainLink;
  /** The newest row. */
  head: ChainLink;
  /** The first ones, in order. */
  breaks: ChainBreak[];
  breakCount: number;
  /** Whether the noted hash is that of a row, or of the last one removed; `undefined` if none was asked for. */
  hasNotedHead: boolean | undefined;
  /** True if nothing is broken, and the noted head is there if one was asked for. */
  isIntact: boolean;
}

const pageRows = 1_000;
const maxBreaksTold = 100;

/** Walks the whole chain in pages, beside writers. `notedHead` is a hash (hex) that was the head once. */
export async function verifyAudit(
  { store }: Pick<Ports, 'store'>,
  { notedHead }: { notedHead?: string | undefined } = {},
): Promise<AuditVerdict> {
  let anchor = chainStart;
  let last = chainStart;
  let rows = 0;
  let breakCount = 0;
  let isNotedSeen = notedHead === last.hash;
  const breaks: ChainBreak[] = [];
  const report = (found: ChainBreak) => {
    breakCount += 1;
    if (breaks.length < maxBreaksTold) breaks.push(found);
  };
  const forgotten = new Set<string>();
  const unexplained = new Map<string, number>();
  /** The event that tells of a person being forgotten comes after those that the person was taken out of. */
  const note = ({ id, action, subject, people }: AuditRow) => {
    if (action === 'person.forget') forgotten.add(subject);
    for (const { userId, salt } of people) if (salt === null) unexplained.set(String(userId), id);
  };
  for (;;) {
    const page = await store.auditChain({ afterId: last.id, limit: pageRows });
    anchor = page.anchor;
    if (anchor.id > last.id) last = anchor; // retention went past us: what we were to look at next is gone
    isNotedSeen ||= anchor.hash === notedHead;
    for (const row of page.rows) {
      rows += 1;
      if (row.id <= anchor.id) {
        report({ kind: 'changed', id: row.id }); // put in where retention has removed everything
        continue;
      }
      const found = breakBetween(last, row);
      if (found !== undefined) report(found);
      note(row);
      isNotedSeen ||= row.hash === notedHead;
      last = { id: row.id, hash: row.hash };
    }
    if (page.rows.length === pageRows) continue;
    for (const [pseudonym, id] of unexplained) if (!forgotten.has(pseudonym)) report({ kind: 'changed', id });
    if (page.lastId > last.id) report({ kind: 'missing', id: last.id + 1, toId: page.lastId });
    return {
      rows,
      anchor,
      head: last,
      breaks,
      breakCount,
      hasNotedHead: notedHead === undefined ? undefined : isNotedSeen,
      isIntact: breakCount === 0 && (notedHead === undefined || isNotedSeen),
    };
  }
}

export function describeBreak(found: ChainBreak): string {
  if (found.kind === 'changed') return `event #${found.id} was changed, or the one it follows was`;
  return found.id === found.toId
    ? `event #${found.id} is missing`
    : `events #${found.id} to #${found.toId} are missing`;
}
