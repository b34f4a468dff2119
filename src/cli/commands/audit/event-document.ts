import type { AuditEvent } from '../../../core/model.ts';

/** An event as `--json` shows it; times are ISO 8601. */
export function eventDocument({ id, at, by, action, subject, detail }: AuditEvent) {
  return { id, at: new Date(at).toISOString(), by, action, subject, detail };
}

/** An event as a person sees it. */
export function eventRow(event: AuditEvent): string[] {
  const { at, by, action, subject, detail } = eventDocument(event);
  return [at, by, action, subject, JSON.stringify(detail)];
}
