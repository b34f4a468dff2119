import { judgeAlarms, type RoleMisfit } from '../../core/role-settings.ts';
import { callWithin } from '../../ports/platform.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { isInCharge } from './in-charge.ts';

/**
 * The interval at which the roles are read for this alone: in a group without rank changes, nothing else reads them.
 */
const readEveryMs = 60_000;

/**
 * Raises an alarm for each setting that no longer identifies its role: once for each change of the group, across
 * restarts.
 */
export class MisfitTeller {
  #judged: readonly RoleMisfit[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  async tell(app: DaemonContext): Promise<void> {
    const { group, store, clock, log } = app;
    await this.#read(app);
    const { misfits } = group;
    if (misfits === undefined || misfits === this.#judged || !(await isInCharge(app, 'alarms'))) return;
    const judge = judgeAlarms(misfits, { by: 'daemon', at: clock.now() });
    const verdict = judge(await store.findMeanings(group.title));
    if ('events' in verdict && verdict.events.length > 0) {
      await store.updateMeanings(group.title, judge);
      for (const { action, subject, detail } of verdict.events) {
        if (action === 'configuration.fit') log.info({ entry: detail['entry'] }, `${subject} fits the group again`);
        else log.warn({ hint: detail['fix'], problem: 'roles' }, String(detail['message']));
      }
    }
    this.#judged = misfits;
  }

  async #read({ group, clock, deadCredential }: DaemonContext): Promise<void> {
    const now = clock.monotonic();
    if (group.entries.length === 0 || now - this.#readAt < readEveryMs || deadCredential() !== undefined) return;
    this.#readAt = now;
    using call = callWithin(clock, readWithinMs, 'roles');
    await group.scheme(call).catch(() => undefined); // the check of the credential reports why the group can't be read
  }
}

const readWithinMs = 10_000;
