import { RankdError } from '../../base/errors.ts';
import { refusalOfMisfit } from '../../core/role-settings.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../daemon-context.ts';

/** The conditions for changing ranks, in the order in which they are checked. Each throws if it is not met. */
const checks = {
  running: ({ requests }: DaemonContext) => {
    if (!requests.isDraining) return;
    throw new RankdError('shutting_down', 'rankd is stopping or restarting.', { retryAfterMs: 5_000 });
  },
  credential: (app: DaemonContext) => throwIfAny(app.deadCredential()),
  trust: ({ trust }: DaemonContext) => throwIfAny(trust.stop),
  store: ({ store }: DaemonContext) => store.pingWrites(),
  platform: ({ group }: DaemonContext, call: CallContext) => group.requireReadable(call),
  configuration: ({ group }: DaemonContext) => throwIfAny(refusalOfMisfit({ misfits: group.misfits ?? [] }, 'ranks')),
} satisfies Record<string, (app: DaemonContext, call: CallContext) => void | Promise<void>>;

export type ReadyCheck = keyof typeof checks;

export const readyChecks = Object.keys(checks) as ReadyCheck[];

export async function requireReady(app: DaemonContext, call: CallContext): Promise<void> {
  for (const name of readyChecks) await checks[name](app, call);
}

export async function requireCheck(name: ReadyCheck, app: DaemonContext, call: CallContext): Promise<void> {
  await checks[name](app, call);
}

function throwIfAny(error: RankdError | undefined): void {
  if (error !== undefined) throw error;
}
