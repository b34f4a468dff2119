import type { Hold } from '../../core/model.ts';
import { callWithin } from '../../ports/platform.ts';
import { backgroundDeadlineMs, type Ranking } from '../change/ranking.ts';
import { checkHold } from './end-hold.ts';

/** How many members are read one by one in a sweep. */
const readsASweep = 20;
const maxHolds = 10_000;

/**
 * Finds early who left the group, came back to it, or was changed by somebody else while suspended: all who hold the role of suspended
 * members are listed, and those who should be among them and are not are read one by one. Without such a role there is nothing to list.
 */
export async function sweepHolds(app: Ranking, stop: AbortSignal): Promise<void> {
  if (app.suspension.role === undefined) return;
  const missing = await suspendedWithout(app);
  for (const hold of pick(missing, app.clock.now())) {
    if (stop.aborted) return;
    await checkHold(app, { hold, caller: { by: 'daemon', dryRun: false }, as: undefined });
  }
}

/** Those who should hold the role and do not. */
async function suspendedWithout(app: Ranking): Promise<Hold[]> {
  const active = await app.store.listHolds({ group: app.group.title, states: ['active'], limit: maxHolds });
  if (active.length === 0) return [];
  using call = callWithin(app.clock, backgroundDeadlineMs(app), 'holds');
  const [role] = (await app.group.scheme(call)).named['policy.suspension.role'];
  if (role === undefined) return [];
  const { id } = role;
  const given = active.filter(({ kind, rolesDuring }) => kind === 'suspension' && rolesDuring.includes(id));
  if (given.length === 0) return [];
  const holders = new Set(await app.platform.membersWith(id, call));
  return given.filter(({ rankeeId }) => !holders.has(rankeeId));
}

/** Some of them, others each time: those who left stay missing. */
function pick(holds: Hold[], now: number): Hold[] {
  const first = holds.length > readsASweep ? Math.floor(now / 1000) % holds.length : 0;
  return [...holds.slice(first), ...holds.slice(0, first)].slice(0, readsASweep);
}
