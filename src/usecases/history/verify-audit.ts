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

export interface AuditVerdict {
  rows: number;
  /** The row before the first one: the last row that retention removed, or `chainStart`. */
  anchor: ChainLink;
  head: ChainLink;
  /** At most `maxBreaksShown` breaks, in order of event id. */
  breaks: ChainBreak[];
  breakCount: number;
  /**
   * `found` if the given hash belongs to a row, `removed` if it belongs to the last removed row, otherwise `missing`;
   * `undefined` if no hash was given.
   */
  notedHead: 'found' | 'removed' | 'missing' | undefined;
  /**
   * The number of recorded heads found in the chain, and the number that retention has removed; `undefined` if none
   * were given.
   */
  notedHeads: { found: number; removed: number } | undefined;
  /** True if the chain has no break, and the given head is not missing. */
  isIntact: boolean;
}

export interface AuditQuestions {
  /**
   * Returns true if `audit.keep` is set. Called only if the start of the chain is missing. If omitted, `audit.keep` is
   * assumed to be set.
   */
  hasRetention?: () => Promise<boolean>;
  /** A hash (hex) that was recorded as the head. */
  notedHead?: string | undefined;
  /** The hashes (hex) of recorded heads, keyed by event id. An event with two hashes was rewritten. */
  notedHeads?: ReadonlyMap<number, ReadonlySet<string>> | undefined;
}

const maxBreaksShown = 100;

/** Verifies the whole chain page by page. Other processes can write at the same time. */
export async function verifyAudit(
  { store }: Pick<Ports, 'store'>,
  questions: AuditQuestions = {},
): Promise<AuditVerdict> {
  const { hasRetention = async () => true, notedHead, notedHeads } = questions;
  const breaks: ChainBreak[] = [];
  let breakCount = 0;
  const report = (found: ChainBreak) => {
    breakCount += 1;
    if (breaks.length < maxBreaksShown) breaks.push(found);
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
  let isNotedHeadSeen = notedHead === chainStart.hash;
  let prune: AuditRow | undefined;
  const emptied = await store.emptiedMentions();
  const forgetEvents: AuditRow[] = [];
  const { anchor, head, lastId } = await walk({ store }, report, (row) => {
    rows += 1;
    isNotedHeadSeen ||= row.hash === notedHead;
    if (row.action === pruneAction) prune = row;
    if (row.action === forgetAction && row.id <= emptied.lastId) forgetEvents.push(row);
    if (compare(row)) found += 1;
  });
  const unexplained = unexplainedMentions(emptied.mentions, forgetEvents);
  // If retention ran during the walk, the mentions may not match the rows.
  if (unexplained.length > 0 && anchor.id !== emptied.anchorId) return verifyAudit({ store }, questions);
  for (const mention of unexplained) report(mention);
  const isExplained = anchor.id === 0 || (prune !== undefined && explains(prune, anchor) && (await hasRetention()));
  if (!isExplained) report({ kind: 'unexplained', id: 1, toId: anchor.id });
  const removed = [...uncompared.keys()].filter((id) => id <= anchor.id).length;
  compare(anchor);
  const newest = Math.max(lastId, ...uncompared.keys());
  if (newest > head.id) report({ kind: 'missing', id: head.id + 1, toId: newest });
  const whereHeadIs = isNotedHeadSeen ? 'found' : notedHead === anchor.hash ? 'removed' : 'missing';
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

/** Calls `see` with each row, and `report` with each break between two rows. */
async function walk(
  { store }: Pick<Ports, 'store'>,
  report: (found: ChainBreak) => void,
  see: (row: AuditRow) => void,
): Promise<{ anchor: ChainLink; head: ChainLink; lastId: number }> {
  let head = chainStart;
  for (;;) {
    const { anchor, rows, lastId } = await store.auditChain({ afterId: head.id, limit: pageRows });
    if (anchor.id > head.id) head = anchor; // retention has removed the next rows
    for (const row of rows) {
      see(row);
      if (row.id <= anchor.id) {
        report({ kind: 'changed', id: row.id }); // inserted after retention had removed these rows
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
      return `event #${found.id} was changed, or the one before it was`;
    case 'mentions':
      return `the records from which a person was removed are not those that event #${found.id} names`;
    case 'rewritten':
      return `event #${found.id} is not the one whose hash was recorded: the audit was rewritten, or an older backup was restored`;
    case 'missing':
      return `${eventsOf(found)} missing`;
    case 'unexplained':
      return `${eventsOf(found)} gone, and retention did not remove them: no event records that, or audit.keep is not set for this command`;
  }
}

function eventsOf({ id, toId }: { id: number; toId: number }): string {
  return id === toId ? `event #${id} is` : `events #${id} to #${toId} are`;
}
