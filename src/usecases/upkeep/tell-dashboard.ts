import { dashboardEvent } from '../../core/events.ts';
import type { Ports } from '../../ports/index.ts';

/** Records in the audit who used the operator's page, or was refused there. */
export async function auditDashboard(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  what: Parameters<typeof dashboardEvent>[0],
  { by, ...detail }: { by: string } & Record<string, unknown>,
): Promise<void> {
  await store.appendAudit(dashboardEvent(what, detail, { by, at: clock.now() }));
}
