import { isoTime } from '../../base/time.ts';
import type { AuditEvent } from '../../core/model.ts';
import type { AuditVerdict } from '../history/verify-audit.ts';

/** An event of the audit; times are ISO 8601. */
export function eventDocument({ id, at, by, action, subject, detail }: AuditEvent) {
  return { id, at: isoTime(at), by, action, subject, detail };
}

/** The verdict on the audit's chain. */
export function verdictDocument(verdict: AuditVerdict) {
  const { rows, anchor, head, breaks, breakCount, notedHead, notedHeads } = verdict;
  return {
    intact: verdict.isIntact,
    events: rows,
    head: head.hash,
    headId: head.id,
    removedUpTo: anchor.id > 0 ? anchor.id : null,
    notedHead: notedHead ?? null,
    notedHeads: notedHeads ?? null,
    breakCount,
    breaks,
  };
}
