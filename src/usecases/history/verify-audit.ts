import {
  type AuditRow,
  breakBetween,
  type ChainBreak,
  type ChainLink,
  chainStart,
  explains,
  forgetAction,
  pruneAction,
  unexplainedMentions,
} from '../../core/audit.ts';
import type { Ports } from '../../ports/index.ts';

/** The result of a walk along the audit's chain. */
export interface AuditVerdict {
  /** How many rows there are. */
  rows: number;
  /** The row before the chain's first: the last one that was removed, or `chainStart`. */
  anchor: ChainLink;
  /** The newest row. */
  head: ChainLink;
  /** The first ones, in order. */
  breaks: ChainBreak[];
  breakCount: number;
  /**
   * Whether the noted hash is that of a row (`found`), or of the last one removed (`removed`: what it vouched for is gone, and can't be
   * checked); `undefined` if none was asked for.
   */
  notedHead: 'found' | 'removed' | 'missing' | undefined;
  /** How many of the heads that were noted by number are in the chain, and how many were removed; `undefined` if none was asked for. */
  notedHeads: { found: number; removed: number } | undefined;
  /** True if nothing is broken, and the noted head is not missing. */
  isIntact: boolean;
}

export interface AuditQuestions {
  /** Whether `audit.keep` is set. It is asked only if the beginning of the chain is gone; without it, retention may have been on. */
  hasRetention?: () => Promise<boolean>;
  /** A hash (hex) that was the head once. */
  notedHead?: string | undefined;
  /** The hashes (hex) of the heads that were noted, by their numbers. If there are two of a number, one of them was rewritten. */
  notedHeads?: ReadonlyMap<number, ReadonlySet<string>> | undefined;
}

const maxBreaksTold = 100;

/** Walks the whole chain in pages, beside writers. */
export async function verifyAudit(
  { store }: Pick<Ports, 'store'>,
  questions: AuditQuestions = {},
): Promise<AuditVerdict> {
  const { hasRetention = async () => true, notedHead, notedHeads } = questions;
  const breaks: ChainBreak[] = [];
  let breakCount = 0;
  const report = (found: ChainBreak) => {
    breakCount += 1;
    if (breaks.length < maxBreaksTold) breaks.push(found);
  };
  const uncompared = new Map(notedHeads);
  const compare = ({ id, hash }: ChainLink): boolean => {
    const noted = uncompared.get(id);
    uncompared.delete(id);
    const isSame = noted === undefined || (noted.size === 1 && noted.has(hash));
    if (!isSame) report({ kind: 'rewritten', id });
    return noted !== undefined && isSame;
  };
  let rows = 0;
  let found = 0;
  let isNotedSeen = notedHead === chainStart.hash;
  let prune: AuditRow | undefined;
  const emptied = await store.emptiedMentions();
  const forgets: AuditRow[] = [];
  const { anchor, head, lastId } = await walk({ store }, report, (row) => {
    rows += 1;
    isNotedSeen ||= row.hash === notedHead;
    if (row.action === pruneAction) prune = row;
    if (row.action === forgetAction && row.id <= emptied.lastId) forgets.push(row);
    if (compare(row)) found += 1;
  });
  const unexplained = unexplainedMentions(emptied.mentions, forgets);
  if (unexplained.length > 0 && anchor.id !== emptied.anchorId) return verifyAudit({ store }, questions); // retention ran in between
  for (const mention of unexplained) report(mention);
  const isExplained = anchor.id === 0 || (prune !== undefined && explains(prune, anchor) && (await hasRetention()));
  if (!isExplained) report({ kind: 'unexplained', id: 1, toId: anchor.id });
  const removed = [...uncompared.keys()].filter((id) => id <= anchor.id).length;
  compare(anchor);
  const newest = Math.max(lastId, ...uncompared.keys());
  if (newest > head.id) report({ kind: 'missing', id: head.id + 1, toId: newest });
  const whereHeadIs = isNotedSeen ? 'found' : notedHead === anchor.hash ? 'removed' : 'missing';
  return {
    rows,
    anchor,
    head,
    breaks: breaks.toSorted((one, other) => one.id - other.id),
    breakCount,
    notedHead: notedHead === undefined ? undefined : whereHeadIs,
    notedHeads: notedHeads === undefined ? undefined : { found, removed },
    isIntact: breakCount === 0 && (notedHead === undefined || whereHeadIs !== 'missing'),
  };
}

const pageRows = 1_000;

/** Shows each row to `see`, and each place where one does not follow from the one before to `report`. */
async function walk(
  { store }: Pick<Ports, 'store'>,
  report: (found: ChainBreak) => void,
  see: (row: AuditRow) => void,
): Promise<{ anchor: ChainLink; head: ChainLink; lastId: number }> {
  let head = chainStart;
  for (;;) {
    const { anchor, rows, lastId } = await store.auditChain({ afterId: head.id, limit: pageRows });
    if (anchor.id > head.id) head = anchor; // retention went past us: what we were to look at next is gone
    for (const row of rows) {
      see(row);
      if (row.id <= anchor.id) {
        report({ kind: 'changed', id: row.id }); // put in where retention has removed everything
        continue;
      }
      const found = breakBetween(head, row);
      if (found !== undefined) report(found);
      head = { id: row.id, hash: row.hash };
    }
    if (rows.length < pageRows) return { anchor, head, lastId };
  }
}

export function describeBreak(found: ChainBreak): string {
  switch (found.kind) {
    case 'changed':
      return `event #${found.id} was changed, or the one it follows was`;
    case 'mentions':
      return `event #${found.id} emptied other mentions of a forgotten person than those that are empty now`;
    case 'rewritten':
      return `event #${found.id} is not the one whose hash was noted: the audit was written anew, or an older backup restored`;
    case 'missing':
      return `${eventsOf(found)} missing`;
    case 'unexplained':
      return `${eventsOf(found)} gone, and it was not retention: no event of it says so, or audit.keep is not set for this command`;
  }
}

function eventsOf({ id, toId }: { id: number; toId: number }): string {
  return id === toId ? `event #${id} is` : `events #${id} to #${toId} are`;
}
